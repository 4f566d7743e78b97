"""Optional tests: skipped with the reason, and never where they are required."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

import conftest
from tests.support import optional


@pytest.fixture(autouse=True)
def checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let PostgreSQL be missing, and torch be there."""
    monkeypatch.setitem(optional.CHECKS, "postgres", lambda: "no PostgreSQL here")
    monkeypatch.setitem(optional.CHECKS, "training", lambda: None)


def run_with(*required: str) -> pytest.Config:
    def getoption(_: str) -> Sequence[str]:
        return required

    return cast("pytest.Config", SimpleNamespace(getoption=getoption))


def test_tests_that_are_required_are_never_skipped_in_silence() -> None:
    with pytest.raises(pytest.UsageError, match="--require=postgres: no PostgreSQL here"):
        conftest.pytest_configure(run_with("training", "postgres"))


def test_what_is_there_or_not_required_stops_nothing() -> None:
    conftest.pytest_configure(run_with("training"))
    conftest.pytest_configure(run_with())


def test_a_test_whose_server_is_missing_is_skipped_with_the_reason() -> None:
    marks: list[pytest.MarkDecorator] = []

    def carried(marker: str) -> str | None:
        return marker if marker == "postgres" else None

    item = SimpleNamespace(path=Path(__file__), get_closest_marker=carried, add_marker=marks.append)

    conftest.pytest_collection_modifyitems(run_with(), [cast("pytest.Item", item)])

    assert [mark.kwargs for mark in marks] == [{"reason": "no PostgreSQL here"}]


def test_every_marker_that_may_be_skipped_is_declared(pytestconfig: pytest.Config) -> None:
    declared = {line.partition(":")[0] for line in pytestconfig.getini("markers")}

    assert optional.CHECKS.keys() <= declared


def test_the_last_line_says_why_tests_were_skipped_and_how_many() -> None:
    skips = [("a.py", 1, "Skipped: no torch"), ("b.py", 2, "no Envoy"), ("c.py", 3, "no torch")]

    assert optional.reasons(skips) == "2 no torch; 1 no Envoy"
