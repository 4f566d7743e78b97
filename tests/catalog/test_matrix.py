"""The pool matrix: one set of data for the rules, the command and the page."""

import io
import subprocess
import sys
from contextlib import redirect_stdout
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.cases import for_each
from tests.support.config_documents import KARPENTER, sentences_in
from tests.support.folders import ROOT
from tests.support.pools import (
    CAPACITY_BLOCK,
    ODCR,
    ON_DEMAND,
    SPOT,
    SYSTEM_POOL,
    TRAINING_PLAN,
    as_text,
    loads_own,
    make_document,
    make_pool,
    pool_document,
)
from ultrascale import catalog
from ultrascale.catalog import eks, matrix
from ultrascale.catalog.field_failures import FIELD_FAILURES
from ultrascale.catalog.provisioners import NODE_POOLS, PROVISIONERS, Provisioner
from ultrascale.cli.instance_types import markdown, print_matrix
from ultrascale.errors import CatalogError
from ultrascale.plan.pools.pool import plan_pools

PURCHASES = {
    "on-demand": ON_DEMAND,
    "spot": SPOT,
    "odcr": ODCR,
    "capacity-block": CAPACITY_BLOCK,
    "training-plan": TRAINING_PLAN,
}
CELLS = list(matrix.MATRIX.values())
REFUSED = [cell for cell in CELLS if not cell.works]
WITH_RESERVATION = [cell for cell in CELLS if cell.option in ("odcr", "capacity-block")]
NAMED_BY = {
    "reservation": "cr-0123456789abcdef0",
    "reservation_tags": {"team": "research"},
    "resource_group": "arn:aws:resource-groups:us-west-2:111122223333:group/g",
}


def named(cell: matrix.Cell) -> str:
    return f"{cell.option} on {cell.provisioner}"


def document_of(
    provisioner: str, purchase: dict[str, Any], types: int = 1, **changes: Any
) -> dict[str, Any]:
    """Return a cluster file of a system pool, and a pool of the cell."""
    three = ["p5.48xlarge", "p5en.48xlarge", "p4d.24xlarge"]
    nodes = {"static": 8} if provisioner == "hyperpod" else {"max": 16}
    pool = pool_document(
        role="reserved",
        nodes=nodes,
        instance_types=three[:types],
        provisioner=provisioner,
        purchase=purchase,
        **changes,
    )
    document = make_document(pools=[SYSTEM_POOL, pool])
    return document | {"karpenter": KARPENTER} if provisioner == "karpenter" else document


def test_every_provisioner_has_a_cell_for_every_purchase_option() -> None:
    assert len(CELLS) == len(PROVISIONERS) * len(matrix.PURCHASE_OPTIONS) == 25


@pytest.mark.parametrize("cell", CELLS, ids=named)
def test_a_cell_works_and_says_how_or_is_refused_and_says_why(cell: matrix.Cell) -> None:
    story = (cell.rendered, cell.first_node, cell.last_node)

    assert all(story) if cell.works else not any(story)
    assert bool(cell.refused) == bool(cell.instead) == bool(cell.source) == (not cell.works)


@pytest.mark.parametrize("cell", CELLS, ids=named)
def test_the_rules_say_of_a_cell_what_the_matrix_says(cell: matrix.Cell) -> None:
    document = document_of(cell.provisioner, PURCHASES[cell.option], types=cell.fewest_types)

    lines = sentences_in(document)

    if cell.works:
        assert lines == []
    else:
        (line,) = lines
        assert line.startswith("pools[train].purchase.option: ")
        assert cell.refused in line


@pytest.mark.parametrize("cell", REFUSED, ids=named)
def test_what_a_refused_cell_points_to_works_and_stands_in_the_message(cell: matrix.Cell) -> None:
    (line,) = sentences_in(document_of(cell.provisioner, PURCHASES[cell.option]))

    for provisioner, option in cell.instead:
        assert matrix.cell(provisioner, option).works
        assert f"option: {option}" in line
        assert provisioner == cell.provisioner or f"provisioner: {provisioner}" in line


@pytest.mark.parametrize("key", matrix.RESERVATION_KEYS)
@pytest.mark.parametrize("cell", WITH_RESERVATION, ids=named)
def test_a_reservation_is_named_by_the_keys_of_its_cell_alone(
    cell: matrix.Cell, key: matrix.ReservationKey
) -> None:
    bare = {k: v for k, v in PURCHASES[cell.option].items() if k != "reservation"}

    lines = sentences_in(document_of(cell.provisioner, bare | {key: NAMED_BY[key]}))

    if cell.works:
        assert (lines == []) == (key in cell.names_reservation_by)


@pytest.mark.parametrize("cell", [cell for cell in CELLS if cell.works], ids=named)
def test_on_demand_beside_a_cell_is_taken_where_the_matrix_says(cell: matrix.Cell) -> None:
    for option, key, possible in (
        ("odcr", "spill", cell.spills),
        ("spot", "fallback", cell.falls_back),
    ):
        if cell.option == option:
            purchase = PURCHASES[option] | {key: "on-demand"}
            lines = sentences_in(document_of(cell.provisioner, purchase, types=cell.fewest_types))
            assert (lines == []) == possible


