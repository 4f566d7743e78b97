"""The list of instance types, from which a user picks a system pool or finds a misspelling."""

import json

import pytest

from tests.support.cases import for_each
from tests.support.command_line import Ultrascale
from ultrascale import catalog
from ultrascale.errors import CatalogError


def test_every_type_that_check_takes_is_listed_with_its_size(ultrascale: Ultrascale) -> None:
    rows = {row["type"]: row for row in json.loads(ultrascale("types", "--json").stdout)}
    p5 = rows["p5.48xlarge"]
    assert [*rows] == [*catalog.INSTANCE_TYPES]
    assert (p5["vCPUs"], p5["accelerators"], p5["EFA cards"]) == (192, 8, 32)
    assert "p5.48xlarge" in ultrascale("types", "p5", "--accelerated").stdout


def test_the_list_begins_with_accelerators_and_fits_a_terminal(ultrascale: Ultrascale) -> None:
    short = ultrascale("types").stdout.splitlines()
    whole = ultrascale("types", "--all").stdout.splitlines()

    assert any("p5.48xlarge" in line for line in short)
    assert not any("m7g.2xlarge" in line for line in short)
    assert any("m7g.2xlarge" in line for line in whole)
    assert "--all" in short[-1]
    assert max(map(len, (*short, *whole))) <= 110


@pytest.mark.parametrize(("words", "status"), [(["zz9"], 1), (["m7i", "--accelerated"], 64)])
def test_a_family_that_nobody_has_is_told(
    ultrascale: Ultrascale, words: list[str], status: int
) -> None:
    answer = ultrascale("types", *words)
    assert (answer.returncode, answer.stdout) == (status, "")
    assert words[0] in answer.stderr


@for_each(
    [
        ("t33.large", "did you mean t3.large?"),
        ("ml.p5.48xlarge", "did you mean p5.48xlarge?"),
        ("vt1.3xlarge", "`ultrascale types` lists the known ones"),
    ]
)
def test_a_suggestion_is_of_the_same_series_or_none(name: str, todo: str) -> None:
    with pytest.raises(CatalogError) as refused:
        catalog.lookup(name)
    assert str(refused.value) == f"unknown instance type {name!r}; {todo}"
