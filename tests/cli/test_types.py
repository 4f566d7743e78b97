"""The list of instance types, from which a user picks a system pool or finds a misspelling."""

import json

import pytest

from tests.support.cases import for_each
from tests.support.command_line import Ultrascale
from ultrascale import catalog
from ultrascale.errors import CatalogError


def test_every_type_that_check_takes_is_listed(ultrascale: Ultrascale) -> None:
    rows = json.loads(ultrascale("types", "--json").stdout)

    assert [row["type"] for row in rows] == [*catalog.INSTANCE_TYPES]


def test_a_family_is_listed_with_what_decides_between_its_sizes(ultrascale: Ultrascale) -> None:
    answer = ultrascale("types", "p5", "--accelerated", "--json")

    (row,) = (row for row in json.loads(answer.stdout) if row["type"] == "p5.48xlarge")
    assert (row["vCPUs"], row["accelerators"], row["EFA cards"]) == (192, 8, 32)
    assert "p5.48xlarge" in ultrascale("types", "p5").stdout


@pytest.mark.parametrize(("words", "status"), [(["zz9"], 1), (["m7i", "--accelerated"], 64)])
def test_a_family_that_nobody_has_is_told(
    ultrascale: Ultrascale, words: list[str], status: int
) -> None:
    answer = ultrascale("types", *words)

    assert (answer.returncode, answer.stdout) == (status, "")
    assert words[0] in answer.stderr


@for_each(
    [
        "m5.xlarge",
        "m6i.large",
        "m7a.xlarge",
        "t3.large",
        "t4g.medium",
        "i4i.xlarge",
        "g4dn.xlarge",
        "m7g.large",
    ]
)
def test_common_types_of_system_and_cpu_pools_are_known(name: str) -> None:
    spec = catalog.lookup(name)

    assert all(map(spec.knows, ("vcpus", "memory_mib", "architecture", "enis_total")))
    assert spec.knows("max_pods_secondary_ip")


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
