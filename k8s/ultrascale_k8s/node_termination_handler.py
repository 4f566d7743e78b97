"""The AWS Node Termination Handler."""

from collections.abc import Iterator, Mapping

from ultrascale.documents import JsonObject
from ultrascale.plan.model import TerminationHandlerPlan
from ultrascale.plan.names import TERMINATION_HANDLER_ACCOUNT
from ultrascale_k8s._pods import (
    budget,
    deployment,
    environment,
    http_probe,
    keep_apart,
    resources,
    restricted_container,
    system_pod,
)
from ultrascale_k8s._rbac import account_with_rules, rule

_NAME = TERMINATION_HANDLER_ACCOUNT
_PORT = 8080
# User of upstream's chart.
_USER = 1000
# Rights of upstream's chart in queue mode, without retired API groups.
# Source: https://github.com/aws/aws-node-termination-handler/tree/v1.25.6/config/helm/aws-node-termination-handler
_RULES = (
    rule("nodes", verbs=("get", "list", "patch", "update")),
    rule("pods", verbs=("get", "list")),
    rule("pods/eviction", verbs=("create",)),
    rule("events", verbs=("create", "patch")),
    rule("daemonsets", verbs=("get",), group="apps"),
)


def termination_handler_objects(plan: TerminationHandlerPlan) -> Iterator[JsonObject]:
    """Yield the controller that drains nodes before EC2 ends or reclaims them.

    Two replicas read the same queue. A message that keeps a replica busy for more than 20 s goes to
    the other replica as well; draining a node twice does no harm.

    Source: https://github.com/aws/aws-node-termination-handler#single-instance-vs-multiple-replicas
    """
    yield from account_with_rules(_NAME, cluster=_RULES)
    # By its own node's name the handler knows which pod it must not evict.
    own = {
        "NODE_NAME": "spec.nodeName",
        "POD_NAME": "metadata.name",
        "NAMESPACE": "metadata.namespace",
    }
    container: JsonObject = {
        "name": _NAME,
        "image": plan.image,
        "env": environment(handler_environment(plan), fields=own),
        "ports": [{"name": "http", "containerPort": _PORT}],
        "livenessProbe": http_probe("/healthz", _PORT, periodSeconds=10, failureThreshold=3),
        "securityContext": restricted_container(),
        "resources": resources(cpu="50m", memory="64Mi", memory_limit="512Mi"),
    }
    spread = keep_apart(_NAME)
    yield deployment(
        _NAME,
        system_pod([container], account=_NAME, user=_USER, topologySpreadConstraints=spread),
        # A Spot Instance ends two minutes after its notice: about as long as a pod takes to start
        # elsewhere when the handler's own node ends.
        replicas=2,
    )
    yield budget(_NAME)


def handler_environment(plan: TerminationHandlerPlan) -> Mapping[str, str]:
    """Return the settings, as environment variables.

    Source: https://github.com/aws/aws-node-termination-handler/blob/v1.25.6/pkg/config/config.go
    """
    return {
        "AWS_REGION": plan.region,
        "ENABLE_SQS_TERMINATION_DRAINING": "true",
        "QUEUE_URL": plan.queue_url,
        # Events come from the whole account; instances without the tag belong to other clusters.
        "CHECK_TAG_BEFORE_DRAINING": "true",
        "MANAGED_TAG": plan.managed_tag,
        # Longest time of a drain, and also the time from the drain's start to the announced event.
        "NODE_TERMINATION_GRACE_PERIOD": str(plan.drain_seconds),
        # Each pod gets the grace period of its own specification.
        "POD_TERMINATION_GRACE_PERIOD": "-1",
        "WORKERS": str(plan.workers),
        # The end of an instance whose node is gone, or never joined, need not wait.
        "DELETE_SQS_MSG_IF_NODE_NOT_FOUND": "true",
        "EMIT_KUBERNETES_EVENTS": "true",
        "ENABLE_PROBES_SERVER": "true",
        "PROBES_SERVER_PORT": str(_PORT),
        "PROBES_SERVER_ENDPOINT": "/healthz",
    }
