"""Optional programs and libraries that tests need, by marker."""

import importlib.util
from collections.abc import Callable, Iterable, Mapping

from tests.support.no_torch import NO_TORCH

NO_POSTGRES = "no PostgreSQL here: install the Debian package postgresql"


def _torch() -> str | None:
    return NO_TORCH if importlib.util.find_spec("torch") is None else None


def _postgres() -> str | None:
    from tests.support.postgres_server import find_program

    return None if find_program("initdb") and find_program("postgres") else NO_POSTGRES


# What is missing; None where nothing is.
CHECKS: dict[str, Callable[[], str | None]] = {"training": _torch, "postgres": _postgres}


def missing(markers: Iterable[str]) -> Mapping[str, str]:
    """Return why tests of ``markers`` cannot run; nothing for those that can."""
    reasons = {marker: CHECKS[marker]() for marker in markers}
    return {marker: reason for marker, reason in reasons.items() if reason is not None}
