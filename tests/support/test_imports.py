"""The order in which workers import what they collect."""

from pathlib import Path

import pytest

from tests.support.folders import ROOT
from tests.support.imports import asked_for, from_its_place

FILES = [Path(f"test_{number}.py") for number in range(7)]


@pytest.mark.parametrize("workers", [2, 3, 4])
def test_each_worker_imports_all_files_and_begins_where_no_other_does(workers: int) -> None:
    orders = [from_its_place(FILES, worker, workers) for worker in range(workers)]

    assert all(sorted(order) == FILES for order in orders)
    assert len({order[0] for order in orders}) == workers


def test_files_are_those_of_what_was_asked_for() -> None:
    here = Path(__file__)

    assert asked_for(["tests/support/test_imports.py::test_of_one"]) == [here]
    assert here in asked_for(["tests"])
    assert all(here.parent in file.parents for file in asked_for([str(here.parent)]))
    assert ROOT / "tests/titan/conftest.py" not in asked_for(["tests"])
