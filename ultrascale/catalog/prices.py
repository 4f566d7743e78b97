"""On-Demand prices of EC2, Linux, shared tenancy, in US dollars for an hour.

Prices have a date and do not cover every Region: show a price with its day, and say that a Region
or type has none. China's Regions, which charge in yuan, are left out.
"""

from collections.abc import Iterable, Mapping
from datetime import date

from ultrascale.catalog._sources import sources
from ultrascale.catalog.price_list import Price, catalog_prices

_EC2 = "ec2"
SEEN = date(2026, 7, 20)
"""Day of the prices of us-east-1 and GovCloud; `seen` returns the day of any Region."""


def seen(region: str) -> date:
    """Return the day of a Region's oldest price; without prices, the day of the newest list."""
    return min((each.valid_on for each in _region_prices(region)), default=SEEN)


def source(region: str) -> str:
    """Return the page of a Region's oldest price; without prices, the page of the list."""
    oldest = min(_region_prices(region), key=lambda each: each.valid_on, default=None)
    return sources()["price-list"].url if oldest is None else oldest.source


def _region_prices(region: str) -> list[Price]:
    return [each for each in catalog_prices() if (each.region, each.service) == (region, _EC2)]


CONTROL_PLANE_REGION = "us-east-1"
"""Region whose EKS prices are known."""


def on_demand(region: str, instance_types: Iterable[str]) -> Mapping[str, float]:
    """Return the known prices of ``instance_types``.

    Args:
        region: AWS Region.
        instance_types: EC2 names.
    """
    found = {name: catalog_prices().find(region, _EC2, name) for name in instance_types}
    return {name: price.price for name, price in found.items() if price is not None}


def on_demand_near(region: str, instance_type: str) -> tuple[float, str] | None:
    """Return the price of ``instance_type`` and the price's Region; None without any price.

    Without a price in ``region`` it is the lowest price of the other Regions.

    Args:
        region: AWS Region.
        instance_type: EC2 name.
    """
    known = {
        each.region: each.price
        for each in catalog_prices()
        if (each.service, each.item) == (_EC2, instance_type)
    }
    if region in known:
        return known[region], region
    return min(((price, name) for name, price in known.items()), default=None)


def control_plane_usd_per_hour(tier: str) -> float:
    """Return the price of a cluster in `CONTROL_PLANE_REGION`, its tier included.

    Args:
        tier: EKS's name of the tier.
    """
    items = ["cluster"] if tier == "standard" else ["cluster", tier]
    found = (catalog_prices().find(CONTROL_PLANE_REGION, "eks", item) for item in items)
    return sum(price.price for price in found if price is not None)
