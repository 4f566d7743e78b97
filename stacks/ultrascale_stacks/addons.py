"""EKS add-ons: a stack for add-ons that nodes need, and a stack for add-ons that need nodes."""

from collections.abc import Sequence

from ultrascale.plan.model import AddonPlan, InterfaceCleanerPlan
from ultrascale.plan.stacks import StackName
from ultrascale_constructs.addon import Addon
from ultrascale_stacks.cluster import ClusterStacks, LayerStack


class AddonsStack(LayerStack):
    """Stack of a set of EKS add-ons."""

    def __init__(
        self,
        cluster: ClusterStacks,
        name: StackName,
        *,
        addons: Sequence[AddonPlan],
        cleaner: InterfaceCleanerPlan | None = None,
    ) -> None:
        """Define the stack.

        Args:
            cluster: The cluster's stacks that are defined before this one.
            name: Name of the stack.
            addons: The stack's add-ons.
            cleaner: Deletes the interfaces of ended nodes; None: each node deletes its own.
        """
        super().__init__(cluster, name)
        cluster_name = cluster.plan.name
        for addon in addons:
            Addon(self, addon.name, plan=addon, cluster_name=cluster_name)
        if cleaner is not None:
            from ultrascale_constructs.interface_cleaner import InterfaceCleaner

            InterfaceCleaner(self, "InterfaceCleaner", plan=cleaner, cluster_name=cluster_name)
