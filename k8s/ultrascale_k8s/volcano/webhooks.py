"""Admission webhooks, applied last.

A webhook that is registered but not served refuses every object it is asked about. Applied after
the queues, the first deploy never depends on one.
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

# Volcano makes HyperNodes itself, and never tries one again that was refused. It judges nothing of
# them but regular expressions, which those that it makes have none of.
_OF_HYPER_NODES: JsonObject = {"failurePolicy": "Ignore", "timeoutSeconds": 2}


class VolcanoWebhooksChart(cdk8s.Chart):
    """Defines the configurations of Volcano's admission webhooks.

    They carry no `caBundle`: the server writes its own into them, and applying them again leaves
    alone a field that they do not set.
    """

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id, disable_resource_name_hashes=True)
        define_objects(self, webhook_configurations())


def webhook_configurations() -> Sequence[JsonObject]:
    """Return the configurations, of one webhook each.

    The server derives their names from the paths of the webhooks and looks them up.

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
    """Return the paths of the webhooks on the server, their names in `--enabled-admission`."""
    return [
        text(webhook, "clientConfig", "service", "path")
        for configuration in webhook_configurations()
        for webhook in objects(configuration, "webhooks")
    ]
