"""Rules of `pools[].repair`: broken nodes by provisioner, and the capacity lost with them."""

from ultrascale.config._errors import Mistakes, refuse
from ultrascale.config._rules import rule
from ultrascale.config.pools import Pool

_NONE = "write none, or leave it out"


@rule
def auto_mode_repairs_by_itself(pool: Pool) -> Mistakes:
    if pool.is_auto_mode and pool.repair in ("none", "reboot"):
        wrong = "EKS Auto Mode replaces broken nodes, and nothing switches that off"
        yield refuse("repair", wrong, "leave it out, or use another provisioner")


@rule
def self_managed_nodes_are_not_repaired(pool: Pool) -> Mistakes:
    if pool.is_self_managed and pool.repair in ("reboot", "replace"):
        wrong = "nothing repairs the nodes of self-managed groups"
        yield refuse("repair", wrong, f"{_NONE}, or use managed-node-group or karpenter")


@rule
def managed_groups_choose_the_action(pool: Pool) -> Mistakes:
    """Yield `reboot`: EKS's overrides name one reason each, so none means every broken node.

    Source: https://docs.aws.amazon.com/eks/latest/APIReference/API_NodeRepairConfigOverrides.html
    """
    if not pool.is_managed or pool.repair not in ("reboot", "replace"):
        return
    if pool.is_reserved:
        wrong = "EKS ends a broken node before it launches another, and may lose the reserved slot"
        todo = f"{_NONE}; karpenter reboots nodes of a static pool"
        yield refuse("repair", wrong, todo)
    elif pool.repair == "reboot":
        wrong = "EKS itself chooses by the fault whether it reboots or replaces a node"
        yield refuse("repair", wrong, "write replace, or none")


@rule
def karpenter_keeps_reserved_slots(pool: Pool) -> Mistakes:
    """Yield repair of a static pool: at its limit of nodes, Karpenter launches no successor.

    Source:
    https://github.com/kubernetes-sigs/karpenter/blob/main/pkg/controllers/disruption/repair.go
    """
    if not pool.is_karpenter or not pool.is_reserved:
        return
    if pool.repair == "replace":
        wrong = "replacing a reserved node gives up its slot, which may be lost"
        yield refuse("repair", wrong, "write reboot for a static pool, or none")
    elif pool.repair == "reboot" and pool.nodes.static is None:
        wrong = (
            "reserved nodes in a pool that scales, where Karpenter replaces a node that a reboot "
            "does not heal"
        )
        yield refuse("repair", wrong, "write nodes.static, or none")
