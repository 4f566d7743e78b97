"""Cost of a cluster a day, over the time of its windows."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendPart:
    """A part of the cost.

    Attributes:
        name: A pool of the cluster file, or a charge beside nodes.
        kind: Which of the two it is: `pool` or `baseline`.
        purchase: How the pool's nodes are bought; None of a charge beside nodes.
        usd_per_day: What it costs a day, while it is there, in US dollars.
    """

    name: str
    kind: Literal["pool", "baseline"]
    purchase: str | None
    usd_per_day: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendStep:
    """A time in which the cost a day stays the same.

    Attributes:
        starts: Its start; None where the file has no window, so that all days are alike.
        ends: Its end; None as for ``starts``.
        usd_per_day: Each part that costs something then, by its name, in US dollars a day.
        total_usd_per_day: Their sum.
    """

    starts: datetime | None
    ends: datetime | None
    usd_per_day: Mapping[str, float]
    total_usd_per_day: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendNeeds:
    """The cost of a cluster a day at its full size, over the time of its windows.

    Attributes:
        parts: Parts of a known price, charges beside nodes first, then the pools in file order.
        baseline_usd_per_day: Sum of the charges beside nodes that stand all of the time, in US
            dollars a day.
        steps: One after the other; each change is the start or the end of a window that costs
            something.
        without: Pools and charges of no known price, which no step holds.
        assumptions: What it rests on.
    """

    parts: tuple[SpendPart, ...]
    baseline_usd_per_day: float
    steps: tuple[SpendStep, ...]
    without: tuple[str, ...]
    assumptions: tuple[str, ...]
