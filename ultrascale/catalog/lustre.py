"""Amazon FSx for Lustre: legal sizes, ports, metadata IOPS and clients of PERSISTENT_2 on SSD.

Sources:
    https://docs.aws.amazon.com/fsx/latest/LustreGuide/using-fsx-lustre.html
    https://docs.aws.amazon.com/fsx/latest/LustreGuide/efa-file-systems.html
    https://docs.aws.amazon.com/fsx/latest/LustreGuide/limit-access-security-groups.html
    https://docs.aws.amazon.com/fsx/latest/LustreGuide/managing-metadata-performance.html
"""

from collections.abc import Mapping
from types import MappingProxyType

from ultrascale.catalog._model import InstanceSpec
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

# First and last TCP port between Lustre servers and clients.
PORT_RANGES = ((988, 988), (1018, 1023))

# Default quota on PERSISTENT_2 SSD storage, per account and Region.
STORAGE_QUOTA_GIB = 100_800

# Most that one client gets, in Gbps.
CLIENT_TCP_GBPS = 100
CLIENT_EFA_GBPS = 700
CLIENT_EFA_GPUDIRECT_GBPS = 1200

# EFA clients need this Nitro version, and these families are none although they have it.
EFA_CLIENT_NITRO_VERSION = 4
NOT_EFA_CLIENT_FAMILIES = frozenset({"trn2", "trn2u"})

# AUTOMATIC metadata IOPS up to a capacity in GiB; from the last one on they grow with the size.
_METADATA_IOPS_UP_TO_GIB = ((1200, 1500), (2400, 3000), (9600, 6000), (45600, 12000))
_METADATA_IOPS_PER_STEP = 12000
_METADATA_STEP_GIB = 24000


def is_capacity(capacity_gib: int, *, tier: int, efa: bool) -> bool:
    """Return whether a file system may have this size.

    Args:
        capacity_gib: Storage capacity, in GiB.
        tier: Throughput, in MB/s per TiB.
        efa: Whether clients reach it over EFA.

    Raises:
        CatalogError: There is no such throughput tier.
    """
    step = _step(tier, efa=efa)
    if not efa and capacity_gib == SMALLEST_CAPACITY_GIB:
        return True
    return capacity_gib >= step and capacity_gib % step == 0


def nearest_capacities(capacity_gib: int, *, tier: int, efa: bool) -> tuple[int, ...]:
    """Return the next smaller and the next larger legal size, in GiB, for an error text.

    Below the smallest size only that one is returned; a legal size is its own only neighbour.

    Args:
        capacity_gib: Storage capacity asked for, in GiB.
        tier: Throughput, in MB/s per TiB.
        efa: Whether clients reach it over EFA.

    Raises:
        CatalogError: There is no such throughput tier.
    """
    if is_capacity(capacity_gib, tier=tier, efa=efa):
        return (capacity_gib,)
    step = _step(tier, efa=efa)
    below = capacity_gib // step * step if capacity_gib > 0 else 0
    around = {below, below + step}
    if not efa:
        around.add(SMALLEST_CAPACITY_GIB)
    smaller = [size for size in around if 0 < size < capacity_gib]
    larger = [size for size in around if size > capacity_gib]
    return (*([max(smaller)] if smaller else []), min(larger))


def automatic_metadata_iops(capacity_gib: int) -> int:
    """Return the metadata IOPS that FSx provisions in AUTOMATIC mode for a legal size.

    From 48,000 GiB on, FSx gives 12,000 for every full 24,000 GiB. No source says what the rest
    of a size that is no multiple of it gives; it is not counted here.
    """
    for largest_gib, iops in _METADATA_IOPS_UP_TO_GIB:
        if capacity_gib <= largest_gib:
            return iops
    return capacity_gib // _METADATA_STEP_GIB * _METADATA_IOPS_PER_STEP


def is_efa_client(spec: InstanceSpec) -> bool:
    """Return whether instances of a type reach an EFA-enabled file system over EFA.

    Raises:
        CatalogError: The catalog does not know the type's EFA cards or Nitro version.
    """
    if spec.family in NOT_EFA_CLIENT_FAMILIES or not spec.efa_cards:
        return False
    return spec.nitro_version >= EFA_CLIENT_NITRO_VERSION


def _step(tier: int, *, efa: bool) -> int:
    if tier not in EFA_CAPACITY_STEP_GIB:
        known = ", ".join(str(known) for known in THROUGHPUT_TIERS_MBPS_PER_TIB)
        message = f"unknown throughput tier, got {tier} MB/s per TiB; use one of {known}"
        raise CatalogError(message)
    return EFA_CAPACITY_STEP_GIB[tier] if efa else CAPACITY_STEP_GIB
