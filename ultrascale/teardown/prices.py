"""What a thing that stays costs, where the catalog knows it."""

from ultrascale.catalog import prices, standing_prices

_WHOSE = f"about, in {standing_prices.REGION}"


def of_type(type: str) -> str:
    """Return the price of one resource of a type; empty where it is free or unknown."""
    hourly = standing_prices.USD_PER_HOUR.get(type)
    if hourly is not None:
        return f"${hourly:g} per hour ({_WHOSE})"
    if type == "AWS::EC2::VPCEndpoint":
        each = standing_prices.INTERFACE_ENDPOINT_USD_PER_HOUR_AND_ZONE
        return f"${each:g} per hour and zone, unless it is a gateway ({_WHOSE})"
    monthly = standing_prices.USD_PER_MONTH.get(type)
    if monthly is not None:
        return f"${monthly:g} per month ({_WHOSE})"
    stored = standing_prices.USD_PER_GB_MONTH.get(type)
    return "" if stored is None else f"${stored:g} per GB and month ({_WHOSE})"


def of_size(type: str, gib: int) -> str:
    """Return the price of a volume or snapshot of a size, in GiB."""
    stored = standing_prices.USD_PER_GB_MONTH[type]
    return f"up to ${stored * gib:,.2f} per month ({_WHOSE})"


def of_lustre(gib: int, throughput_mbps_per_tib: int) -> str:
    """Return the price of a file system; empty where that of its throughput is unknown.

    Args:
        gib: Its capacity, in GiB.
        throughput_mbps_per_tib: Its throughput tier, in MB/s per TiB.
    """
    stored = standing_prices.LUSTRE_USD_PER_GB_MONTH.get(throughput_mbps_per_tib)
    return "" if stored is None else f"${stored * gib:,.2f} per month ({_WHOSE})"


def of_instance(region: str, instance_type: str) -> tuple[str, float]:
    """Return the On-Demand price of an instance, in words and in US dollars an hour; 0: unknown.

    Where the Region's is not known, the words say that of another one.

    Args:
        region: Its Region.
        instance_type: EC2's name of its type.
    """
    usd = prices.on_demand(region, [instance_type]).get(instance_type)
    if usd is not None:
        return f"${usd:,.3f} per hour On-Demand", usd
    elsewhere = prices.on_demand(standing_prices.REGION, [instance_type]).get(instance_type)
    if elsewhere is None:
        return "", 0
    return f"${elsewhere:,.3f} per hour On-Demand in {standing_prices.REGION}, here unknown", 0


def per_hour(type: str) -> float:
    """Return the hourly price of a type in US dollars; 0 where it has none."""
    return standing_prices.USD_PER_HOUR.get(type, 0)


def of_cluster(tier: str) -> tuple[str, float]:
    """Return the price of a control plane, in words and in US dollars an hour.

    Args:
        tier: EKS's name of its scaling tier.
    """
    usd = prices.CLUSTER_USD_PER_HOUR + prices.TIER_USD_PER_HOUR[tier]
    return f"${usd:g} per hour (price of {prices.CONTROL_PLANE_REGION})", usd
