"""Rights of AWS Lambda functions in the cluster, by the groups of their access entries."""

from collections.abc import Iterator, Sequence

import cdk8s
from cdk8s_plus_27 import k8s as kube
from constructs import Construct

from ultrascale.plan.model import FleetMetricsPlan, NodePoolPlan, WriteLatencyPlan
from ultrascale.plan.names import calendar_group
from ultrascale_k8s._pods import metadata
from ultrascale_k8s._rbac import rule

_RBAC_GROUP = "rbac.authorization.k8s.io"
_TOPOLOGY_GROUP = "topology.volcano.sh"
_CALENDAR, _FLEET, _CANARY = "block-calendar", "fleet-metrics", "write-canary"
_SERVICES = "service-metrics"


class BlockCalendarChart(cdk8s.Chart):
    """Defines the rights of the block calendar of a static NodePool.

    A chart of its own, so that the rights go with the pool.
    """

    def __init__(self, scope: Construct, id: str, *, plan: NodePoolPlan) -> None:
        super().__init__(scope, id, disable_resource_name_hashes=True)
        name = calendar_group(plan.name)
        kube.KubeClusterRole(
            self, "Role", metadata=metadata(name, component=_CALENDAR), rules=calendar_rules(plan)
        )
        kube.KubeClusterRoleBinding(
            self,
            "Binding",
            metadata=metadata(name, component=_CALENDAR),
            role_ref=kube.RoleRef(api_group=_RBAC_GROUP, kind="ClusterRole", name=name),
            subjects=[kube.Subject(api_group=_RBAC_GROUP, kind="Group", name=name)],
        )


def calendar_rules(plan: NodePoolPlan) -> list[kube.PolicyRule]:
    """Return the rights to scale the NodePool, to count its nodes, to cordon them and to warn.

    RBAC cannot limit nodes by their labels: the function may cordon any node, and cordons those of
    its pool.
    """
    return [
        rule("nodepools", verbs=("get", "patch"), group="karpenter.sh", names=(plan.name,)),
        rule("nodeclaims", verbs=("list",), group="karpenter.sh"),
        rule("nodes", verbs=("list", "patch")),
        rule("pods", verbs=("list",)),
        rule("events", verbs=("create",)),
    ]


class FleetMetricsChart(cdk8s.Chart):
    """Defines the rights of the function that measures the fleet."""

    def __init__(self, scope: Construct, id: str, *, plan: FleetMetricsPlan) -> None:
        super().__init__(scope, id, disable_resource_name_hashes=True)
        name = plan.group
        kube.KubeClusterRole(
            self,
            "Role",
            metadata=metadata(name, component=_FLEET),
            rules=[*fleet_rules(plan)],
        )
        kube.KubeClusterRoleBinding(
            self,
            "Binding",
            metadata=metadata(name, component=_FLEET),
            role_ref=kube.RoleRef(api_group=_RBAC_GROUP, kind="ClusterRole", name=name),
            subjects=[kube.Subject(api_group=_RBAC_GROUP, kind="Group", name=name)],
        )


class ServiceMetricsChart(cdk8s.Chart):
    """Defines the right of that function to ask the pods of services, behind the API server."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: FleetMetricsPlan,
        namespaces: Sequence[str],
    ) -> None:
        """Define the right.

        Args:
            scope: The cdk8s app.
            id: Id of the chart, and name of its file.
            plan: The function.
            namespaces: Namespaces of the services.
        """
        super().__init__(scope, id, disable_resource_name_hashes=True)
        for namespace in namespaces:
            own = metadata(_SERVICES, namespace=namespace, component=_FLEET)
            kube.KubeRole(
                self,
                f"{namespace}-Role",
                metadata=own,
                # RBAC knows neither ports nor paths: to get is to read whatever a pod serves.
                rules=[rule("pods/proxy", verbs=("get",))],
            )
            kube.KubeRoleBinding(
                self,
                f"{namespace}-Binding",
                metadata=own,
                role_ref=kube.RoleRef(api_group=_RBAC_GROUP, kind="Role", name=_SERVICES),
                subjects=[kube.Subject(api_group=_RBAC_GROUP, kind="Group", name=plan.group)],
            )


def fleet_rules(plan: FleetMetricsPlan) -> Iterator[kube.PolicyRule]:
    """Yield the rights to list nodes, pods, queues and HyperNodes, and to touch one of these."""
    yield rule("nodes", "pods", verbs=("list",))
    for group, kind in plan.queue_kinds.items():
        yield rule(kind, verbs=("list",), group=group)
    if (touched := plan.touched_hyper_node) is not None:
        # RBAC cannot limit what is created by its name.
        yield rule("hypernodes", verbs=("list", "create"), group=_TOPOLOGY_GROUP)
        yield rule("hypernodes", verbs=("delete",), group=_TOPOLOGY_GROUP, names=(touched,))


class WriteCanaryChart(cdk8s.Chart):
    """Defines the Lease that the write canary writes, and its right to it.

    The Lease has no holder, so that applying it again takes it from nobody.
    """

    def __init__(self, scope: Construct, id: str, *, plan: WriteLatencyPlan) -> None:
        super().__init__(scope, id, disable_resource_name_hashes=True)
        own = metadata(plan.lease, namespace=plan.namespace, component=_CANARY)
        kube.KubeLease(self, "Lease", metadata=own)
        kube.KubeRole(
            self,
            "Role",
            metadata=own,
            rules=[
                rule("leases", verbs=("patch",), group="coordination.k8s.io", names=(plan.lease,))
            ],
        )
        group = plan.function.group
        kube.KubeRoleBinding(
            self,
            "Binding",
            metadata=own,
            role_ref=kube.RoleRef(api_group=_RBAC_GROUP, kind="Role", name=plan.lease),
            subjects=[kube.Subject(api_group=_RBAC_GROUP, kind="Group", name=group)],
        )
