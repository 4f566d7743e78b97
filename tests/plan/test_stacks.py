"""The table of layers: what it says of one layer agrees with what it says of the others."""

from datetime import UTC, datetime, timedelta
from graphlib import TopologicalSorter

import pytest

from tests.support.folders import ROOT
from ultrascale.plan import load
from ultrascale.plan.stacks import (
    LayerId,
    all_layers,
    fixed_stacks,
    layers_before,
    not_due,
    planned_layers,
    reserved_names,
    stacks_that_may_lack_capacity,
)
from ultrascale.teardown.model import PHASES

ROWS = pytest.mark.parametrize("layer", all_layers())


def earlier(layer: LayerId) -> set[LayerId]:
    return {*all_layers()[layer].after, *all_layers()[layer].after_if}


def removal(layer: LayerId) -> tuple[int, int]:
    """Return the step and the wave that delete a layer."""
    ((phase, wave),) = (
        (number, turn)
        for number, phase in enumerate(PHASES)
        for turn, wave in enumerate(phase.waves)
        if layer in wave
    )
    return phase, wave


def test_no_layer_waits_for_itself() -> None:
    waiting = {id: earlier(id) for id in all_layers()}
    assert {*TopologicalSorter(waiting).static_order()} == {*all_layers()}


@ROWS
def test_a_layer_stands_below_those_that_it_waits_for_and_is_deleted_before_them(
    layer: LayerId,
) -> None:
    order = [*all_layers()]
    assert earlier(layer) <= {*order[: order.index(layer)]}
    for needed in earlier(layer):
        assert removal(layer) < removal(needed)


@ROWS
def test_a_layer_outlives_layers_of_its_step_that_do_not_wait_for_it(layer: LayerId) -> None:
    row = all_layers()[layer]

    for other in row.outlives:
        assert all_layers()[other].taken_down_in == row.taken_down_in
        assert layer not in earlier(other)
        assert removal(other) < removal(layer)


def test_layers_whose_nodes_are_paid_for_stop_nothing_but_what_needs_their_nodes() -> None:
    waiting = {
        id for id in all_layers() if any(all_layers()[other].costs_nodes for other in earlier(id))
    }

    assert waiting == {"governance", "teams", "training-operator", "hyperpod-metrics"}


def test_stacks_that_need_nodes_are_not_due_while_a_training_plan_is_not_there() -> None:
    hybrid = load(ROOT / "clusters" / "hybrid-hyperpod.yaml")
    starts = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)
    late = {"hybrid-hyperpod-governance", "hybrid-hyperpod-teams"}

    assert not_due(hybrid, starts - timedelta(minutes=1)) == dict.fromkeys(late, starts)
    assert not_due(hybrid, starts) == {}
    assert not_due(hybrid, starts + timedelta(days=100)) == dict.fromkeys(late)


def test_no_deployment_waits_for_nodes_that_a_training_plan_takes_back_before_its_end() -> None:
    hybrid = load(ROOT / "clusters" / "hybrid-hyperpod.yaml")
    (ends,) = {pool.window.ends for pool in hybrid.pools if pool.window is not None}
    reclaimed = ends - timedelta(minutes=60)

    assert not_due(hybrid, reclaimed - timedelta(minutes=1)) == {}
    assert {*not_due(hybrid, reclaimed)} == {"hybrid-hyperpod-governance", "hybrid-hyperpod-teams"}


def test_only_groups_that_wait_for_nodes_may_lack_capacity() -> None:
    mixed = load(ROOT / "clusters" / "mixed-capacity.yaml")

    found = stacks_that_may_lack_capacity(planned_layers(mixed))
    assert "mixed-capacity-gpu-odcr-mng" in found
    assert "mixed-capacity-node-pools" not in found
    assert "mixed-capacity-system" not in found


def test_no_pool_may_be_called_like_a_stack() -> None:
    assert {f"a-{name}" for name in reserved_names()} >= fixed_stacks("a")
    # No stack has the name of a layer of pools.
    assert not {"node-groups", "system-node-groups"} & reserved_names()


def test_identities_of_pods_are_made_after_the_cluster_that_they_name() -> None:
    plan = load(ROOT / "clusters" / "ultra-100k.yaml")

    assert plan.storage.output_access is not None
    assert not plan.storage.lustre
    assert "cluster" in layers_before(plan, "storage")
