"""Prices of a Region, fetched from AWS's Price List API."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ultrascale.catalog.price_list import Price
from ultrascale.catalog.regions import lookup_region
from ultrascale.errors import UsageError, unless_gone
from ultrascale.pricing.products import one_of_each, prices_of_products

if TYPE_CHECKING:
    from ultrascale.account import Account

ENDPOINT = "us-east-1"
"""Region of the Price List endpoint; those in ap-south-1 and eu-central-1 have equal prices.

Source: https://docs.aws.amazon.com/general/latest/gr/billing.html
"""
ACTION = "pricing:GetProducts"

_NODES: Mapping[str, str] = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
    "marketoption": "OnDemand",
}
# Requests for a Region: service code, and required attributes of the products.
_REQUESTS: Sequence[tuple[str, Mapping[str, str]]] = (
    ("AmazonEC2", {"productFamily": "NAT Gateway"}),
    ("AmazonEC2", {"productFamily": "Storage", "volumeApiName": "gp3"}),
    ("AmazonEC2", {"productFamily": "System Operation", "volumeApiName": "gp3"}),
    ("AmazonEC2", {"productFamily": "Provisioned Throughput", "volumeApiName": "gp3"}),
    ("AmazonVPC", {}),
    ("AmazonEKS", {}),
    ("AmazonFSx", {"fileSystemType": "Lustre"}),
    ("AmazonCloudWatch", {}),
    ("AmazonRDS", {"productFamily": "ServerlessV2"}),
    ("AmazonRDS", {"productFamily": "Database Storage", "deploymentOption": "Single-AZ"}),
    (
        "AmazonRDS",
        {
            "productFamily": "Database Instance",
            "databaseEngine": "PostgreSQL",
            "deploymentOption": "Single-AZ",
        },
    ),
    ("AmazonS3", {"productFamily": "Storage", "volumeType": "Standard"}),
    ("AmazonECR", {}),
    ("awskms", {}),
)


def refuse_region(region: str, profile: str | None) -> None:
    """Refuse a Region whose prices cannot be fetched or used.

    Raises:
        CatalogError: There is no such Region.
        UsageError: The Region is in China, or in GovCloud without a profile of another partition.
    """
    partition = lookup_region(region).partition
    if partition == "aws-cn":
        raise UsageError(
            [
                f"REGION: prices of China are in CNY, and the plan counts in USD, got {region!r}; "
                "write your prices in USD into a file (docs/prices.md)"
            ]
        )
    if partition == "aws-us-gov" and profile is None:
        raise UsageError(
            [
                f"REGION: GovCloud has no endpoint of the Price List API, got {region!r}; name a "
                "profile of a commercial account with --profile: its endpoint knows these prices"
            ]
        )


def fetch_prices(
    account: "Account", region: str, sagemaker_types: Sequence[str] = ()
) -> tuple[Price, ...]:
    """Return the useful prices of a Region, without duplicates.

    Args:
        account: Account whose credentials are used.
        region: AWS Region of the prices.
        sagemaker_types: Types of HyperPod, as ``ml.p5.48xlarge``, which are asked one by one.

    Raises:
        UnansweredError: AWS refused a request, or did not answer it.
    """
    found: list[Price] = []
    for code, attributes in (
        ("AmazonEC2", _NODES),
        *_REQUESTS,
        *(("AmazonSageMaker", {"instanceName": name}) for name in sagemaker_types),
    ):
        asked = _prices_with(account, code, {"regionCode": region, **attributes})
        found += (price for price in asked if price.region == region)
    return one_of_each(found)


def _prices_with(account: "Account", code: str, attributes: Mapping[str, str]) -> Iterator[Price]:
    pricing = account.client("pricing", ENDPOINT)
    filters = [
        {"Type": "TERM_MATCH", "Field": field, "Value": value}
        for field, value in attributes.items()
    ]
    pages = account.ask_pages(pricing.get_products, ServiceCode=code, Filters=filters)
    with unless_gone("NotFoundException"):
        for page in pages:
            yield from prices_of_products(page["PriceList"])
