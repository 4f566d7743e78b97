"""Cluster files that would fail in AWS, or waste what is paid for: `check` says so first.

`tests/support/known_bad.py` says what a case of `tests/data/known_bad` is.
"""

import difflib
import re
from pathlib import Path
from typing import cast

import pytest

from tests.support import messages
from tests.support.cases import for_each
from tests.support.folders import ROOT
from tests.support.known_bad import (
    answers,
    answers_to,
    base,
    cases,
    document_of,
    overlaid,
    read,
    subjects,
)
from tests.support.pools import as_text, loads_own
from tests.support.verdicts import verdict, verdicts
from ultrascale import config
from ultrascale.catalog import matrix
from ultrascale.config import named

CASES = cases()
FAILURES = read("field_failures")
MENDED = [name for name, case in CASES.items() if "mend" in case]


def has_key(document: object, path: str) -> bool:
    """Return whether ``document`` has the key ``path``, whose parts may hold dots."""
    if not path:
        return True
    if isinstance(document, list):
        label, _, rest = path.removeprefix("[").partition("]")
        items = cast("list[object]", document)
        return any(
            has_key(item, rest.removeprefix("."))
            for number, item in enumerate(items)
            if label == named(items, (number,))[1:-1]
        )
    if not isinstance(document, dict):
        return False
    keys = cast("dict[str, object]", document)
    return any(
        has_key(value, path[len(key) :].removeprefix("."))
        for key, value in keys.items()
        if path == key or path.startswith((f"{key}.", f"{key}["))
    )


def test_the_file_that_every_case_changes_is_right() -> None:
    assert answers(base()) == ()


@for_each({name: (name,) for name in read("bases")})
def test_other_documents_that_cases_change_have_no_mistake(name: str) -> None:
    loads_own(as_text(base(name)))


def test_no_two_cases_have_one_name() -> None:
    assert len(CASES) == sum(len(subject) for subject in subjects().values())


@pytest.mark.parametrize("name", CASES)
def test_a_known_bad_file_is_answered_by_these_rules_and_no_others(name: str) -> None:
    assert verdicts(answers_to(name)) == CASES[name]["expect"]


@for_each({name: (name,) for name in CASES})
def test_every_answer_names_a_key_and_says_what_to_do(name: str) -> None:
    document = document_of(CASES[name])

    assert answers_to(name)
    for each in answers_to(name):
        # A default is judged as well: its own key is not in the file.
        assert has_key(document, each.key) or has_key(document, each.key.rpartition(".")[0])
        assert "; " in each.text, each.keyed


@for_each({name: (name,) for name in MENDED})
def test_whoever_does_as_the_answer_says_has_a_good_file(name: str) -> None:
    mended = overlaid(document_of(CASES[name]), CASES[name]["mend"])

    assert [each.keyed for each in answers(mended) if each.severity == "error"] == []
    assert config.warnings(loads_own(as_text(mended))) == ()


def test_a_change_of_what_users_read_stands_in_the_catalogue() -> None:
    old, new = messages.FILE.read_text().splitlines(), messages.catalogue()

    changes = [*difflib.unified_diff(old, new, "tests/data/messages.txt", "the rules", n=0)]
    assert not changes, "\n".join(["run `make messages` where this is meant:", *changes])


def test_every_rule_has_a_sentence_in_the_catalogue() -> None:
    lines = messages.FILE.read_text().splitlines()

    shown = {tuple(line.split(" ")[:2]) for line in lines}
    assert {(name, severity) for name, (_, severity) in messages.rules().items()} <= shown


def test_all_mistakes_of_several_pools_are_named_at_once() -> None:
    alone = ("block-in-placement-group", "managed-group-of-451-nodes", "efa-pool-in-two-zones")
    pools = base()["pools"]
    for name in alone:
        (_, pool) = document_of(CASES[name])["pools"]
        pools = [*pools, pool | {"name": name}]

    together = [verdict(each) for each in answers(base() | {"pools": pools})]

    expected = [
        line.replace("[train]", f"[{name}]") for name in alone for line in CASES[name]["expect"]
    ]
    assert together == expected


def test_every_known_failure_has_one_answer() -> None:
    assert list(FAILURES) == [f"K{number:02}" for number in range(1, 133)]
    for number, failure in FAILURES.items():
        answers = failure.keys() & {"cases", "by", "about", "check"}
        assert len(answers) == 1, number


def test_the_cases_and_the_list_of_failures_name_each_other() -> None:
    by_case: dict[str, set[str]] = {}
    for number, failure in FAILURES.items():
        for name in failure.get("cases", ()):
            by_case.setdefault(name, set()).add(number)

    numbers = {name: set(case["numbers"]) for name, case in CASES.items() if "numbers" in case}
    assert by_case == numbers


@pytest.mark.parametrize(
    "number", [number for number, failure in FAILURES.items() if "by" in failure]
)
def test_what_leaves_a_failure_no_spelling_is_there(number: str) -> None:
    assert (ROOT / FAILURES[number]["by"]).exists()
    assert FAILURES[number]["why"]


def test_the_failures_of_the_matrix_are_known_and_have_an_answer() -> None:
    named = {each.number for cell in matrix.MATRIX.values() for each in cell.failures}

    assert named <= FAILURES.keys()
    assert not [number for number in named if "about" in FAILURES[number]]


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.stem)
def test_the_failures_that_a_page_names_are_known(page: Path) -> None:
    assert set(re.findall(r"\bK\d{2,3}\b", page.read_text())) <= FAILURES.keys()
