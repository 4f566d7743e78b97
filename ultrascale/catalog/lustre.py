"""Amazon FSx for Lustre: allowed sizes, ports and clients of PERSISTENT_2 on SSD.

Sources:
    https://docs.aws.amazon.com/fsx/latest/LustreGuide/using-fsx-lustre.html
    https://docs.aws.amazon.com/fsx/latest/LustreGuide/efa-file-systems.html
    https://docs.aws.amazon.com/fsx/latest/LustreGuide/limit-access-security-groups.html
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from ultrascale.catalog import registries
from ultrascale.catalog.instance_types import InstanceType
from ultrascale.errors import CatalogError

DEPLOYMENT_TYPE = "PERSISTENT_2"
LUSTRE_VERSION = "2.15"

THROUGHPUT_TIERS_MBPS_PER_TIB = (125, 250, 500, 1000)

# FSx counts 1.2 TiB as 1,200 GiB.
SMALLEST_CAPACITY_GIB = 1200
CAPACITY_STEP_GIB = 2400
# With EFA, the smallest size and the step between sizes, by throughput tier.
EFA_CAPACITY_STEP_GIB: Mapping[int, int] = MappingProxyType(
    {1000: 4800, 500: 9600, 250: 19200, 125: 38400}
)

# Amazon Linux 2023 has the client as modules of its kernels. No page names a later kernel line.
# Source: https://docs.aws.amazon.com/fsx/latest/LustreGuide/lustre-client-matrix.html
CLIENT_KERNELS = frozenset({"6.1", "6.12"})
"""Kernel lines of Amazon Linux 2023 whose client is known to mount a file system."""

# Clients have version 2.15. No page says that they mount the oldest version, or advises the next.
# Source: https://docs.aws.amazon.com/fsx/latest/LustreGuide/lustre-client-matrix.html
OLD_VERSIONS: Mapping[str, Literal["fail", "warn"]] = MappingProxyType(
    {"2.10": "fail", "2.12": "warn"}
)
"""Lustre versions before `LUSTRE_VERSION`: today's clients cannot mount them, or perhaps not."""

# First and last TCP port that Lustre servers and clients use.
PORT_RANGES = ((988, 988), (1018, 1023))


def dns_name(file_system_id: str, region: str) -> str:
    """Return the DNS name that clients of a file system mount.

    Source: https://docs.aws.amazon.com/fsx/latest/LustreGuide/mounting-ec2-instance.html
    """
    return f"{file_system_id}.fsx.{region}.{registries.domain(region)}"


def is_efa_client(spec: InstanceType) -> bool:
    """Return whether all sources agree that nodes of a type reach a file system over EFA.

    False for types with EFA and Nitro v4 that a source excludes.
    """
    return not spec.knows("efa_lustre_client") or spec.efa_lustre_client


def is_capacity(capacity_gib: int, *, tier: int, efa: bool) -> bool:
    """Return whether FSx allows a file system of this size.

    Args:
        capacity_gib: Storage capacity, in GiB.
        tier: Throughput, in MB/s per TiB.
        efa: Whether clients reach it over EFA.

    Raises:
        CatalogError: There is no such throughput tier.
    """
    step = _capacity_step(tier, efa=efa)
    if not efa and capacity_gib == SMALLEST_CAPACITY_GIB:
        return True
    return capacity_gib >= step and capacity_gib % step == 0


def nearest_capacities(capacity_gib: int, *, tier: int, efa: bool) -> tuple[int, ...]:
    """Return the next smaller and the next larger allowed size, in GiB, for an error text.

    Below the smallest size only that size is returned; an allowed size alone is returned.

    Args:
        capacity_gib: Requested storage capacity, in GiB.
        tier: Throughput, in MB/s per TiB.
        efa: Whether clients reach it over EFA.

    Raises:
        CatalogError: There is no such throughput tier.
    """
    if is_capacity(capacity_gib, tier=tier, efa=efa):
        return (capacity_gib,)
    step = _capacity_step(tier, efa=efa)
    below = capacity_gib // step * step if capacity_gib > 0 else 0
    around = {below, below + step}
    if not efa:
        around.add(SMALLEST_CAPACITY_GIB)
    smaller = [size for size in around if 0 < size < capacity_gib]
    larger = [size for size in around if size > capacity_gib]
    return (*([max(smaller)] if smaller else []), min(larger))


def _capacity_step(tier: int, *, efa: bool) -> int:
    if tier not in EFA_CAPACITY_STEP_GIB:
        known = ", ".join(str(known) for known in THROUGHPUT_TIERS_MBPS_PER_TIB)
        message = f"unknown throughput tier, got {tier} MB/s per TiB; use one of {known}"
        raise CatalogError(message)
    return EFA_CAPACITY_STEP_GIB[tier] if efa else CAPACITY_STEP_GIB
