"""On-Demand prices of EC2, Linux, shared tenancy, in US dollars for an hour.

They are dated, and only of some Regions: whoever shows one says the date, and says of a Region or
a type without one that there is none. China's Regions, which charge in yuan, are left out.
"""

from collections.abc import Iterable, Mapping
from datetime import date
from types import MappingProxyType

from ultrascale.catalog.instance_types import INSTANCE_TYPES

# Generated from the AWS Price List Query API.
SOURCE = "https://github.com/aws/karpenter-provider-aws/tree/main/pkg/providers/pricing"
SEEN = date(2026, 7, 20)

REGIONS = frozenset(region for spec in INSTANCE_TYPES.values() for region in spec.usd_per_hour)
"""Regions of which there are prices."""


# What EKS takes for a cluster, and for a provisioned control plane on top of that, in us-east-1.
# The first page is the one to look them up on; the numbers were read on the second one.
CONTROL_PLANE_REGION = "us-east-1"
CLUSTER_USD_PER_HOUR = 0.10
TIER_USD_PER_HOUR: Mapping[str, float] = MappingProxyType(
    {"standard": 0.0, "tier-xl": 1.65, "tier-2xl": 3.40, "tier-4xl": 6.90, "tier-8xl": 13.90}
)
CONTROL_PLANE_SEEN = date(2026, 4, 1)
CONTROL_PLANE_SOURCES = (
    "https://aws.amazon.com/eks/pricing/",
    "https://cloudburn.io/blog/amazon-eks-pricing",
)


def on_demand(region: str, instance_types: Iterable[str]) -> Mapping[str, float]:
    """Return the prices of those of ``instance_types`` of which one is known.

    Args:
        region: AWS Region.
        instance_types: EC2 names.
    """
    priced = {name: INSTANCE_TYPES[name] for name in instance_types if name in INSTANCE_TYPES}
    return {
        name: spec.usd_per_hour[region]
        for name, spec in priced.items()
        if region in spec.usd_per_hour
    }


def on_demand_near(region: str, instance_type: str) -> tuple[float, str] | None:
    """Return a price of ``instance_type`` and the Region that it is of; None where none is known.

    Without a price in ``region`` it is the lowest of the others.

    Args:
        region: AWS Region.
        instance_type: EC2 name.
    """
    if instance_type not in INSTANCE_TYPES:
        return None
    known = INSTANCE_TYPES[instance_type].usd_per_hour
    if region in known:
        return known[region], region
    return min(((price, name) for name, price in known.items()), default=None)
