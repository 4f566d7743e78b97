"""Rights of AWS Lambda functions in the cluster, by the groups of their access entries."""

from ultrascale.documents import JsonObject
from ultrascale.plan.model import NodePoolPlan
from ultrascale.plan.names import calendar_group
from ultrascale_k8s._rbac import binding, groups, role, rule

_CALENDAR = "block-calendar"


def block_calendar_objects(plan: NodePoolPlan) -> list[JsonObject]:
    """Return the rights of the block calendar of a static NodePool.

    The function scales the NodePool, counts and cordons its nodes, and sends warnings. RBAC cannot
    limit nodes by labels: the function may cordon any node, and cordons only nodes of its pool.
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
