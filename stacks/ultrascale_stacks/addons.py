"""EKS add-ons: those that nodes need, and those that need nodes."""

from collections.abc import Sequence

from aws_cdk import Stack
from constructs import Construct

from ultrascale.plan.model import AddonPlan, ClusterPlan
from ultrascale_constructs.addon import Addon
from ultrascale_stacks.deployment import stack_properties


class AddonsStack(Stack):
    """Defines a set of EKS add-ons."""

    def __init__(
        self, scope: Construct, id: str, *, plan: ClusterPlan, addons: Sequence[AddonPlan]
    ) -> None:
        super().__init__(scope, id, **stack_properties(plan))
        for addon in addons:
            Addon(self, addon.name, plan=addon, cluster_name=plan.name)
