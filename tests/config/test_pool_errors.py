"""Mistakes in pools, and in what they need of the cluster."""

import pytest
from msgspec.structs import replace

from tests.support.config_documents import mistakes_in
from tests.support.pools import (
    make_document,
    make_pool,
)
from ultrascale import catalog
from ultrascale.config import pool_rules


@pytest.mark.parametrize(
    ("pools", "line"),
    [
        ({}, "pools: form"),
        (None, "pools: form"),
        ([], "pools: controllers_have_nodes"),
        ([5], "pools[0]: form"),
    ],
)
def test_pools_that_are_none_are_one_mistake(pools: object, line: str) -> None:
    assert mistakes_in(make_document() | {"pools": pools}) == [line]


def test_a_file_without_the_key_pools_has_one_mistake() -> None:
    assert mistakes_in(make_document(pools=None)) == ["pools: form"]


def test_a_type_that_no_placement_group_takes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalog has no such type so far."""
    spec = catalog.lookup("p5.48xlarge")
    barred = replace(spec, cells={**spec.cells, "placement_group": "no"})
    pool = make_pool(placement_group=True)
    monkeypatch.setattr(catalog, "lookup", {"p5.48xlarge": barred}.__getitem__)

    (mistake,) = pool_rules.placement_group_takes_the_types(pool)

    assert mistake.at == ("instance_types", 0)
    assert mistake.todo == "leave placement_group out"
