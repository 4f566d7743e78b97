"""Admission webhooks, applied last.

A webhook that is registered but not served refuses every object it is asked about. Applied after
the queues, the first deploy never depends on one.
"""

from typing import Literal

import cdk8s
from constructs import Construct

from ultrascale.documents import Json
from ultrascale.frozen import Frozen
from ultrascale.plan.names import SYSTEM_NAMESPACE, VOLCANO_NAMESPACE
from ultrascale_k8s._pods import labels
from ultrascale_k8s.objects import define_object

ADMISSION = "volcano-admission"
ADMISSION_SERVICE = "volcano-admission-service"
ADMISSION_SERVICE_PORT = 443

Verb = Literal["mutate", "validate"]


class Webhook(Frozen):
    """One admission webhook of Volcano."""

    verb: Verb  # Whether it changes objects or judges them
    resource: str  # What it is asked about, in the plural
    name: str  # Its own name, which the server knows it by
    group: str  # API group of the resource
    version: str = "v1alpha1"  # API version of the resource
    operations: tuple[str, ...] = ("CREATE", "UPDATE")  # When it is asked
    side_effects: str = "NoneOnDryRun"  # What the server declares for a dry run
    # What becomes of an object while no server answers.
    failure_policy: Literal["Fail", "Ignore"] = "Fail"
    timeout_seconds: int = 10  # How long the API server waits for an answer

    @property
    def path(self) -> str:
        """Path on the server, which is also its name in `--enabled-admission`."""
        return f"/{self.resource}/{self.verb}"

    @property
    def configuration_name(self) -> str:
        """Name of its configuration, which the server derives from the path and looks up.

        Source: https://github.com/volcano-sh/volcano/blob/v1.15.1/cmd/webhook-manager/app/util.go
        """
        return f"volcano-admission-service-{self.resource}-{self.verb}"


# Those that Volcano 1.15.1 enables. The ones for pods and for mutating PodGroups are off, so that
# no pod outside Volcano ever waits for its webhooks.
# Source: https://github.com/volcano-sh/volcano/blob/v1.15.1/installer/helm/chart/volcano/templates/webhooks.yaml
WEBHOOKS: tuple[Webhook, ...] = (
    Webhook(
        verb="mutate",
        resource="jobs",
        name="mutatejob.volcano.sh",
        group="batch.volcano.sh",
        operations=("CREATE",),
    ),
    Webhook(
        verb="validate", resource="jobs", name="validatejob.volcano.sh", group="batch.volcano.sh"
    ),
    Webhook(
        verb="validate",
        resource="podgroups",
        name="validatepodgroup.volcano.sh",
        group="scheduling.volcano.sh",
        version="v1beta1",
        operations=("CREATE",),
    ),
    Webhook(
        verb="mutate",
        resource="queues",
        name="mutatequeue.volcano.sh",
        group="scheduling.volcano.sh",
        version="v1beta1",
        operations=("CREATE",),
    ),
    Webhook(
        verb="validate",
        resource="queues",
        name="validatequeue.volcano.sh",
        group="scheduling.volcano.sh",
        version="v1beta1",
        operations=("CREATE", "UPDATE", "DELETE"),
    ),
    Webhook(
        verb="validate",
        resource="hypernodes",
        name="validatehypernodes.volcano.sh",
        group="topology.volcano.sh",
        side_effects="None",
        # Volcano makes HyperNodes itself, and never tries one again that was refused. It judges
        # nothing of them but regular expressions, which those that it makes have none of.
        failure_policy="Ignore",
        timeout_seconds=2,
    ),
    Webhook(
        verb="validate",
        resource="cronjobs",
        name="validatecronjob.volcano.sh",
        group="batch.volcano.sh",
    ),
)


class VolcanoWebhooksChart(cdk8s.Chart):
    """Defines the configurations of Volcano's admission webhooks.

    They carry no `caBundle`: the server writes its own into them, and applying them again leaves
    alone a field that they do not set.
    """

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id, disable_resource_name_hashes=True)
        for webhook in WEBHOOKS:
            define_object(self, webhook.configuration_name, webhook_configuration(webhook))


def webhook_configuration(webhook: Webhook) -> dict[str, Json]:
    """Return the MutatingWebhookConfiguration or ValidatingWebhookConfiguration of ``webhook``."""
    mutating = webhook.verb == "mutate"
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration" if mutating else "ValidatingWebhookConfiguration",
        "metadata": {"name": webhook.configuration_name, "labels": labels(ADMISSION)},
        "webhooks": [_webhook(webhook) | ({"reinvocationPolicy": "Never"} if mutating else {})],
    }


def _webhook(webhook: Webhook) -> dict[str, Json]:
    not_ours = {
        "key": "kubernetes.io/metadata.name",
        "operator": "NotIn",
        "values": [SYSTEM_NAMESPACE, VOLCANO_NAMESPACE],
    }
    rule = {
        "apiGroups": [webhook.group],
        "apiVersions": [webhook.version],
        "operations": list(webhook.operations),
        "resources": [webhook.resource],
        "scope": "*",
    }
    return {
        "name": webhook.name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": {
            "service": {
                "name": ADMISSION_SERVICE,
                "namespace": VOLCANO_NAMESPACE,
                "path": webhook.path,
                "port": ADMISSION_SERVICE_PORT,
            }
        },
        "failurePolicy": webhook.failure_policy,
        "matchPolicy": "Equivalent",
        "namespaceSelector": {"matchExpressions": [not_ours]},
        "rules": [rule],
        "sideEffects": webhook.side_effects,
        "timeoutSeconds": webhook.timeout_seconds,
    }
