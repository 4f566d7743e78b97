"""Files of tests that share what begins slowly are one worker's, and begin first."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.scheduling import begin_with_shared, shared, unit

TESTS = Path(__file__).parent


@pytest.mark.parametrize(
    ("what", "names"),
    [
        ("torch", ["job_gang", "rendezvous_torchrun", "training_faults"]),
        ("postgres", ["backend_database", "backend_process"]),
        ("assemblies", ["cells", "stacks", "whole_cluster"]),
        (None, ["scheduling", "matrix"]),
    ],
)
def test_a_file_says_what_it_shares(what: str | None, names: list[str]) -> None:
    assert {shared(TESTS / f"test_{name}.py") for name in names} == {what}


def test_one_worker_has_all_that_shares_something_and_the_rest_file_by_file() -> None:
    names = ("whole_cluster", "matrix", "stacks")

    units = [unit(f"tests/test_{name}.py") for name in names]

    assert units == ["assemblies", "tests/test_matrix.py", "assemblies"]


def test_what_is_shared_begins_first_and_else_the_order_stays() -> None:
    names = ["scheduling", "stacks", "matrix", "whole_cluster", "backend_store", "job_gang"]
    items: list[Any] = [SimpleNamespace(path=TESTS / f"test_{name}.py") for name in names]

    begin_with_shared(items)

    assert [item.path.stem.removeprefix("test_") for item in items] == [
        *("job_gang", "backend_store", "stacks", "whole_cluster"),
        *("scheduling", "matrix"),
    ]
