"""Forecast of reserved accelerators without a user: by hour of the week, and by the queue.

The function of the fleet metrics makes it once a day, the command line whenever it is asked. Hours
are counted since 1970, in UTC; parts of an hour at both ends of a reservation are left out.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from .ledger import DAY, ReservationRow

HOUR = 3600
HOURS = 672
"""Hours of use that a forecast takes: four weeks."""
_WEEK = 168
# What is looked at of a reservation without an end.
_OPEN_SECONDS = 7 * DAY
# Student's t at 90 %, which bounds an interval of 80 %, by weeks of use less one.
_STUDENT = {1: 3.078, 2: 1.886, 3: 1.638}
# Of EC2's reservations, and of training plans.
_OVER = frozenset(
    {"expired", "cancelled", "cancelling", "failed", "payment-failed", "unsupported", "unavailable"}
)


class Hour(NamedTuple):
    """Use of a pool's reservations in an hour."""

    hour: int
    samples: int  # Measurements
    used: float  # Sum over these of the accelerators in use
    taken: float  # Accelerators that jobs took between two of them


def paid_times(row: ReservationRow) -> Sequence[tuple[int, float]]:
    """Return the times in which nodes of a reservation can be used; none once it is over."""
    window, usable = row["window"], row["usable"]
    if not row["bought"] or row["state"].lower() in _OVER:
        return []
    if window is None or usable is None:
        return [(0, math.inf)] if row["state"] == "active" else []
    # The fees of a plan tell its parts.
    parts = [(fee["since"], fee["until"]) for fee in row["fees"]]
    is_plan = parts and row["purchase"] == "training-plan"
    return [(start, min(end, usable)) for start, end in (parts if is_plan else [window])]


def hours_ahead(row: ReservationRow, now: int, until: float = math.inf) -> Counter[int]:
    """Return a reservation's accelerators by hour up to ``until``; a week if none ends."""
    bought: Counter[int] = Counter()
    for start, end in paid_times(row):
        last = min(end, until)
        last = now + _OPEN_SECONDS if math.isinf(last) else int(last)
        for hour in range(-(-max(now, start) // HOUR), last // HOUR):
            bought[hour] = row["bought"] * row["accelerators"]
    return bought


class Forecast(NamedTuple):
    """Hours of reserved accelerators, and the part of them that will have no user."""

    hours: float  # Accelerator-hours
    unused: float  # Those without a user
    low: float  # Lower end of an interval of 80 %
    high: float  # Its upper end
    error: float  # Error of the same forecast in weeks that it did not know, of the accelerators
    spare: float  # Accelerators that no hour of the last weeks used, and no waiting job wants


def forecast(use: Sequence[Hour], bought: Mapping[int, float], wanted: float) -> Forecast | None:
    """Return the forecast of a pool; None without two weeks of use, or without a whole hour.

    Past use is the guess for the same hour of the week. Each week is forecast from the others as
    well: these errors give the interval, so that a use that changes from week to week widens it.
    Jobs that wait for ``wanted`` accelerators take idle ones for as long as jobs do.
    """
    levels = {row.hour: row.used / row.samples for row in use}
    weeks: dict[int, list[int]] = defaultdict(list)
    for hour in sorted(levels):
        weeks[(use[-1].hour - hour) // _WEEK].append(hour)
    whole = [hours for hours in weeks.values() if len(hours) > _WEEK / 2]
    if len(whole) - 1 not in _STUDENT or not bought:
        return None
    error = math.sqrt(fmean(miss**2 for miss in _misses(levels, whole, len(bought))))
    total, guess, taken = sum(bought.values()), _guess(levels), sum(row.taken for row in use)
    # Where no job began they go on for as long as anybody looked.
    run = sum(levels.values()) / taken if taken else HOURS
    idle = total - sum(min(guess(hour), count) for hour, count in bought.items()) - wanted * run
    wide = _STUDENT[len(whole) - 1] * error * len(bought)
    unused, low, high = (min(max(idle + change, 0.0), total) for change in (0, -wide, wide))
    spare = max(min(bought.values()) - max(levels.values()) - wanted, 0)
    return Forecast(total, unused, low, high, error / (total / len(bought)), spare)


def _guess(levels: Mapping[int, float]) -> Callable[[int], float]:
    """Return the mean use by hour of the week; where no week has the hour, of all hours."""
    hours: dict[int, list[float]] = defaultdict(list)
    for hour, level in levels.items():
        hours[hour % _WEEK].append(level)
    mean = [fmean(levels.values())]
    return lambda hour: fmean(hours.get(hour % _WEEK, mean))


def _misses(
    levels: Mapping[int, float], weeks: Iterable[Sequence[int]], length: int
) -> Iterator[float]:
    """Yield how much more was used than guessed, in each ``length`` hours of weeks held out."""
    for week in weeks:
        guess = _guess({hour: levels[hour] for hour in levels.keys() - {*week}})
        size = min(length, len(week))
        for at in range(0, len(week) - size + 1, size):
            yield fmean(levels[hour] - guess(hour) for hour in week[at : at + size])
