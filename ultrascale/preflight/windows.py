"""Windows of purchases: AWS's times beside those of the cluster file."""

from collections.abc import Iterator
from datetime import UTC, datetime

from ultrascale.plan.model import WindowPlan
from ultrascale.preflight.model import Issue


def in_utc(time: datetime | None) -> datetime | None:
    """Return a time of AWS's in UTC, in whole seconds as cluster files have it."""
    return None if time is None else time.astimezone(UTC).replace(microsecond=0)


def written(time: datetime | None) -> str:
    """Return a time as the cluster file writes it."""
    return "a time that AWS does not say" if time is None else f"{time:%Y-%m-%dT%H:%M:%SZ}"


def window_issues(
    window: WindowPlan | None,
    *,
    starts: tuple[str, datetime | None],
    ends: tuple[str, datetime | None],
) -> Iterator[Issue]:
    """Yield the differences between the purchased window and the cluster file's.

    Args:
        window: The window of the file.
        starts: AWS's field of the start, and its value.
        ends: AWS's field of the end, and its value.
    """
    if window is None:
        return
    for (field, time), key, wanted in (
        (starts, "starts", window.starts),
        (ends, "ends", window.ends),
    ):
        purchased = in_utc(time)
        if purchased is None:
            evidence = f"AWS reports no {field}; the file has {written(wanted)}"
            yield Issue(state="unknown", evidence=evidence, fix="look in the console")
        elif purchased != wanted:
            there = written(purchased)
            evidence = f"{field} is {there} in the account, {written(wanted)} in the file"
            yield Issue(state="fail", evidence=evidence, fix=f"set purchase.{key}: {there}")
