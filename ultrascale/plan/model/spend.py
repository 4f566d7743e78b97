"""Cost of a cluster a day, over the time of its windows."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from ultrascale.frozen import Frozen


class SpendPart(Frozen):
    """A part of the cost."""

    name: str  # A pool of the cluster file, or a charge beside nodes
    kind: Literal["pool", "baseline"]  # Which of the two it is: `pool` or `baseline`
    purchase: str | None  # How the pool's nodes are bought; None of a charge beside nodes
    usd_per_day: float  # What it costs a day, while it is there, in US dollars


class SpendStep(Frozen):
    """A time in which the cost a day stays the same."""

    # Its start; None where the file has no window, so that all days are alike.
    starts: datetime | None
    ends: datetime | None  # Its end; None as for ``starts``
    # Each part that costs something then, by its name, in US dollars a day.
    usd_per_day: Mapping[str, float]
    total_usd_per_day: float  # Their sum


class SpendNeeds(Frozen):
    """The cost of a cluster a day at its full size, over the time of its windows."""

    # Parts of a known price, charges beside nodes first, then the pools in file order.
    parts: tuple[SpendPart, ...]
    # Sum of the charges beside nodes that stand all of the time, in US dollars a day.
    baseline_usd_per_day: float
    # One after the other; each change is the start or the end of a window that costs something.
    steps: tuple[SpendStep, ...]
    without: tuple[str, ...]  # Pools and charges of no known price, which no step holds
    assumptions: tuple[str, ...]  # What it rests on
