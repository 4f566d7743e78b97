"""Deletion of network interfaces that ended nodes left."""

from collections.abc import Sequence

from ultrascale.catalog import vpc
from ultrascale.plan import retention
from ultrascale.plan.model import AddonPlan, InterfaceCleanerPlan, ScalePlan

_HOURLY = 60
# The plugin attaches an interface seconds after it has made it.
_LEAST_MINUTES = 30
# EC2 takes five deletions a second of an account: the rest waits for the next hour.
_MOST = 2_000
_TIMEOUT_SECONDS = 900


def plan_interface_cleaner(
    scale: ScalePlan, addons: Sequence[AddonPlan]
) -> InterfaceCleanerPlan | None:
    """Return the function that deletes them; None where each node does, or EKS Auto Mode."""
    if scale.node_cleanup or not any(addon.name == "vpc-cni" for addon in addons):
        return None
    return InterfaceCleanerPlan(
        cluster_tag=vpc.CLUSTER_TAG,
        made_tag=vpc.MADE_TAG,
        interval_minutes=_HOURLY,
        least_minutes=_LEAST_MINUTES,
        most=_MOST,
        timeout_seconds=_TIMEOUT_SECONDS,
        log_retention_days=retention.LOG_DAYS,
    )
