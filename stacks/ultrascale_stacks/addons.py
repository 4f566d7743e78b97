"""EKS add-ons: a stack for add-ons that nodes need, and one for add-ons that need nodes."""

from collections.abc import Sequence

from aws_cdk import Stack
from constructs import Construct

from ultrascale.plan.model import AddonPlan, ClusterPlan, InterfaceCleanerPlan
from ultrascale_constructs.addon import Addon
from ultrascale_stacks.deployment import stack_properties


class AddonsStack(Stack):
    """Defines a set of EKS add-ons."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: ClusterPlan,
        addons: Sequence[AddonPlan],
        cleaner: InterfaceCleanerPlan | None = None,
    ) -> None:
        """Define the stack.

        Args:
            scope: Parent.
            id: Name of the stack.
            plan: The cluster.
            addons: Its add-ons.
            cleaner: Deletes interfaces of ended nodes for all nodes; None: each node does it.
        """
        super().__init__(scope, id, **stack_properties(plan))
        for addon in addons:
            Addon(self, addon.name, plan=addon, cluster_name=plan.name)
        if cleaner is not None:
            from ultrascale_constructs.interface_cleaner import InterfaceCleaner

            InterfaceCleaner(self, "InterfaceCleaner", plan=cleaner, cluster_name=plan.name)
