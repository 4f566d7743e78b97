"""Offers of AWS at the moment, and the purchase of one: Capacity Blocks, training plans, Spot."""

from ultrascale.offers.find import find
from ultrascale.offers.purchase import buy

__all__ = ["buy", "find"]
