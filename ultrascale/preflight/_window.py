"""Times of AWS's answers, and windows that were bought against those that are planned."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from ultrascale.plan.model import WindowPlan
from ultrascale.preflight._issues import Issue


def time_of(answer: Mapping[str, Any], field: str) -> datetime | None:
    """Return the time in a field, in UTC; None where AWS says none."""
    found: datetime | None = answer.get(field)
    # Cluster files have whole seconds, and some services tell parts of them.
    return None if found is None else found.astimezone(UTC).replace(microsecond=0)


def written(time: datetime | None) -> str:
    """Return a time as the cluster file has it."""
    return "a time that AWS does not say" if time is None else f"{time:%Y-%m-%dT%H:%M:%SZ}"


def window_issues(
    window: WindowPlan | None, answer: Mapping[str, Any], *, starts: str, ends: str
) -> Iterator[Issue]:
    """Yield where the window that was bought is not the one of the cluster file.

    Args:
        window: The window of the file.
        answer: What AWS says.
        starts: AWS's field of the start.
        ends: AWS's field of the end.
    """
    if window is None:
        return
    for field, key, wanted in ((starts, "starts", window.starts), (ends, "ends", window.ends)):
        found = time_of(answer, field)
        if found is None:
            evidence = f"AWS says no {field}, {written(wanted)} in the file"
            yield Issue(state="unknown", evidence=evidence, fix="look in the console")
        elif found != wanted:
            evidence = f"{field} is {written(found)} in the account, {written(wanted)} in the file"
            fix = f"set purchase.{key}: {written(found)}"
            yield Issue(state="fail", evidence=evidence, fix=fix)
