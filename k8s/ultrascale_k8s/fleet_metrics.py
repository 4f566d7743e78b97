"""The rights of the function that measures the fleet."""

from collections.abc import Iterator

import cdk8s
from cdk8s_plus_27 import k8s as kube
from constructs import Construct

from ultrascale.plan.model import FleetMetricsPlan
from ultrascale_k8s._pods import metadata
from ultrascale_k8s._rbac import rule

_COMPONENT = "fleet-metrics"
_RBAC_GROUP = "rbac.authorization.k8s.io"


class FleetMetricsChart(cdk8s.Chart):
    """Defines what the function may do, as a member of the group that its access entry names."""

    def __init__(self, scope: Construct, id: str, *, plan: FleetMetricsPlan) -> None:
        super().__init__(scope, id, disable_resource_name_hashes=True)
        name = plan.group
        kube.KubeClusterRole(
            self,
            "Role",
            metadata=metadata(name, component=_COMPONENT),
            rules=[*rules(plan)],
        )
        kube.KubeClusterRoleBinding(
            self,
            "Binding",
            metadata=metadata(name, component=_COMPONENT),
            role_ref=kube.RoleRef(api_group=_RBAC_GROUP, kind="ClusterRole", name=name),
            subjects=[kube.Subject(api_group=_RBAC_GROUP, kind="Group", name=name)],
        )


def rules(plan: FleetMetricsPlan) -> Iterator[kube.PolicyRule]:
    """Yield what the function may do: list what it counts, and change nothing."""
    yield rule("nodes", "pods", verbs=("list",))
    for group, kind in plan.queue_kinds.items():
        yield rule(kind, verbs=("list",), group=group)
