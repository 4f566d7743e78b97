"""What happens to every number of a plan when a pool grows: what its formula says."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.needs import KARPENTER, POD_RANGES, needs
from tests.pools import ON_DEMAND, pool_document
from ultrascale.catalog import quotas
from ultrascale.plan.model import Figure
from ultrascale.plan.needs import all_figures

# By the last part of their id: these have a bound, are rounded up or are shares, and tests of
# their own.
BENT = frozenset(
    {
        *("run_instances_minutes", "minutes_to_first_step", "coredns_replicas"),
        *("coredns_replicas_most", "pods", "full", "nodes_most"),
        quotas.NODES_OF_A_GROUP.code,  # of the largest
    }
)
# Of the pool that grows, and of all: what grows with each node.
GROWING = (
    *("nodes", "vcpus", "network_interfaces", "address_usage"),
    *("on_demand_usd_per_hour", "usd_per_hour", "usd_per_month"),
)
TYPES = ["p5.48xlarge", "p4d.24xlarge", "trn1.32xlarge", "g6e.48xlarge"]
EAST = POD_RANGES | {"zones": ["us-east-1a", "us-east-1b"]}


def figures_of(name: str, nodes: int, launched: dict[str, Any]) -> dict[str, Figure]:
    pool = pool_document(
        instance_types=[name],
        purchase=ON_DEMAND,
        zones=["us-east-1a"],
        nodes={"max": nodes},
        **launched,
    )
    found = needs(pool, region="us-east-1", network=EAST, karpenter=KARPENTER)
    return {figure.id: figure for figure in all_figures(found)}


@settings(deadline=None, max_examples=8)
@given(
    nodes=st.integers(1, 140),
    name=st.sampled_from(TYPES),
    launched=st.sampled_from([{}, {"provisioner": "karpenter"}]),
)
def test_every_number_grows_with_its_pool_and_by_as_much_for_each_node(
    nodes: int, name: str, launched: dict[str, Any]
) -> None:
    """The second doubling's worth of nodes adds what the first did, or the number is bounded."""
    once, twice, thrice = (figures_of(name, count * nodes, launched) for count in (1, 2, 3))

    assert once.keys() == twice.keys() == thrice.keys()
    for key, first in once.items():
        numbers = (first.value, twice[key].value, thrice[key].value)
        if None in numbers:
            assert numbers == (None, None, None), key
        elif key.rpartition(".")[2] not in BENT:
            low, middle, high = (value for value in numbers if value is not None)
            assert high - middle == pytest.approx(middle - low, rel=1e-6, abs=1e-9), key
    for key in GROWING:
        own = f"train.{key}" if f"train.{key}" in once else f"money.train.{key}"
        value = once[own].value
        assert value is not None or name == "g6e.48xlarge", own
        assert twice[own].value == (value if value is None else pytest.approx(2 * value)), own


def test_a_number_that_changes_changes_in_its_formula_too() -> None:
    once, twice = (figures_of("p5.48xlarge", count, {}) for count in (20, 40))

    silent = [
        key
        for key, figure in once.items()
        if figure.value != twice[key].value
        and figure.formula == twice[key].formula
        # Their terms are figures, which say it.
        and not any(other in figure.formula for other in once if other != key)
        and key.rpartition(".")[2] not in BENT | {"pods_most"}
    ]
    assert silent == []
