"""Files of tests that share what begins slowly are one worker's, and begin first."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.folders import ROOT
from tests.support.scheduling import begin_with_shared, shared, unit

TESTS = ROOT / "tests"


@pytest.mark.parametrize(
    ("what", "names"),
    [
        ("torch", ["jobs/test_gang", "training/test_rendezvous_torchrun", "training/test_faults"]),
        ("postgres", ["backend/test_database", "backend/test_process"]),
        (
            "assemblies",
            ["templates/test_cells", "templates/test_stacks", "templates/test_whole_cluster"],
        ),
        ("moto", ["preflight/test_in_moto", "teardown/test_in_moto"]),
        (None, ["support/test_scheduling", "catalog/test_matrix"]),
    ],
)
def test_a_file_says_what_it_shares(what: str | None, names: list[str]) -> None:
    assert {shared(TESTS / f"{name}.py") for name in names} == {what}


def test_one_worker_has_all_that_shares_something_and_the_rest_file_by_file() -> None:
    names = ("templates/test_whole_cluster", "catalog/test_matrix", "templates/test_stacks")

    units = [unit(f"tests/{name}.py") for name in names]

    assert units == ["assemblies", "tests/catalog/test_matrix.py", "assemblies"]


def test_what_is_shared_begins_first_and_else_the_order_stays() -> None:
    names = [
        "support/test_scheduling",
        "templates/test_stacks",
        "catalog/test_matrix",
        "templates/test_whole_cluster",
        "backend/test_store",
        "jobs/test_gang",
    ]
    items: list[Any] = [SimpleNamespace(path=TESTS / f"{name}.py") for name in names]

    begin_with_shared(items)

    assert [str(item.path.relative_to(TESTS).with_suffix("")) for item in items] == [
        *(
            "jobs/test_gang",
            "backend/test_store",
            "templates/test_stacks",
            "templates/test_whole_cluster",
        ),
        *("support/test_scheduling", "catalog/test_matrix"),
    ]
