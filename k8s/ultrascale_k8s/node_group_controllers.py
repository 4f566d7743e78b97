"""The Cluster Autoscaler and the Node Termination Handler."""

from collections.abc import Iterator, Mapping

from ultrascale.documents import JsonObject
from ultrascale.plan.model import ClusterAutoscalerPlan, TerminationHandlerPlan
from ultrascale.plan.names import (
    CLUSTER_AUTOSCALER_ACCOUNT,
    SYSTEM_NAMESPACE,
    TERMINATION_HANDLER_ACCOUNT,
)
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
from ultrascale_k8s.upstream import upstream_rules

# --- The Cluster Autoscaler -----------------------------------------------------------------------


_AUTOSCALER = CLUSTER_AUTOSCALER_ACCOUNT
_AUTOSCALER_PORT = 8085
_STATUS = "cluster-autoscaler-status"
# `nobody`, as in upstream's manifest.
_AUTOSCALER_USER = 65534
# Rights of upstream's manifest of 1.36. Since 1.35 the autoscaler reads the objects of dynamic
# resource allocation, even if none exist.
# Source: https://github.com/kubernetes/autoscaler/issues/8678
# Source: https://github.com/kubernetes/autoscaler/pull/10278
_ROLES = "cluster-autoscaler-roles"


def cluster_autoscaler_objects(plan: ClusterAutoscalerPlan) -> Iterator[JsonObject]:
    """Yield the controller that sizes node groups by the pods that wait for nodes.

    The autoscaler sees pods that their scheduler marks unschedulable. In a waiting gang, Volcano
    marks so only the pods that fit nowhere, and marks `Schedulable` the pods that would fit: the
    autoscaler then takes the nodes of these for idle, and the gang may wait until those nodes are
    gone.

    Source: https://github.com/kubernetes/autoscaler/blob/cluster-autoscaler-1.36.1/cluster-autoscaler/FAQ.md
    Source: https://github.com/volcano-sh/volcano/issues/3976
    """
    yield from account_with_rules(
        _AUTOSCALER,
        cluster=upstream_rules(_ROLES, _AUTOSCALER),
        own=(
            rule("configmaps", verbs=("create", "list", "watch")),
            rule("configmaps", verbs=("get", "update", "delete"), names=(_STATUS,)),
            rule("leases", verbs=("create",), group="coordination.k8s.io"),
            rule(
                "leases", verbs=("get", "update"), group="coordination.k8s.io", names=(_AUTOSCALER,)
            ),
        ),
    )
    container: JsonObject = {
        "name": _AUTOSCALER,
        "image": plan.image,
        "command": ["./cluster-autoscaler"],
        "args": autoscaler_arguments(plan),
        # Otherwise the autoscaler would read instance metadata, which pods cannot reach.
        "env": environment({"AWS_REGION": plan.region}),
        "ports": [{"name": "http", "containerPort": _AUTOSCALER_PORT}],
        "livenessProbe": http_probe(
            "/health-check", _AUTOSCALER_PORT, periodSeconds=10, failureThreshold=3
        ),
        "securityContext": restricted_container(),
        "resources": resources(cpu="100m", memory=plan.memory, memory_limit=plan.memory),
    }
    yield deployment(
        _AUTOSCALER,
        system_pod([container], account=_AUTOSCALER, user=_AUTOSCALER_USER),
        # One replica: a second one would only wait for the lease, and the work can wait for a
        # restart.
        replicas=1,
        annotations={"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"},
    )


def autoscaler_arguments(plan: ClusterAutoscalerPlan) -> list[str]:
    """Return the arguments that differ from the defaults, or on which jobs depend.

    Source: https://github.com/kubernetes/autoscaler/blob/cluster-autoscaler-1.36.1/cluster-autoscaler/FAQ.md#what-are-the-parameters-to-ca
    """
    tags = ",".join(f"{key}={value}" for key, value in plan.discovery_tags.items())
    # Never the static list of instance types, which lacks types newer than the release:
    # the live list comes from EC2, which has a VPC endpoint.
    # Source: https://github.com/kubernetes/autoscaler/pull/4468
    return [
        "--cloud-provider=aws",
        f"--node-group-auto-discovery=asg:tag={tags}",
        f"--namespace={SYSTEM_NAMESPACE}",
        "--expander=least-waste",
        # Otherwise the autoscaler would end an instance that still boots, and its capacity would be
        # lost.
        "--max-node-provision-time=30m",
        # Off: groups of the same zone differ in data and reservations.
        "--balance-similar-node-groups=false",
        # A growing pool must not keep the idle nodes of all other pools.
        "--scale-down-delay-type-local=true",
        # On: the device plugins of an otherwise empty node request CPU.
        "--ignore-daemonsets-utilization=true",
        # The autoscaler does not know the controller of a Volcano job's pods.
        "--skip-nodes-with-custom-controller-pods=true",
        "--skip-nodes-with-local-storage=true",
        "--skip-nodes-with-system-pods=true",
        # For pods of negative priority too: the autoscaler would otherwise kill them, and launch no
        # nodes.
        "--expendable-pods-priority-cutoff=-2147483648",
        # The groups' own sizes bound the fleet; the defaults end below 1,700 nodes of P5.
        "--cores-total=0:2147483647",
        "--memory-total=0:2147483647",
    ]


# --- The AWS Node Termination Handler -------------------------------------------------------------


_HANDLER = TERMINATION_HANDLER_ACCOUNT
_HANDLER_PORT = 8080
# User of upstream's chart.
_HANDLER_USER = 1000
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
    yield from account_with_rules(_HANDLER, cluster=_RULES)
    # By its own node's name the handler knows which pod it must not evict.
    own = {
        "NODE_NAME": "spec.nodeName",
        "POD_NAME": "metadata.name",
        "NAMESPACE": "metadata.namespace",
    }
    container: JsonObject = {
        "name": _HANDLER,
        "image": plan.image,
        "env": environment(handler_environment(plan), fields=own),
        "ports": [{"name": "http", "containerPort": _HANDLER_PORT}],
        "livenessProbe": http_probe(
            "/healthz", _HANDLER_PORT, periodSeconds=10, failureThreshold=3
        ),
        "securityContext": restricted_container(),
        "resources": resources(cpu="50m", memory="64Mi", memory_limit="512Mi"),
    }
    spread = keep_apart(_HANDLER)
    yield deployment(
        _HANDLER,
        system_pod(
            [container], account=_HANDLER, user=_HANDLER_USER, topologySpreadConstraints=spread
        ),
        # A Spot Instance ends two minutes after its notice: about as long as a pod takes to start
        # elsewhere when the handler's own node ends.
        replicas=2,
    )
    yield budget(_HANDLER)


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
        "PROBES_SERVER_PORT": str(_HANDLER_PORT),
        "PROBES_SERVER_ENDPOINT": "/healthz",
    }