@pytest.mark.parametrize("cell", [cell for cell in CELLS if cell.fewest_types > 1], ids=named)
def test_one_type_less_than_the_matrix_asks_for_is_refused(cell: matrix.Cell) -> None:
    (line,) = sentences_in(document_of(cell.provisioner, SPOT, types=cell.fewest_types - 1))

    assert f"fewer than {cell.fewest_types} instance types" in line


@given(
    provisioner=st.sampled_from(PROVISIONERS), name=st.sampled_from(sorted(catalog.INSTANCE_TYPES))
)
def test_what_a_provisioner_does_not_launch_has_another_that_does(
    provisioner: Provisioner, name: str
) -> None:
    spec = catalog.lookup(name)

    why = matrix.why_not_launched(provisioner, spec)

    assert why is None or provisioner in NODE_POOLS
    assert not matrix.why_not_launched("managed-node-group", spec)


@for_each(sorted(catalog.INSTANCE_TYPES))
def test_a_node_group_is_offered_where_one_can_be_planned(name: str) -> None:
    spec = catalog.lookup(name)
    try:
        plan_pools(
            make_pool(instance_types=[name], efa="none"), kubernetes_version=eks.DEFAULT_VERSION
        )
    except CatalogError:
        planned = False
    else:
        planned = True

    assert matrix.can_be_planned(spec) == planned


def test_the_page_says_that_no_ultraserver_can_be_planned() -> None:
    planned = [spec for spec in matrix.ultraserver_types() if matrix.can_be_planned(spec)]

    assert planned == []
    assert "No UltraServer type can be planned yet (`p6e-gb200.36xlarge`, `trn2u" in markdown()


PURCHASE = st.one_of(
    st.sampled_from(list(PURCHASES.values())),
    st.sampled_from([SPOT | {"fallback": "on-demand"}, ODCR | {"spill": "on-demand"}]),
    st.sampled_from([{"option": "odcr", key: value} for key, value in NAMED_BY.items()]),
)
NODES = st.one_of(
    st.fixed_dictionaries({"static": st.integers(1, 64)}),
    st.fixed_dictionaries({"max": st.integers(1, 600)}),
    st.fixed_dictionaries({"min": st.integers(0, 4), "max": st.integers(1, 64)}),
)
THREE_TYPES = ["g6.12xlarge", "g6e.12xlarge", "g5.12xlarge"]
# Twice what most pools have, or few of them would be right.
POOLS = st.fixed_dictionaries(
    {
        "provisioner": st.sampled_from(PROVISIONERS),
        "purchase": PURCHASE,
        "nodes": NODES,
        "role": st.sampled_from(["reserved", "reserved", "burst", "system"]),
        "instance_types": st.sampled_from(
            [["p5.48xlarge"], ["trn2.48xlarge"], THREE_TYPES, ["p5.48xlarge", "g6.12xlarge"]]
        ),
        "zones": st.sampled_from([["us-west-2b"], ["us-west-2b"], ["us-west-2a", "us-west-2b"]]),
        "placement_group": st.sampled_from([False, False, True]),
        "efa": st.sampled_from(["auto", "auto", "none", "all"]),
        "shards": st.sampled_from([1, 1, 2]),
    }
)


@given(pool=POOLS)
def test_any_pool_is_planned_or_refused_with_a_way_out(pool: dict[str, Any]) -> None:
    document = make_document(pools=[SYSTEM_POOL, pool_document(**pool)])
    if pool["provisioner"] == "karpenter":
        document["karpenter"] = KARPENTER

    lines = sentences_in(document)

    for line in lines:
        assert line.startswith("pools[train].")
        assert "; " in line
    if not lines:
        cluster = loads_own(as_text(document))
        plans = plan_pools(cluster.pools[1], kubernetes_version=cluster.kubernetes.version)
        assert len(plans) == pool["shards"]


def test_the_page_is_what_the_command_prints() -> None:
    command = [sys.executable, "-m", "ultrascale", "matrix", "--markdown"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout

    assert (ROOT / "docs" / "pool-matrix.md").read_text() == printed


def test_the_command_prints_every_cell_with_its_reason_and_every_link() -> None:
    with redirect_stdout(io.StringIO()) as printed:
        print_matrix()

    words = " ".join(printed.getvalue().split())
    for cell in CELLS:
        assert (cell.refused or cell.rendered).replace("`", "") in words
        assert cell.source in words
        assert not cell.source or cell.source in markdown()
    for failure in FIELD_FAILURES.values():
        assert failure.url in words


def test_the_list_of_field_failures_holds_no_more_than_the_matrix_names() -> None:
    used = {each.number for cell in CELLS for each in cell.failures}

    assert used == FIELD_FAILURES.keys()
