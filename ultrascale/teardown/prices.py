"""Prices of leftovers as far as the catalog knows them, in words and in US dollars an hour.

The hourly price is 0 if it is unknown, or depends on more than the resource.
"""

from collections.abc import Mapping

from ultrascale.catalog import prices
from ultrascale.plan.needs.pools import HOURS_OF_A_MONTH

# Other Regions charge more or less. Show a price with that note: AWS's pages decide. Of the four
# prices of Lustre, the source states the lowest and the highest, 0.145 and 0.600; the prices of 250
# and 500 MB/s per TiB are interpolated, as all four are linear in ap-northeast-1.
REGION = "us-east-1"
_WHOSE = f"about, in {REGION}"
Price = tuple[str, float]
UNKNOWN: Price = ("", 0)
ITEMS: Mapping[str, tuple[str, str]] = {
    "AWS::EC2::EIP": ("vpc", "public-ipv4"),
    "AWS::EC2::NatGateway": ("vpc", "nat-gateway"),
    "AWS::EC2::Snapshot": ("ebs", "snapshot"),
    "AWS::ECR::Repository": ("ecr", "storage"),
    "AWS::ElasticLoadBalancing::LoadBalancer": ("elasticloadbalancing", "classic-load-balancer"),
    "AWS::ElasticLoadBalancingV2::LoadBalancer": (
        "elasticloadbalancing",
        "application-load-balancer",
    ),
    "AWS::KMS::Key": ("kms", "key"),
    "AWS::Logs::LogGroup": ("logs", "storage"),
    "AWS::S3::Bucket": ("s3", "standard"),
}
"""Service and item of a price, by CloudFormation's type."""
# Words of a unit, and its part of an hour; 0 where that depends on more than the resource.
_UNITS: Mapping[str | None, tuple[str, float]] = {
    prices.HOUR: ("hour", 1),
    "month": ("month", 1 / HOURS_OF_A_MONTH),
    "GB-month": ("GB and month", 0),
}


def of_type(type: str) -> Price:
    """Return the price of one resource of a type; `UNKNOWN` for a free resource too."""
    if type not in ITEMS:
        return UNKNOWN
    usd, (words, share) = _usd(*ITEMS[type]), _UNITS[prices.unit_of(*ITEMS[type])]
    return f"${usd:g} per {words} ({_WHOSE})", usd * share


def of_endpoint(zones: int) -> Price:
    """Return the price of an interface endpoint with a subnet in each of ``zones`` zones."""
    usd = _usd("vpc", "interface-endpoint") * zones
    return f"${usd:g} per hour ({_WHOSE})", usd


def of_volume(type: str, gib: int) -> Price:
    """Return the price of an EBS volume without its charges for IOPS and throughput.

    Args:
        type: EBS's name of its type; empty where it is not known.
        gib: Its size, in GiB; 0 where it is not known.
    """
    usd = _usd("ebs", type) * gib
    return _monthly("from ", usd) if usd else UNKNOWN


def of_snapshot(gib: int) -> Price:
    """Return the highest price of a volume's snapshot, which stores only changed blocks."""
    words, _ = _monthly("up to ", _usd(*ITEMS["AWS::EC2::Snapshot"]) * gib)
    return words, 0


def of_lustre(gib: int, throughput_mbps_per_tib: int) -> Price:
    """Return the price of a file system; `UNKNOWN` if its throughput has no known price.

    Args:
        gib: Its capacity, in GiB.
        throughput_mbps_per_tib: Its throughput tier, in MB/s per TiB.
    """
    stored = _usd("fsx", f"lustre-persistent-2-{throughput_mbps_per_tib}")
    return _monthly("", stored * gib) if stored else UNKNOWN


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
    elsewhere = prices.on_demand(REGION, [instance_type])
    if elsewhere is None:
        return UNKNOWN
    return f"${elsewhere:,.3f} per hour On-Demand in {REGION}, here unknown", 0


def of_cluster(tier: str) -> Price:
    """Return the price of a control plane.

    Args:
        tier: EKS's name of its scaling tier.
    """
    items = ["cluster"] if tier == "standard" else ["cluster", tier]
    usd = sum(_usd("eks", item) for item in items)
    return f"${usd:g} per hour (price of {REGION})", usd


def _usd(service: str, item: str) -> float:
    """Return the price of an item; 0 if it is unknown."""
    price = prices.catalog_prices().find(REGION, service, item)
    return 0 if price is None else price.price


def _monthly(begin: str, usd: float) -> Price:
    return f"{begin}${usd:,.2f} per month ({_WHOSE})", usd / HOURS_OF_A_MONTH
