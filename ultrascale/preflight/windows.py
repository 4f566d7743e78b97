"""Windows of purchases: AWS's times compared with the cluster file's times."""

from collections.abc import Iterator
from datetime import UTC, datetime

from ultrascale.plan.model import WindowPlan
from ultrascale.preflight.model import Issue


def in_utc(time: datetime | None) -> datetime | None:
    """Return one of AWS's times in UTC and in whole seconds, the form of cluster files."""
    return None if time is None else time.astimezone(UTC).replace(microsecond=0)


def time_text(time: datetime | None) -> str:
    """Return a time as the cluster file spells it."""
    return "a time that AWS does not say" if time is None else f"{time:%Y-%m-%dT%H:%M:%SZ}"


def window_issues(
    window: WindowPlan | None,
    *,
    starts: tuple[str, datetime | None],
    ends: tuple[str, datetime | None],
) -> Iterator[Issue]:
    """Yield an issue if the purchased window differs from the window in the cluster file.

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
            evidence = f"AWS reports no {field}; the file has {time_text(wanted)}"
            yield Issue(state="unknown", evidence=evidence, fix="look in the console")
        elif purchased != wanted:
            there = time_text(purchased)
            evidence = f"{field} is {there} in the account, {time_text(wanted)} in the file"
            yield Issue(state="fail", evidence=evidence, fix=f"set purchase.{key}: {there}")
