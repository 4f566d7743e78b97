"""Terms of the purchase options: lead times, minimum terms and price ranges.

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
"""First letters of instance families whose capacity reservations may start on a future date."""

FUTURE_DATED_VCPUS = 32
"""Fewest vCPUs of a future-dated reservation, of all its instances together."""

FUTURE_DATED_DAYS = (5, 120)
"""Days from the request to the start of a future-dated reservation: least and most."""

FUTURE_DATED_COMMITMENT = timedelta(days=14)
"""Shortest term of a future-dated reservation; the whole term is paid."""

SPOT_LARGEST_DISCOUNT = 0.9
"""Largest discount of Spot against On-Demand that AWS publishes, over all types."""

SAVINGS_PLAN_LARGEST_DISCOUNT = 0.72
"""Largest published discount of Savings Plans; accelerated types get less, unlisted."""

# AWS states no number: the more nodes stop together with one, the worse Spot suits the job.
COUPLED_SPOT_NODES = 8
"""Most nodes of a tightly coupled job for which we advise Spot instead of On-Demand."""

LONG_TERM = timedelta(days=365)
"""Shortest use for which a contract pays: the shorter term of a Savings Plan."""


class SeenRatio(Frozen):
    """Observed price of a Capacity Block as a share of the On-Demand price."""

    ratio: float  # The share
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
"""Observed ratios by instance type."""
