"""Rules that the plan adds to those of the cluster file, each beside the code that knows."""

from ultrascale import config
from ultrascale.plan.model import ClusterPlan, MirrorPlan, NetworkPlan

rule = config.Rules(given=(config.Parts, ClusterPlan))
"""Rules of parts of a file that may not be planned yet, and rules of a whole plan."""


@rule.fact()
def network_of(plan: ClusterPlan) -> NetworkPlan:
    """Return the network of a plan."""
    return plan.network


@rule.fact()
def mirror_of(plan: ClusterPlan) -> MirrorPlan | None:
    """Return the mirror of a plan; None where images come from their publishers."""
    return plan.mirror
