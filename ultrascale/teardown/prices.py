"""Prices of leftovers as far as the catalog knows them, in words and in US dollars an hour.

The hourly price is 0 if it is unknown, or depends on more than the resource.
"""

from ultrascale.catalog import prices
from ultrascale.plan.needs.pools import HOURS_OF_A_MONTH

_WHOSE = f"about, in {prices.REGION}"
Price = tuple[str, float]
UNKNOWN: Price = ("", 0)


def of_type(type: str) -> Price:
    """Return the price of one resource of a type; `UNKNOWN` for a free resource too."""
    hourly = prices.USD_PER_HOUR.get(type)
    if hourly is not None:
        return f"${hourly:g} per hour ({_WHOSE})", hourly
    monthly = prices.USD_PER_MONTH.get(type)
    if monthly is not None:
        words = f"${monthly:g} per month ({_WHOSE})"
        return words, monthly / HOURS_OF_A_MONTH
    stored = prices.USD_PER_GB_MONTH.get(type)
    return UNKNOWN if stored is None else (f"${stored:g} per GB and month ({_WHOSE})", 0)


def of_endpoint(zones: int) -> Price:
    """Return the price of an interface endpoint with a subnet in each of ``zones`` zones."""
    usd = prices.INTERFACE_ENDPOINT_USD_PER_HOUR_AND_ZONE * zones
    return f"${usd:g} per hour ({_WHOSE})", usd


def of_volume(type: str, gib: int) -> Price:
    """Return the price of an EBS volume without its charges for IOPS and throughput.

    Args:
        type: EBS's name of its type; empty where it is not known.
        gib: Its size, in GiB; 0 where it is not known.
    """
    stored = prices.VOLUME_USD_PER_GB_MONTH.get(type)
    return UNKNOWN if stored is None or not gib else _monthly("from ", stored * gib)


def of_snapshot(gib: int) -> Price:
    """Return the highest price of a volume's snapshot, which stores only changed blocks."""
    words, _ = _monthly("up to ", prices.USD_PER_GB_MONTH["AWS::EC2::Snapshot"] * gib)
    return words, 0


def of_lustre(gib: int, throughput_mbps_per_tib: int) -> Price:
    """Return the price of a file system; `UNKNOWN` if its throughput has no known price.

    Args:
        gib: Its capacity, in GiB.
        throughput_mbps_per_tib: Its throughput tier, in MB/s per TiB.
    """
    stored = prices.LUSTRE_USD_PER_GB_MONTH.get(throughput_mbps_per_tib)
    return UNKNOWN if stored is None else _monthly("", stored * gib)


def of_instance(region: str, instance_type: str) -> Price:
    """Return the On-Demand price of an instance.

    Where the Region's price is unknown, the words give another Region's.

    Args:
        region: Its Region.
        instance_type: EC2's name of its type.
    """
    usd = prices.on_demand(region, [instance_type])
    if usd is not None:
        return f"${usd:,.3f} per hour On-Demand", usd
    elsewhere = prices.on_demand(prices.REGION, [instance_type])
    if elsewhere is None:
        return UNKNOWN
    return f"${elsewhere:,.3f} per hour On-Demand in {prices.REGION}, here unknown", 0


def of_cluster(tier: str) -> Price:
    """Return the price of a control plane.

    Args:
        tier: EKS's name of its scaling tier.
    """
    usd = prices.control_plane_usd_per_hour(tier)
    return f"${usd:g} per hour (price of {prices.CONTROL_PLANE_REGION})", usd


def _monthly(begin: str, usd: float) -> Price:
    return f"{begin}${usd:,.2f} per month ({_WHOSE})", usd / HOURS_OF_A_MONTH
