"""Service quotas that the size of a cluster runs into, as they stand before AWS raises them.

An account may have been granted more: what holds there, only Service Quotas says.

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
"""Name of ours for a quota that the product looks up by name."""


class Quota(Row, frozen=True, kw_only=True):
    """A service quota."""

    key: QuotaKey | None = None
    """Name of ours; None where it is looked up by its code alone."""
    code: str = ""
    """Its code in Service Quotas; empty where it is no quota of Service Quotas."""
    service: str
    """Code of the service there."""
    name: str
    """Its name there."""
    unit: str
    """Unit of its values."""
    default: int | None = None
    """Value before AWS raises it; None where no page states it."""
    most: int | None = None
    """Most that AWS publishes that it grants; None where it publishes none.

    It is the default itself where that cannot be raised.
    """
    source: str
    """Page that states it."""


BLOCKS = "blocks"
"""Unit that quotas of Capacity Blocks are taken to count."""

BLOCKS_DOUBT = (
    "AWS does not say whether it counts blocks or vCPUs, and users read it both ways: ask AWS "
    "Support where the block cannot be bought"
)


def quota(key: QuotaKey) -> Quota:
    """Return the quota that we call ``key``."""
    return next(row for row in _quotas() if row.key == key)


def service_quotas() -> Mapping[str, Quota]:
    """Return each quota of Service Quotas, by code."""
    return {**{row.code: row for row in _quotas() if row.code}, **_capacity_blocks()}


def service_quota(code: str) -> Quota:
    """Return the quota of Service Quotas with that code.

    Raises:
        KeyError: The catalog has none.
    """
    return next((row for row in _quotas() if code == row.code), None) or _capacity_blocks()[code]


@cache
def _quotas() -> tuple[Quota, ...]:
    return read_rows("quotas.csv", Quota)


def _capacity_blocks() -> Mapping[str, Quota]:
    """Return the quotas on Capacity Blocks, one for each code that an instance type has.

    Types of several families may share a quota; it is called by the shortest name of a family.
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


# Of each network interface, address and prefix one, of what stands in a zone for others so many.
# Source: https://docs.aws.amazon.com/vpc/latest/userguide/network-address-usage.html
ADDRESS_USAGE_OF_GATEWAYS = 6

# Tokens of RunInstances: so many instances at once, then so many each second.
# Source: https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html
RUN_INSTANCES_AT_ONCE = 1_000
RUN_INSTANCES_PER_SECOND = 2
RUN_INSTANCES_SOURCE = "https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html"
