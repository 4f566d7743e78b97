"""On-Demand prices of EC2, Linux, shared tenancy, in US dollars for an hour.

They are dated, and not of every Region: whoever shows one says the day, and says of a Region or a
type without one that there is none. China's Regions, which charge in yuan, are left out.
"""

from collections.abc import Iterable, Mapping
from datetime import date

from ultrascale.catalog._sources import sources
from ultrascale.catalog.price_list import Price, catalog_prices

_EC2 = "ec2"
SEEN = date(2026, 7, 20)
"""Day of the prices of us-east-1 and GovCloud; `seen` has that of each Region."""


def seen(region: str) -> date:
    """Return the day of the oldest price of a Region; of the newest list where it has none."""
    return min((each.valid_on for each in _of_region(region)), default=SEEN)


def source(region: str) -> str:
    """Return the page that states the oldest price of a Region; of the list where it has none."""
    oldest = min(_of_region(region), key=lambda each: each.valid_on, default=None)
    return sources()["price-list"].url if oldest is None else oldest.source


def _of_region(region: str) -> list[Price]:
    return [each for each in catalog_prices() if (each.region, each.service) == (region, _EC2)]


CONTROL_PLANE_REGION = "us-east-1"
"""Region of which the prices of EKS are known."""


def on_demand(region: str, instance_types: Iterable[str]) -> Mapping[str, float]:
    """Return the prices of those of ``instance_types`` of which one is known.

    Args:
        region: AWS Region.
        instance_types: EC2 names.
    """
    found = {name: catalog_prices().find(region, _EC2, name) for name in instance_types}
    return {name: price.price for name, price in found.items() if price is not None}


def on_demand_near(region: str, instance_type: str) -> tuple[float, str] | None:
    """Return a price of ``instance_type`` and the Region that it is of; None where none is known.

    Without a price in ``region`` it is the lowest of the others.

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
    """Return what EKS takes for a cluster with its provisioned tier, in `CONTROL_PLANE_REGION`.

    Args:
        tier: EKS's name of the tier.
    """
    items = ["cluster"] if tier == "standard" else ["cluster", tier]
    found = (catalog_prices().find(CONTROL_PLANE_REGION, "eks", item) for item in items)
    return sum(price.price for price in found if price is not None)
