"""The price that an offer is held against."""

from decimal import Decimal

from ultrascale.catalog import prices
from ultrascale.offers.model import DOLLARS


def on_demand(region: str, instance_type: str, currency: str = DOLLARS) -> Decimal | None:
    """Return what a node costs On-Demand for an hour, by the catalog.

    Args:
        region: AWS Region.
        instance_type: EC2 name.
        currency: What the offer is in; the catalog's prices are in US dollars.
    """
    found = prices.on_demand(region, [instance_type]).get(instance_type)
    return Decimal(str(found)) if found is not None and currency == DOLLARS else None
