"""The rights of the function that keeps the block calendar of a static NodePool."""

import cdk8s
from cdk8s_plus_27 import k8s as kube
from constructs import Construct

from ultrascale.plan.model import NodePoolPlan
from ultrascale.plan.names import calendar_group
from ultrascale_k8s._pods import metadata
from ultrascale_k8s._rbac import rule

_COMPONENT = "block-calendar"
_RBAC_GROUP = "rbac.authorization.k8s.io"


class BlockCalendarChart(cdk8s.Chart):
    """Defines what the function may do, as a member of the group that its access entry names.

    A chart of its own, so that the rights go with the pool.
    """

    def __init__(self, scope: Construct, id: str, *, plan: NodePoolPlan) -> None:
        super().__init__(scope, id, disable_resource_name_hashes=True)
        name = calendar_group(plan.name)
        kube.KubeClusterRole(
            self, "Role", metadata=metadata(name, component=_COMPONENT), rules=rules(plan)
        )
        kube.KubeClusterRoleBinding(
            self,
            "Binding",
            metadata=metadata(name, component=_COMPONENT),
            role_ref=kube.RoleRef(api_group=_RBAC_GROUP, kind="ClusterRole", name=name),
            subjects=[kube.Subject(api_group=_RBAC_GROUP, kind="Group", name=name)],
        )


def rules(plan: NodePoolPlan) -> list[kube.PolicyRule]:
    """Return what the function may do: scale its NodePool, cordon nodes, and warn.

    RBAC cannot limit nodes by their labels: it may cordon any node, and cordons those of its pool.
    """
    return [
        rule("nodepools", verbs=("get", "patch"), group="karpenter.sh", names=(plan.name,)),
        rule("nodes", verbs=("list", "patch")),
        rule("pods", verbs=("list",)),
        rule("events", verbs=("create",)),
    ]
