"""Cost of a cluster a day, over the time of its windows."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from ultrascale.frozen import Frozen


class SpendPart(Frozen):
    """A part of the cost."""

    name: str  # A pool of the cluster file, or a charge beside nodes
    kind: Literal["pool", "baseline"]  # Kind of the part: `pool` or `baseline`
    purchase: str | None  # Purchase of the pool's nodes; None of a charge beside nodes
    usd_per_day: float  # Its cost a day, while it exists, in US dollars


class SpendStep(Frozen):
    """A time in which the cost a day stays the same."""

    # Its start; None where the file has no window, so that all days are alike.
    starts: datetime | None
    ends: datetime | None  # Its end; None as for ``starts``
    # Parts that cost something then, by name, in US dollars a day.
    usd_per_day: Mapping[str, float]
    total_usd_per_day: float  # Their sum


class SpendNeeds(Frozen):
    """The cost of a cluster a day at its full size, over the time of its windows."""

    # Parts of a known price, charges beside nodes first, then the pools in file order.
    parts: tuple[SpendPart, ...]
    # Sum of the charges beside nodes that stand all of the time, in US dollars a day.
    baseline_usd_per_day: float
    # Steps one after the other; each change is the start or the end of a window that costs
    # something.
    steps: tuple[SpendStep, ...]
    without: tuple[str, ...]  # Pools and charges of no known price, which no step holds
    assumptions: tuple[str, ...]  # Notes on the sums
