"""Times of a question, and windows that serve it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from ultrascale import catalog
from ultrascale.catalog import capacity_blocks, purchasing, training_plans
from ultrascale.catalog.matrix import PurchaseOption
from ultrascale.plan.advice.model import Candidate, Question

DAY = timedelta(days=1)
_YEARS = range(2000, 3000)

Wrong = Callable[[str, str, object, str], None]
"""Notes a mistake: option, what is wrong, the value, what to do."""


def read_time(option: str, value: datetime | str | None, wrong: Wrong) -> datetime | None:
    """Return a time in UTC, None without one or after ``wrong`` noted it."""
    if value is None or isinstance(value, datetime):
        return value
    try:
        time = datetime.fromisoformat(value)
        # A window reaches beyond a time: at both ends of the calendar there is no room for one.
        if time.tzinfo is not None and time.year in _YEARS:
            return time.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    wrong(option, "not an ISO 8601 time with its zone", value, "write it as 2026-12-01T11:30:00Z")
    return None


def sold_days(option: PurchaseOption, days: float) -> int | None:
    """Return the length in days of the window sold for ``days``; None where none is as long.

    Training plans are sold by the day, Capacity Blocks beyond two weeks by the week.
    """
    longest = training_plans.LONGEST_DAYS
    sold = range(1, longest + 1) if option == "training-plan" else capacity_blocks.DAYS
    return min((length for length in sold if length >= days), default=None)


def window(question: Question, days: int) -> tuple[datetime, datetime]:
    """Return start and end of a reservation of ``days`` days or more, as early as possible.

    It ends at the time of day at which all reservations do, and starts then as well where the
    latest start allows it.
    """
    starts = _next_end(question.starts)
    if question.until is not None and starts > question.until:
        starts = question.starts
    return starts, _next_end(starts + days * DAY)


def _next_end(time: datetime) -> datetime:
    at = capacity_blocks.ENDS_AT
    end = time.replace(hour=at.hour, minute=at.minute, second=0, microsecond=0)
    return end if end >= time else end + DAY


def may_be_dated(question: Question, candidate: Candidate, nodes: int) -> bool:
    """Return whether a capacity reservation may start on the day of the work's start."""
    (name,) = candidate.instance_types
    earliest, most = purchasing.FUTURE_DATED_DAYS
    ahead = question.starts - question.at
    spec = catalog.lookup(name)
    return (
        name[0] in purchasing.FUTURE_DATED_FAMILIES
        and (spec.accelerator is None or spec.accelerator.kind != "neuron")
        and spec.vcpus * nodes >= purchasing.FUTURE_DATED_VCPUS
        and earliest * DAY <= ahead <= most * DAY
    )


def commitment(question: Question) -> timedelta:
    """Return how long a dated capacity reservation is kept: for the work, if EC2 allows it."""
    return max((question.days or 0) * DAY, purchasing.FUTURE_DATED_COMMITMENT)
