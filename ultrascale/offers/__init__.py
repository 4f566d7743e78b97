"""Current offers of AWS, and their purchase: Capacity Blocks, training plans, Spot."""

from ultrascale.offers.find import find
from ultrascale.offers.purchase import buy

__all__ = ["buy", "find"]
