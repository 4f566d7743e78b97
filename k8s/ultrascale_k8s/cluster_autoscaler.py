"""The Cluster Autoscaler."""

from collections.abc import Iterator

from ultrascale.documents import JsonObject
from ultrascale.plan.model import ClusterAutoscalerPlan
from ultrascale.plan.names import CLUSTER_AUTOSCALER_ACCOUNT, SYSTEM_NAMESPACE
from ultrascale_k8s._pods import (
    deployment,
    environment,
    http_probe,
    resources,
    restricted_container,
    system_pod,
)
from ultrascale_k8s._rbac import account_with_rules, rule
from ultrascale_k8s.upstream import upstream_rules

_NAME = CLUSTER_AUTOSCALER_ACCOUNT
_PORT = 8085
_STATUS = "cluster-autoscaler-status"
# `nobody`, as in upstream's manifest.
_USER = 65534
# Rights of upstream's manifest of 1.36. Since 1.35 the autoscaler reads the objects of dynamic
# resource allocation, even if none exist. Source:
# https://github.com/kubernetes/autoscaler/issues/8678 Source:
# https://github.com/kubernetes/autoscaler/pull/10278
_ROLES = "cluster-autoscaler-roles"


def cluster_autoscaler_objects(plan: ClusterAutoscalerPlan) -> Iterator[JsonObject]:
    """Yield the controller that sizes node groups by the pods that wait for nodes.

    The autoscaler sees pods that their scheduler marks unschedulable. In a waiting gang, Volcano
    marks so only the pods that fit nowhere, and marks `Schedulable` the pods that would fit: the
    autoscaler then takes the nodes of these for idle, and the gang may wait until those nodes are
    gone.

    Source:
    https://github.com/kubernetes/autoscaler/blob/cluster-autoscaler-1.36.1/cluster-autoscaler/FAQ.md
    Source: https://github.com/volcano-sh/volcano/issues/3976
    """
    yield from account_with_rules(
        _NAME,
        cluster=upstream_rules(_ROLES, _NAME),
        own=(
            rule("configmaps", verbs=("create", "list", "watch")),
            rule("configmaps", verbs=("get", "update", "delete"), names=(_STATUS,)),
            rule("leases", verbs=("create",), group="coordination.k8s.io"),
            rule("leases", verbs=("get", "update"), group="coordination.k8s.io", names=(_NAME,)),
        ),
    )
    container: JsonObject = {
        "name": _NAME,
        "image": plan.image,
        "command": ["./cluster-autoscaler"],
        "args": autoscaler_arguments(plan),
        # Otherwise the autoscaler would read instance metadata, which pods cannot reach.
        "env": environment({"AWS_REGION": plan.region}),
        "ports": [{"name": "http", "containerPort": _PORT}],
        "livenessProbe": http_probe("/health-check", _PORT, periodSeconds=10, failureThreshold=3),
        "securityContext": restricted_container(),
        "resources": resources(cpu="100m", memory=plan.memory, memory_limit=plan.memory),
    }
    yield deployment(
        _NAME,
        system_pod([container], account=_NAME, user=_USER),
        # One replica: a second one would only wait for the lease, and the work can wait for a
        # restart.
        replicas=1,
        annotations={"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"},
    )


def autoscaler_arguments(plan: ClusterAutoscalerPlan) -> list[str]:
    """Return the arguments that differ from the defaults, or on which jobs depend.

    Source:
    https://github.com/kubernetes/autoscaler/blob/cluster-autoscaler-1.36.1/cluster-autoscaler/FAQ.md#what-are-the-parameters-to-ca
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
