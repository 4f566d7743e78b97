"""The order of a teardown: a stack that goes before what needs it leaves nodes that nobody ends."""

from collections.abc import Mapping

import pytest

from tests.assembly import Assembly
from tests.teardown_cluster import research
from tests.test_stacks import stacks_before
from ultrascale.config.pools import RESERVED_NAMES
from ultrascale.plan import ClusterPlan
from ultrascale.teardown.order import PHASES, PIPELINE, layers

# Names that no stack has: pools may not be called so for other reasons.
NO_STACKS = {"default", "jobs", "scheduling"}


def places(plan: ClusterPlan) -> Mapping[str, tuple[int, int]]:
    """Return of each layer the step and the wave that it goes in."""
    return {
        layer: (number, turn)
        for number, phase in enumerate(PHASES)
        for turn, wave in enumerate(phase.waves)
        for layer in layers(plan, wave)
    }


@pytest.mark.parametrize("name", ["trainium", "mixed", "auto", "hybrid"])
def test_no_stack_goes_before_those_that_were_deployed_on_top_of_it(
    name: str, request: pytest.FixtureRequest
) -> None:
    assembly: Assembly = request.getfixturevalue(name)
    place = places(assembly.plan)

    for layer in assembly.templates:
        for earlier in stacks_before(assembly, layer):
            assert place[layer] < place[earlier], f"{layer} goes after {earlier}"


def test_every_stack_that_a_cluster_may_have_goes() -> None:
    assert places(research()).keys() >= RESERVED_NAMES - NO_STACKS - {*PIPELINE}


def test_nodes_of_pools_go_before_the_controllers_that_end_them() -> None:
    place = places(research())

    assert place["node-pools"] < place["karpenter"]
    assert place["train"] < place["addons"] < place["system"] < place["cluster"] < place["network"]
