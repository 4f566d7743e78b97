"""Admission webhooks, applied last.

A webhook that is registered and not served refuses every object that it is asked about. These are
applied after the queues, so that the first deployment never depends on a webhook.
"""

from collections.abc import Sequence

import cdk8s
from constructs import Construct

from ultrascale.documents import JsonObject, mapping, objects, text
from ultrascale_k8s._api_objects import define_objects
from ultrascale_k8s.objects import labels
from ultrascale_k8s.upstream import upstream_objects

ADMISSION = "volcano-admission"
ADMISSION_SERVICE = "volcano-admission-service"
ADMISSION_SERVICE_PORT = 443

# Volcano makes HyperNodes itself, and never tries again after a refusal. The webhook judges only
# the regular expressions of HyperNodes, and HyperNodes of Volcano have none.
_OF_HYPER_NODES: JsonObject = {"failurePolicy": "Ignore", "timeoutSeconds": 2}


class VolcanoWebhooksChart(cdk8s.Chart):
    """Defines the configurations of Volcano's admission webhooks.

    They have no `caBundle`: the server writes its own into them, and applying them again does not
    change a field that they do not set.
    """

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id, disable_resource_name_hashes=True)
        define_objects(self, webhook_configurations())


def webhook_configurations() -> Sequence[JsonObject]:
    """Return the configurations, each with one webhook.

    The server derives their names from the webhooks' paths, and looks the configurations up.

    Source: https://github.com/volcano-sh/volcano/blob/v1.15.1/cmd/webhook-manager/app/util.go
    """
    return [
        {
            **configuration,
            "metadata": {**mapping(configuration, "metadata"), "labels": labels(ADMISSION)},
            "webhooks": [
                {**webhook, **(_OF_HYPER_NODES if "hypernodes" in name else {})}
                for webhook in objects(configuration, "webhooks")
            ],
        }
        for name, configuration in upstream_objects("volcano-webhooks").items()
    ]


def webhook_paths() -> Sequence[str]:
    """Return the webhooks' paths on the server, by which `--enabled-admission` names them."""
    return [
        text(webhook, "clientConfig", "service", "path")
        for configuration in webhook_configurations()
        for webhook in objects(configuration, "webhooks")
    ]
