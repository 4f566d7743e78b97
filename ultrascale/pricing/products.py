"""Prices from AWS's Price List: from answers of ``GetProducts``, and from bulk files.

Names of usage begin with a code of the Region, such as ``USE2-``; only the rest is read.

Sources:
    https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/using-price-list-query-api.html
    https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/reading-service-price-list-file.html
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, NamedTuple

from ultrascale.catalog import INSTANCE_TYPES
from ultrascale.catalog.prices import AUTO_MODE, DATABASE_CLASSES, OF_INSTANCES, Price, unit_of
from ultrascale.catalog.regions import lookup_region
from ultrascale.documents import JsonObject, mapping, objects, parse_json, sequence, text
from ultrascale.errors import UsageError, unless_gone

if TYPE_CHECKING:
    from ultrascale.account import Account


SOURCE = "https://aws.amazon.com/pricing/ (Price List API)"
_GIB = 1024
_FREE_OF_SOFTWARE: Mapping[str, str] = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
    "marketoption": "OnDemand",
}
"""Attributes of On-Demand products for instances like our nodes: Linux without paid software."""

# Our service and item by the Price List's service code and usage, without the Region's code.
_USAGES: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "AmazonEC2": {
        "NatGateway-Hours": ("vpc", "nat-gateway"),
        "NatGateway-Bytes": ("vpc", "nat-gateway-data"),
        "EBS:VolumeUsage.gp3": ("ebs", "gp3"),
        "EBS:VolumeP-IOPS.gp3": ("ebs", "gp3-iops"),
        "EBS:VolumeP-Throughput.gp3": ("ebs", "gp3-throughput"),
        "EBS:VolumeUsage.gp2": ("ebs", "gp2"),
        "EBS:SnapshotUsage": ("ebs", "snapshot"),
    },
    "AmazonVPC": {
        "VpcEndpoint-Hours": ("vpc", "interface-endpoint"),
        "VpcEndpoint-Bytes": ("vpc", "interface-endpoint-data"),
        "PublicIPv4:InUseAddress": ("vpc", "public-ipv4"),
    },
    "AmazonEKS": {
        "AmazonEKS-Hours:perCluster": ("eks", "cluster"),
        "AmazonEKS-Hours:extendedSupport": ("eks", "extended-support"),
    },
    "AmazonCloudWatch": {
        "DataProcessing-Bytes": ("logs", "ingestion"),
        "TimedStorage-ByteHrs": ("logs", "storage"),
        "S3-Egress-Bytes": ("logs", "vended-to-s3"),
        "CW:AlarmMonitorUsage": ("cloudwatch", "alarm"),
        "DashboardsUsageHour": ("cloudwatch", "dashboard"),
    },
    "AmazonRDS": {
        "Aurora:ServerlessV2Usage": ("rds", "aurora-acu"),
        "RDS:GP3-Storage": ("rds", "gp3-storage"),
    },
    "AmazonS3": {"TimedStorage-ByteHrs": ("s3", "standard")},
    "AmazonECR": {"TimedStorage-ByteHrs": ("ecr", "storage")},
    "awskms": {"KMS-Keys": ("kms", "key")},
}
_TIER = re.compile(r"(?i)(?:provisioned|controlplane|control-plane).*?[-_:. ](xl|2xl|4xl|8xl)$")
_LUSTRE_MBPS = re.compile(r"^(125|250|500|1000)\b")


class _Item(NamedTuple):
    service: str
    item: str


def prices_of_document(document: object) -> Iterator[Price]:
    """Yield the useful prices of a document.

    Args:
        document: An answer of ``GetProducts`` (``PriceList`` of strings or objects), a list of
            products, or a bulk file (``products`` and ``terms``).
    """
    if listed := sequence(document) or sequence(document, "PriceList"):
        yield from prices_of_products(listed)
    else:
        yield from _prices_of_bulk(document)


def one_of_each(prices: Iterable[Price]) -> tuple[Price, ...]:
    """Return one price of each Region, service and item: the highest of the latest day.

    AWS lists some items under several products, in no order. A sum should be too high rather
    than too low.
    """
    found: dict[tuple[str, str, str], Price] = {}
    for price in prices:
        key = (price.region, price.service, price.item)
        held = found.setdefault(key, price)
        if (price.valid_on, price.price) > (held.valid_on, held.price):
            found[key] = price
    return tuple(found[key] for key in sorted(found))


def prices_of_products(products: Sequence[object]) -> Iterator[Price]:
    """Yield the prices of products, each an object or its text in JSON."""
    for each in products:
        product: object = each
        if isinstance(each, str):
            try:
                product = parse_json(each)
            except ValueError:
                continue
        published = text(product, "publicationDate")
        terms = [*mapping(product, "terms", "OnDemand").values()]
        own, code = mapping(product, "product"), text(product, "serviceCode")
        yield from _prices(own, terms, published, code)


def _prices_of_bulk(document: object) -> Iterator[Price]:
    published, code = text(document, "publicationDate"), text(document, "offerCode")
    for sku, product in mapping(document, "products").items():
        terms = [*mapping(document, "terms", "OnDemand", sku).values()]
        yield from _prices(product, terms, published, code)


def _prices(product: object, terms: Sequence[object], published: str, code: str) -> Iterator[Price]:
    attributes = mapping(product, "attributes")
    region = text(attributes, "regionCode")
    found = _item(attributes, code or text(attributes, "servicecode"))
    day = _day(published)
    if found is None or not region or day is None:
        return
    for term in terms:
        dimension = _first_tier(term)
        if dimension is None:
            continue
        for currency, amount in mapping(dimension, "pricePerUnit").items():
            value = _amount(amount)
            if value is None or _is_of_a_block(found, value):
                continue
            if text(dimension, "unit").lower().startswith("gibps"):
                value /= _GIB
            yield Price(
                region=region,
                service=found.service,
                item=found.item,
                unit=unit_of(found.service, found.item) or "hour",
                price=value,
                currency=currency,
                valid_on=day,
                source=SOURCE,
            )
        return


def _is_of_a_block(found: _Item, value: float) -> bool:
    """Return whether a price belongs to a type that is sold only as Capacity Blocks.

    Source: https://github.com/aws/karpenter-provider-aws/blob/main/pkg/providers/pricing/pricing.go
    """
    return found.service in OF_INSTANCES and value == 0


def _first_tier(term: object) -> JsonObject | None:
    for dimension in objects({"all": [*mapping(term, "priceDimensions").values()]}, "all"):
        if text(dimension, "beginRange") in ("", "0"):
            return dimension
    return None


def _amount(value: object) -> float | None:
    try:
        amount = float(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return amount if amount is not None and 0 <= amount < float("inf") else None


def _day(published: str) -> date | None:
    try:
        return date.fromisoformat(published[:10])
    except ValueError:
        return None


def _item(attributes: JsonObject, code: str) -> _Item | None:
    usage = text(attributes, "usagetype")
    name = text(attributes, "instanceType")
    if code == "AmazonEC2" and name in INSTANCE_TYPES:
        ours = all(text(attributes, key) == want for key, want in _FREE_OF_SOFTWARE.items())
        return _Item("ec2", name) if ours and "BoxUsage" in usage else None
    if code == "AmazonFSx" and text(attributes, "fileSystemType") == "Lustre":
        return _lustre(attributes)
    if code == "AmazonSageMaker":
        return _cluster_instance_item(attributes, usage)
    if code == "AmazonEKS":
        return _eks_item(usage)
    if code == "AmazonRDS" and name in DATABASE_CLASSES:
        return _database_item(attributes, usage)
    for ending, (service, item) in _USAGES.get(code, {}).items():
        if usage == ending or usage.endswith(f"-{ending}"):
            return _Item(service, item)
    return None


def _eks_item(usage: str) -> _Item | None:
    for ending, (service, item) in _USAGES["AmazonEKS"].items():
        if usage == ending or usage.endswith(f"-{ending}"):
            return _Item(service, item)
    name = usage.rpartition(":")[2]
    if "auto" in usage.lower() and name in INSTANCE_TYPES:
        return _Item("eks", f"{AUTO_MODE}{name}")
    tier = _TIER.search(usage)
    return None if tier is None else _Item("eks", f"tier-{tier[1].lower()}")


def _database_item(attributes: JsonObject, usage: str) -> _Item | None:
    """Return the class of a database instance; None for other engines or two zones."""
    name = usage.rpartition(":")[2]
    is_ours = text(attributes, "databaseEngine") == "PostgreSQL"
    kind = usage.partition(":")[0]
    if not is_ours or name not in DATABASE_CLASSES or not kind.endswith("InstanceUsage"):
        return None
    return _Item("rds", name)


def _lustre(attributes: JsonObject) -> _Item | None:
    throughput = _LUSTRE_MBPS.match(text(attributes, "throughputCapacity"))
    deployment = text(attributes, "deploymentOption") + text(attributes, "usagetype")
    is_ssd = text(attributes, "storageType") in ("SSD", "")
    if throughput is None or not is_ssd or "persistent_2" not in deployment.lower():
        return None
    return _Item("fsx", f"lustre-persistent-2-{throughput[1]}")


def _cluster_instance_item(attributes: JsonObject, usage: str) -> _Item | None:
    """Return the item of a HyperPod instance; None for other uses of the instance type."""
    name = usage.rpartition(":")[2]
    component = text(attributes, "component") + usage
    if "cluster" not in component.lower() or name.removeprefix("ml.") not in INSTANCE_TYPES:
        return None
    return _Item("sagemaker", name) if name.startswith("ml.") else None


# --- Prices of a Region, fetched from AWS's Price List API ----------------------------------------


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
