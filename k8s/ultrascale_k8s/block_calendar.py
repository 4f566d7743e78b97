"""Rights of AWS Lambda functions in the cluster, by the groups of their access entries."""

from ultrascale.documents import JsonObject
from ultrascale.plan.model import NodePoolPlan
from ultrascale.plan.names import calendar_group
from ultrascale_k8s._rbac import binding, groups, role, rule

_CALENDAR = "block-calendar"


def block_calendar_objects(plan: NodePoolPlan) -> list[JsonObject]:
    """Return the rights of the block calendar of a static NodePool.

    It scales the NodePool, counts its nodes, cordons them and warns. RBAC cannot limit nodes by
    labels: the function may cordon any node, and cordons only its pool's.
    """
    name = calendar_group(plan.name)
    rules = [
        rule("nodepools", verbs=("get", "patch"), group="karpenter.sh", names=(plan.name,)),
        rule("nodeclaims", verbs=("list",), group="karpenter.sh"),
        rule("nodes", verbs=("list", "patch")),
        rule("pods", verbs=("list",)),
        rule("events", verbs=("create",)),
    ]
    return [
        role(name, rules, component=_CALENDAR),
        binding(name, groups([name]), component=_CALENDAR),
    ]
