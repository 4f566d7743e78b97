"""Service quotas that limit the size of a cluster, before AWS raises them.

An account may have higher values: only Service Quotas knows them.

Sources:
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-resource-limits.html
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/using-spot-limits.html
    https://docs.aws.amazon.com/eks/latest/userguide/service-quotas.html
    https://docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html
    https://docs.aws.amazon.com/fsx/latest/LustreGuide/limits.html
    https://docs.aws.amazon.com/AmazonECR/latest/userguide/service-quotas.html
    https://docs.aws.amazon.com/general/latest/gr/eks.html
    https://docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-limits.html
"""

from collections.abc import Mapping
from functools import cache
from typing import Literal

from ultrascale.catalog.instance_types import INSTANCE_TYPES
from ultrascale.catalog.tables import Row, read_rows

_BLOCKS = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-capacity-blocks.html"

QuotaKey = Literal[
    "network-interfaces",
    "network-address-usage",
    "ipv4-ranges",
    "gp3-storage",
    "interface-endpoints",
    "clusters",
    "node-groups",
    "nodes-of-a-group",
    "access-entries",
    "pod-identities",
    "vpcs",
    "elastic-addresses",
    "lustre-storage",
    "lustre-file-systems",
    "load-balancers",
    "target-groups",
    "security-group-rules",
    "image-manifests",
    "image-layers",
    "image-tokens",
    "hyperpod-instances",
    "all-hyperpod-instances",
]
"""Name that this product gives a quota, to look it up."""


class Quota(Row, frozen=True, kw_only=True):
    """A service quota."""

    key: QuotaKey | None = None
    """Name that this product gives the quota; None if it is looked up only by its code."""
    code: str = ""
    """Its code in Service Quotas; empty where Service Quotas lacks it."""
    service: str
    """Code of its service in Service Quotas."""
    name: str
    """Its name in Service Quotas."""
    unit: str
    """Unit of its values."""
    default: int | None = None
    """Value before AWS raises it; None where no page states a value."""
    most: int | None = None
    """Largest published value that AWS grants; None where AWS publishes none.

    For a quota that AWS does not raise, equal to `default`.
    """
    source: str
    """Page that states the quota."""


BLOCKS = "blocks"
"""Unit of the quotas on Capacity Blocks: assumed."""

BLOCKS_DOUBT = (
    "AWS does not say whether it counts blocks or vCPUs, and users read it both ways: ask AWS "
    "Support where the block cannot be bought"
)


def quota(key: QuotaKey) -> Quota:
    """Return the quota that this product names ``key``."""
    return next(row for row in _quotas() if row.key == key)


def service_quotas() -> Mapping[str, Quota]:
    """Return every quota of Service Quotas by its code."""
    return {**{row.code: row for row in _quotas() if row.code}, **_capacity_blocks()}


def service_quota(code: str) -> Quota:
    """Return the quota with a code of Service Quotas.

    Raises:
        KeyError: The catalog has no such quota.
    """
    return next((row for row in _quotas() if code == row.code), None) or _capacity_blocks()[code]


@cache
def _quotas() -> tuple[Quota, ...]:
    return read_rows("quotas.csv", Quota)


def _capacity_blocks() -> Mapping[str, Quota]:
    """Return the quotas on Capacity Blocks, one for each code that an instance type has.

    Several families may share a quota: its name contains the family with the shortest name.
    """
    families: dict[str, str] = {}
    for spec in INSTANCE_TYPES.values():
        if spec.knows("capacity_block_quota_code"):
            code = spec.capacity_block_quota_code
            families[code] = min(families.get(code, spec.family), spec.family, key=len)
    return {
        code: Quota(
            code=code,
            service="ec2",
            name=f"Concurrent {_family_title(family)} Capacity Blocks per account",
            unit=BLOCKS,
            default=0,
            source=_BLOCKS,
        )
        for code, family in families.items()
    }


def _family_title(family: str) -> str:
    """Return a family in the spelling of Service Quotas: ``P5en``, ``P6e-GB200``."""
    series, _, chip = family.partition("-")
    return f"{series.capitalize()}-{chip.upper()}" if chip else series.capitalize()


# Network Address Usage units: one for each interface, address and prefix, more for resources that
# serve a zone.
# Source: https://docs.aws.amazon.com/vpc/latest/userguide/network-address-usage.html
ADDRESS_USAGE_OF_GATEWAYS = 6

# Token bucket of RunInstances: instances at once, then instances a second.
# Source: https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html
RUN_INSTANCES_AT_ONCE = 1_000
RUN_INSTANCES_PER_SECOND = 2
RUN_INSTANCES_SOURCE = "https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html"
