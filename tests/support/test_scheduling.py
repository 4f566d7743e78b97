"""Files of tests that share what begins slowly are one worker's, and begin first."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.folders import ROOT
from tests.support.scheduling import begin_with_shared, shared, unit


@pytest.mark.parametrize(
    ("what", "names"),
    [
        (
            "torch",
            ["tests/jobs/test_gang", "training/tests/test_vote", "examples/bert/tests/test_faults"],
        ),
        ("postgres", ["backend/tests/test_database", "backend/tests/test_process"]),
        (
            "assemblies",
            [
                "tests/templates/test_cells",
                "tests/templates/test_stacks",
                "tests/templates/test_whole_cluster",
            ],
        ),
        ("moto", ["tests/preflight/test_in_moto", "tests/teardown/test_in_moto"]),
        (None, ["tests/support/test_scheduling", "tests/catalog/test_matrix"]),
    ],
)
def test_a_file_says_what_it_shares(what: str | None, names: list[str]) -> None:
    assert {shared(ROOT / f"{name}.py") for name in names} == {what}


def test_one_worker_has_all_that_shares_something_and_the_rest_file_by_file() -> None:
    names = (
        "tests/templates/test_whole_cluster",
        "tests/catalog/test_matrix",
        "tests/templates/test_stacks",
    )

    units = [unit(f"{name}.py") for name in names]

    assert units == ["assemblies", "tests/catalog/test_matrix.py", "assemblies"]


def test_what_is_shared_begins_first_and_else_the_order_stays() -> None:
    names = [
        "tests/support/test_scheduling",
        "tests/templates/test_stacks",
        "tests/catalog/test_matrix",
        "tests/templates/test_whole_cluster",
        "backend/tests/test_store",
        "tests/jobs/test_gang",
    ]
    items: list[Any] = [SimpleNamespace(path=ROOT / f"{name}.py") for name in names]

    begin_with_shared(items)

    assert [str(item.path.relative_to(ROOT).with_suffix("")) for item in items] == [
        *(
            "tests/jobs/test_gang",
            "backend/tests/test_store",
            "tests/templates/test_stacks",
            "tests/templates/test_whole_cluster",
        ),
        *("tests/support/test_scheduling", "tests/catalog/test_matrix"),
    ]
