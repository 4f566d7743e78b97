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
"""First letters of the families whose capacity reservations may start on a future date."""

FUTURE_DATED_VCPUS = 32
"""Fewest vCPUs of such a reservation, of all its instances together."""

FUTURE_DATED_DAYS = (5, 120)
"""Days from the request to the start of such a reservation: least and most."""

FUTURE_DATED_COMMITMENT = timedelta(days=14)
"""Shortest term of such a reservation, for all of which it is paid."""

SPOT_LARGEST_DISCOUNT = 0.9
"""Largest discount of Spot against On-Demand that AWS publishes, over all types."""

SAVINGS_PLAN_LARGEST_DISCOUNT = 0.72
"""Largest published discount of Savings Plans; accelerated types get less, unlisted."""

# No AWS page states a number: the more nodes stop with a first one, the worse Spot suits them.
COUPLED_SPOT_NODES = 8
"""Most nodes of a tightly coupled job for which Spot is advised before On-Demand."""

LONG_TERM = timedelta(days=365)
"""Shortest use that is worth a contract: the shorter term of a Savings Plan."""


class SeenRatio(Frozen):
    """Observed price of a Capacity Block as a part of the On-Demand price."""

    ratio: float  # The part
    seen: str  # Time of the observation, in words
    quality: str  # Author of the observation
    source: str  # Page of the observation


# AWS sets the price of each offer anew: these give an order of magnitude, never a budget.
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
