"""Terms of each way to buy capacity: lead times, minimum terms and price ranges.

Sources:
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/cr-concepts.html
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations-create.html
    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateCapacityReservation.html
    https://docs.aws.amazon.com/savingsplans/latest/userguide/what-is-savings-plans.html
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/using-spot-instances.html
"""

from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType

from ultrascale.frozen import Frozen

FUTURE_DATED_FAMILIES = frozenset("cmritg")
"""First letters of the families of which a capacity reservation may start on a future date."""

FUTURE_DATED_VCPUS = 32
"""Fewest vCPUs of such a reservation, all of its instances together."""

FUTURE_DATED_DAYS = (5, 120)
"""Days from the request to the start of such a reservation: least and most."""

FUTURE_DATED_COMMITMENT = timedelta(days=14)
"""Shortest term of such a reservation; it is paid for all of that time."""

SPOT_LARGEST_DISCOUNT = 0.9
"""Largest discount of Spot against On-Demand that AWS publishes, for all types together."""

SAVINGS_PLAN_LARGEST_DISCOUNT = 0.72
"""The same for Savings Plans. Those of accelerated types are lower, and no source lists them."""

# No page of AWS's names a number: the more nodes stop with the first, the worse Spot serves them.
COUPLED_SPOT_NODES = 8
"""Most nodes of a tightly coupled job for which Spot is put before On-Demand."""

LONG_TERM = timedelta(days=365)
"""From how long a use on is worth a contract: the shorter term of a Savings Plan."""


class SeenRatio(Frozen):
    """Observed price of a Capacity Block as a part of the On-Demand price."""

    ratio: float  # The part
    seen: str  # When, in words
    quality: str  # Who says so
    source: str  # Where


# AWS sets the price of each offer anew: good for an order of magnitude, never for a budget.
SEEN_RATIOS: Mapping[str, SeenRatio] = MappingProxyType(
    {
        "p5en.48xlarge": SeenRatio(
            ratio=0.66,
            seen="January 2026",
            quality="third parties, no page of AWS's",
            source="https://sjramblings.io/inference-tax-nobody-budgeted-for",
        ),
        "trn1.32xlarge": SeenRatio(
            ratio=0.72,
            seen="2024",
            quality="AWS's price page of that time",
            source="https://aws.amazon.com/ec2/capacityblocks/pricing/",
        ),
    }
)
"""By instance type."""
