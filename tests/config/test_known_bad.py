"""Cluster files that would fail in AWS, or waste what is paid for: `check` says so first.

Each file of `tests/data/known_bad` changes a part of `base.yaml`: pools by name; null removes one.
"""

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from tests.support.folders import DATA, ROOT
from tests.support.pools import as_text, loads_own
from ultrascale import config, plan
from ultrascale.catalog import matrix
from ultrascale.config import named
from ultrascale.errors import ConfigError

FOLDER = DATA / "known_bad"
# These hold a value of the file as a whole.
WHOLE = ("purchase", "nodes")


def read(name: str) -> dict[str, Any]:
    return yaml.load((FOLDER / f"{name}.yaml").read_text(), yaml.CSafeLoader)


CASES = {
    path.stem: read(path.stem)
    for path in sorted(FOLDER.glob("*.yaml"))
    if path.stem not in ("base", "field_failures")
}
FAILURES = read("field_failures")
MENDED = {name: case for name, case in CASES.items() if "mend" in case}


def overlaid(document: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(document)
    for key, value in change.items():
        if key == "pools":
            result[key] = overlaid_pools(result[key], value)
        elif value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and key in result and key not in WHOLE:
            result[key] = overlaid(result[key], cast("dict[str, Any]", value))
        else:
            result[key] = value
    return result


def overlaid_pools(
    pools: list[dict[str, Any]], change: Mapping[str, dict[str, Any] | None]
) -> list[dict[str, Any]]:
    named = {pool["name"]: pool for pool in pools}
    for name, keys in change.items():
        if keys is None:
            del named[name]
        else:
            named[name] = overlaid(named.get(name, {"name": name}), keys)
    return list(named.values())


def mistakes_in(document: Mapping[str, Any]) -> list[str]:
    """Return what `ultrascale check` says against ``document``, but of what is not built yet."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "cluster.yaml")
        path.write_text(yaml.safe_dump(document, sort_keys=False))
        try:
            plan.load(path)
        except ConfigError as error:
            lines = [each.keyed for each in error.diagnostics]
            if not any("not supported yet" in line for line in lines):
                return lines
        try:
            config.load(path)
        except ConfigError as error:
            return [each.keyed for each in error.diagnostics]
    return []


def warnings_of(document: Mapping[str, Any]) -> list[str]:
    return [*config.warnings(loads_own(as_text(document)))]


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
    assert mistakes_in(read("base")) == []
    assert warnings_of(read("base")) == []


@pytest.mark.parametrize("name", CASES)
def test_a_known_bad_file_is_answered_with_these_lines_and_no_others(name: str) -> None:
    case = CASES[name]
    document = overlaid(read("base"), case["change"])

    if case["kind"] == "refused":
        assert mistakes_in(document) == case["expect"]
    else:
        assert warnings_of(document) == case["expect"]


@pytest.mark.parametrize("name", CASES)
def test_every_answer_starts_with_its_key_and_ends_with_what_to_do(name: str) -> None:
    document = overlaid(read("base"), CASES[name]["change"])

    assert CASES[name]["expect"]
    for line in CASES[name]["expect"]:
        path, text = line.split(": ", maxsplit=1)
        # A default is judged as well: its own key is not in the file.
        assert has_key(document, path) or has_key(document, path.rpartition(".")[0])
        assert "; " in text


@pytest.mark.parametrize("name", MENDED)
def test_whoever_does_as_the_answer_says_has_a_good_file(name: str) -> None:
    bad = overlaid(read("base"), MENDED[name]["change"])

    document = overlaid(bad, MENDED[name]["mend"])

    assert mistakes_in(document) == []
    assert warnings_of(document) == []


def test_all_mistakes_of_several_pools_are_named_at_once() -> None:
    alone = ("block-in-placement-group", "managed-group-of-451-nodes", "efa-pool-in-two-zones")
    pools = overlaid(read("base"), {})["pools"]
    for name in alone:
        (_, pool) = overlaid(read("base"), CASES[name]["change"])["pools"]
        pools.append(pool | {"name": name})

    lines = mistakes_in(read("base") | {"pools": pools})

    expected = [line for name in alone for line in CASES[name]["expect"]]
    texts = [line.split(": ", maxsplit=1)[1] for line in expected]
    assert [line.split(": ", maxsplit=1)[1] for line in lines] == texts


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
