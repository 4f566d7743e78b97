"""Prices in US dollars of resources that a teardown may leave, by CloudFormation's type.

Prices of us-east-1; other Regions charge more or less. Show a price with that note: AWS's pages
decide. Of the four prices of Lustre, the source states the lowest and the highest, 0.145 and 0.600;
the prices of 250 and 500 MB/s per TiB are interpolated, as all four are linear in ap-northeast-1.
"""

from collections.abc import Mapping
from types import MappingProxyType

from ultrascale.catalog.price_list import ITEMS, catalog_prices

REGION = "us-east-1"


def _price_in_usd(service: str, item: str) -> float:
    price = catalog_prices().find(REGION, service, item)
    assert price is not None, f"{service} {item}"
    return price.price


USD_PER_HOUR: Mapping[str, float] = MappingProxyType(
    {
        "AWS::EC2::EIP": _price_in_usd("vpc", "public-ipv4"),
        "AWS::EC2::NatGateway": _price_in_usd("vpc", "nat-gateway"),
        "AWS::ElasticLoadBalancing::LoadBalancer": _price_in_usd(
            "elasticloadbalancing", "classic-load-balancer"
        ),
        "AWS::ElasticLoadBalancingV2::LoadBalancer": _price_in_usd(
            "elasticloadbalancing", "application-load-balancer"
        ),
    }
)
INTERFACE_ENDPOINT_USD_PER_HOUR_AND_ZONE = _price_in_usd("vpc", "interface-endpoint")
USD_PER_MONTH: Mapping[str, float] = MappingProxyType(
    {"AWS::KMS::Key": _price_in_usd("kms", "key")}
)
# For buckets, the price of S3 Standard.
USD_PER_GB_MONTH: Mapping[str, float] = MappingProxyType(
    {
        "AWS::EC2::Snapshot": _price_in_usd("ebs", "snapshot"),
        "AWS::S3::Bucket": _price_in_usd("s3", "standard"),
        "AWS::ECR::Repository": _price_in_usd("ecr", "storage"),
        "AWS::Logs::LogGroup": _price_in_usd("logs", "storage"),
    }
)
# EBS volumes, by EBS's name of their type, without provisioned IOPS and throughput.
VOLUME_USD_PER_GB_MONTH: Mapping[str, float] = MappingProxyType(
    {
        name: _price_in_usd("ebs", name)
        for name, unit in ITEMS["ebs"].items()
        if unit == "GB-month" and name != "snapshot"
    }
)
# FSx for Lustre on SSD, PERSISTENT_2, by throughput in MB/s for each TiB.
LUSTRE_USD_PER_GB_MONTH: Mapping[int, float] = MappingProxyType(
    {int(name.rpartition("-")[2]): _price_in_usd("fsx", name) for name in ITEMS["fsx"]}
)
