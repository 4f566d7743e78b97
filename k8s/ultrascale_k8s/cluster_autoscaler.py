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
# `nobody`, as upstream's manifest has it.
_USER = 65534
# Of upstream's manifest of 1.36. Since 1.35 it reads the objects of dynamic resource allocation
# whether any exist or not.
# Source: https://github.com/kubernetes/autoscaler/issues/8678
# Source: https://github.com/kubernetes/autoscaler/pull/10278
_ROLES = "cluster-autoscaler-roles"


def cluster_autoscaler_objects(plan: ClusterAutoscalerPlan) -> Iterator[JsonObject]:
    """Yield the controller that sizes node groups by the pods that wait for them.

    It sees pods that their scheduler calls unschedulable. Volcano says so of the pods of a waiting
    gang that fit nowhere, and `Schedulable` of those that would fit: the autoscaler then takes
    their nodes for free, and a gang that would fit in part may wait until those nodes are gone.

    Source: https://github.com/kubernetes/autoscaler/blob/cluster-autoscaler-1.36.1/cluster-autoscaler/FAQ.md
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
        # Instance metadata, where it would look otherwise, is out of a pod's reach.
        "env": environment({"AWS_REGION": plan.region}),
        "ports": [{"name": "http", "containerPort": _PORT}],
        "livenessProbe": http_probe("/health-check", _PORT, periodSeconds=10, failureThreshold=3),
        "securityContext": restricted_container(),
        "resources": resources(cpu="100m", memory=plan.memory, memory_limit=plan.memory),
    }
    yield deployment(
        _NAME,
        system_pod([container], account=_NAME, user=_USER),
        # Another one would only wait for the lease: what it does can wait that long, too.
        replicas=1,
        annotations={"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"},
    )


def autoscaler_arguments(plan: ClusterAutoscalerPlan) -> list[str]:
    """Return the arguments: what differs from the defaults, and what no job must lose.

    Source: https://github.com/kubernetes/autoscaler/blob/cluster-autoscaler-1.36.1/cluster-autoscaler/FAQ.md#what-are-the-parameters-to-ca
    """
    tags = ",".join(f"{key}={value}" for key, value in plan.discovery_tags.items())
    # Never the static list of instance types, which lacks those that are newer than the release:
    # the live one comes from EC2, which has a VPC endpoint.
    # Source: https://github.com/kubernetes/autoscaler/pull/4468
    return [
        "--cloud-provider=aws",
        f"--node-group-auto-discovery=asg:tag={tags}",
        f"--namespace={SYSTEM_NAMESPACE}",
        "--expander=least-waste",
        # An instance that still boots would be terminated, and its capacity gone to somebody else.
        "--max-node-provision-time=30m",
        # Groups of one zone are not alike: data and reservations are there or are not.
        "--balance-similar-node-groups=false",
        # A pool that grows must not keep the idle nodes of every other pool.
        "--scale-down-delay-type-local=true",
        # The device plugins of an empty node request CPU.
        "--ignore-daemonsets-utilization=true",
        # A Volcano job's pods belong to a controller that it does not know.
        "--skip-nodes-with-custom-controller-pods=true",
        "--skip-nodes-with-local-storage=true",
        "--skip-nodes-with-system-pods=true",
        # Pods of a negative priority are pods as well: it would kill them and launch no node.
        "--expendable-pods-priority-cutoff=-2147483648",
        # The groups' own sizes bound the fleet; the defaults end below 1,700 nodes of P5.
        "--cores-total=0:2147483647",
        "--memory-total=0:2147483647",
    ]
