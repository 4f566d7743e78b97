"""EKS add-ons: a stack for add-ons that nodes need, and one for add-ons that need nodes."""

from collections.abc import Sequence

from ultrascale.plan.model import AddonPlan, InterfaceCleanerPlan
from ultrascale.plan.stacks import StackName
from ultrascale_constructs.addon import Addon
from ultrascale_stacks.cluster import ClusterStacks, LayerStack


class AddonsStack(LayerStack):
    """Defines a set of EKS add-ons."""

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
            cluster: The stacks that are defined before it.
            name: Its name.
            addons: The add-ons.
            cleaner: Deletes interfaces of ended nodes for all nodes; None: each node does it.
        """
        super().__init__(cluster, name)
        cluster_name = cluster.plan.name
        for addon in addons:
            Addon(self, addon.name, plan=addon, cluster_name=cluster_name)
        if cleaner is not None:
            from ultrascale_constructs.interface_cleaner import InterfaceCleaner

            InterfaceCleaner(self, "InterfaceCleaner", plan=cleaner, cluster_name=cluster_name)
