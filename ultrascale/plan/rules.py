"""Rules that the plan adds to those of the cluster file, each beside the code that needs it."""

from ultrascale import config
from ultrascale.plan.model import ClusterPlan, NetworkPlan

rule = config.Rules(given=(config.Parts, ClusterPlan))
"""Rules of parts of a file that cannot be planned yet, and rules of a whole plan."""


@rule.fact()
def network_of(plan: ClusterPlan) -> NetworkPlan:
    """Return the network of a plan."""
    return plan.network
