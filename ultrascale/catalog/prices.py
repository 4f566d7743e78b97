"""Prices by Region, service and item; On-Demand prices of EC2.

Prices have a date and do not cover every Region: show a price with its day, and say that a Region
or type has none. China's Regions, which charge in yuan, are left out.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from functools import cache
from types import MappingProxyType

import msgspec

from ultrascale.catalog.tables import FOLDER, sources
from ultrascale.frozen import Frozen

# --- Prices by Region, service and item, each with its unit, currency, day and source -------------
# `prices.csv` holds published prices. A user's price list has the same columns and takes
# precedence: a negotiated discount is in no public table.
#
# Items have names of ours, as AWS's names of usage differ by Region and service. Items of `ec2`
# (On-Demand, Linux, shared tenancy), `ec2-spot` and `ec2-capacity-block` (a node-hour of a block)
# are instance types; the fee paid for a block is an item of `ec2-capacity-block` with the id of its
# reservation; those of `sagemaker` are HyperPod's, as `ml.p5.48xlarge`; `auto-mode/TYPE` of `eks`
# is the fee of EKS Auto Mode beside the instance; classes of RDS are items of `rds`, in one zone;
# the other items stand in `ITEMS`.


COLUMNS = ("region", "service", "item", "unit", "price", "currency", "valid_on", "source")
DOLLARS = "USD"
HOUR = "hour"
FEE = "fee"
_RESERVATION = re.compile(r"cr-(?:[0-9a-f]{8}|[0-9a-f]{17})", re.ASCII)

# Services whose items are instance types.

OF_INSTANCES = ("ec2", "ec2-spot", "ec2-capacity-block", "sagemaker")
AUTO_MODE = "auto-mode/"
ITEMS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "eks": {
            "cluster": HOUR,
            "extended-support": HOUR,
            "tier-xl": HOUR,
            "tier-2xl": HOUR,
            "tier-4xl": HOUR,
            "tier-8xl": HOUR,
        },
        "vpc": {
            "nat-gateway": HOUR,
            "nat-gateway-data": "GB",
            "interface-endpoint": HOUR,
            "interface-endpoint-data": "GB",
            "public-ipv4": HOUR,
        },
        "ebs": {
            **dict.fromkeys(
                ("gp2", "gp3", "io1", "io2", "sc1", "st1", "standard", "snapshot"), "GB-month"
            ),
            "gp3-iops": "IOPS-month",
            "gp3-throughput": "MiBps-month",
        },
        "fsx": {f"lustre-persistent-2-{mbps}": "GB-month" for mbps in (125, 250, 500, 1000)},
        "s3": {"standard": "GB-month"},
        "ecr": {"storage": "GB-month"},
        "efs": {"standard": "GB-month"},
        "logs": {"ingestion": "GB", "vended-to-s3": "GB", "storage": "GB-month"},
        "cloudwatch": {"alarm": "month", "dashboard": "month"},
        "elasticloadbalancing": dict.fromkeys(
            ("application-load-balancer", "network-load-balancer", "classic-load-balancer"), HOUR
        ),
        "kms": {"key": "month"},
        "secretsmanager": {"secret": "month"},
        "rds": {"aurora-acu": HOUR, "aurora-storage": "GB-month", "gp3-storage": "GB-month"},
        "grafana": {"editor": "month"},
    }
)
"""Units of the items by service, without services whose items are instance types."""

_SIZES = ("large", "xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge", "16xlarge")
# Sizes by family. `m6g` and `r6g` are in every Region, later ones are not.
# Source: https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/Concepts.DBInstanceClass.Types.html
DATABASE_SIZES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "t4g": ("micro", "small", "medium", "large", "xlarge", "2xlarge"),
        "m6g": _SIZES,
        "m7g": _SIZES,
        "m8g": (*_SIZES, "24xlarge", "48xlarge"),
        "m6i": (*_SIZES, "24xlarge", "32xlarge"),
        "m7i": (*_SIZES, "24xlarge", "48xlarge"),
        "r6g": _SIZES,
        "r7g": _SIZES,
        "r8g": (*_SIZES, "24xlarge", "48xlarge"),
        "r6i": (*_SIZES, "24xlarge", "32xlarge"),
        "r7i": (*_SIZES, "24xlarge", "48xlarge"),
    }
)
DATABASE_CLASSES = frozenset(
    f"db.{family}.{size}" for family, sizes in DATABASE_SIZES.items() for size in sizes
)


class Price(Frozen):
    """The price of one unit of an item."""

    region: str  # AWS Region
    service: str  # Service, as in `ITEMS`
    item: str  # Item, as in `ITEMS`
    unit: str  # Unit of the price, such as ``hour`` or ``GB-month``
    price: float  # Price of one unit
    currency: str  # Code of ISO 4217
    valid_on: date  # A day on which the source stated the price
    source: str  # Page or document that states it


def price_of(cells: Mapping[str, str]) -> Price:
    """Return a row of a table as a price."""
    return msgspec.convert(cells, Price, strict=False)


class PriceList:
    """Prices, one for each Region, service and item.

    Args:
        prices: Prices. The later of two for the same item counts.
    """

    def __init__(self, prices: Iterable[Price]) -> None:
        self._prices = {(price.region, price.service, price.item): price for price in prices}

    def __iter__(self) -> Iterator[Price]:
        return iter(self._prices.values())

    def find(self, region: str, service: str, item: str) -> Price | None:
        """Return the price of an item; None if it is unknown."""
        return self._prices.get((region, service, item))

    def under(self, other: "PriceList") -> "PriceList":
        """Return the prices of both lists; a price of ``other`` takes precedence."""
        return PriceList((*self, *other))


def is_fee(service: str, item: str) -> bool:
    """Return whether an item is a reservation, whose price is the fee that was paid for it."""
    return service == "ec2-capacity-block" and _RESERVATION.fullmatch(item) is not None


def unit_of(service: str, item: str) -> str | None:
    """Return the unit of an item; None if the item is unknown."""
    if is_fee(service, item):
        return FEE
    if service in OF_INSTANCES or (service == "eks" and item.startswith(AUTO_MODE)):
        return HOUR
    if service == "rds" and item in DATABASE_CLASSES:
        return HOUR
    return ITEMS.get(service, {}).get(item)


@cache
def catalog_prices() -> PriceList:
    """Return the prices of `prices.csv`."""
    pages = {key: source.url for key, source in sources().items()}
    with (FOLDER / "prices.csv").open(encoding="utf-8", newline="") as file:
        return PriceList(
            price_of({**row, "source": pages[row["source"]]}) for row in csv.DictReader(file)
        )


# --- On-Demand prices of EC2, Linux, shared tenancy, in US dollars for an hour --------------------


_EC2 = "ec2"
SEEN = date(2026, 7, 20)
"""Day of the prices of us-east-1 and GovCloud; `seen` returns the day of any Region."""


def seen(region: str) -> date:
    """Return the day of a Region's oldest price; without prices, the day of the newest list."""
    days = (
        price.valid_on
        for price in catalog_prices()
        if (price.region, price.service) == (region, _EC2)
    )
    return min(days, default=SEEN)


def on_demand(region: str, instance_types: Iterable[str]) -> float | None:
    """Return the price of the dearest of ``instance_types``; None unless all have a price."""
    prices = [catalog_prices().find(region, _EC2, name) for name in instance_types]
    known = [price.price for price in prices if price is not None]
    return max(known, default=None) if len(known) == len(prices) else None


def on_demand_near(region: str, instance_type: str) -> tuple[float, str] | None:
    """Return the price of ``instance_type`` and the price's Region; None without any price.

    Without a price in ``region`` it is the lowest price of the other Regions.

    Args:
        region: AWS Region.
        instance_type: EC2 name.
    """
    known = {
        price.region: price.price
        for price in catalog_prices()
        if (price.service, price.item) == (_EC2, instance_type)
    }
    if region in known:
        return known[region], region
    return min(((price, name) for name, price in known.items()), default=None)
