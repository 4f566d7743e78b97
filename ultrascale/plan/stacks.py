"""The stacks that a cluster may have in its account."""

from ultrascale.config.pools import RESERVED_NAMES
from ultrascale.plan import names
from ultrascale.plan.model import ClusterPlan


def stack_names(plan: ClusterPlan) -> frozenset[str]:
    """Return every name that a stack of ``plan`` may have."""
    layers = RESERVED_NAMES | {pool.name for pool in plan.all_pools}
    return frozenset(names.stack(plan.name, layer) for layer in layers)
