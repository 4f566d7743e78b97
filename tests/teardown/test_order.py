"""The order of a teardown: a stack that goes before what needs it leaves nodes that nobody ends."""

from collections.abc import Mapping

import pytest

from tests.support.assembly import Assembly, stacks_before
from tests.support.estate.cluster import research
from ultrascale.plan import ClusterPlan
from ultrascale.plan.stacks import fixed_stacks, stacks_apart, stacks_of
from ultrascale.teardown.ec2 import SECURITY_GROUP
from ultrascale.teardown.inventory import inventory
from ultrascale.teardown.model import PHASES
from ultrascale.teardown.retained import Retained, component
from ultrascale.teardown.stacks import PARTS
from ultrascale.teardown.storage import BUCKET, FILE_SYSTEM


def places(plan: ClusterPlan) -> Mapping[str, tuple[int, int]]:
    """Return the step and the wave that each stack goes in, by its name without the cluster's."""
    return {
        stack.removeprefix(f"{plan.name}-"): (number, turn)
        for number, phase in enumerate(PHASES)
        for turn, wave in enumerate(phase.waves)
        for layer in wave
        for stack in stacks_of(plan, layer)
    }


@pytest.mark.parametrize("name", ["trainium", "mixed", "auto", "hybrid", "llm"])
def test_no_stack_goes_before_those_that_were_deployed_on_top_of_it(
    name: str, request: pytest.FixtureRequest
) -> None:
    assembly: Assembly = request.getfixturevalue(name)
    place = places(assembly.plan)
    for layer in assembly.templates:
        for earlier in stacks_before(assembly, layer):
            assert place[layer] < place[earlier], f"{layer} goes after {earlier}"


@pytest.mark.parametrize("name", ["trainium", "mixed", "auto", "hybrid", "llm"])
def test_whatever_a_stack_retains_can_be_looked_for_later(
    name: str, request: pytest.FixtureRequest
) -> None:
    assembly: Assembly = request.getfixturevalue(name)
    kinds = {kind for kind, *_ in retained(assembly)}
    rows = {kind: row for kind in kinds if (row := inventory().get(kind)) is not None}
    unknown = kinds - PARTS - {kind for kind, row in rows.items() if row.look or not row.paid}
    assert {each for each in unknown if not each.startswith("Custom::AWSCDK-EKS-")} == set()


def test_storage_in_the_account_is_known_by_its_name_in_the_cluster_file(hybrid: Assembly) -> None:
    found = [
        Retained(stack=f"hybrid-hyperpod-{layer}", type=kind, logical_id=logical_id, id="x")
        for kind, layer, logical_id in retained(hybrid)
        if layer == "storage" and kind in {FILE_SYSTEM, SECURITY_GROUP, BUCKET}
    ]

    named = {(each.type, component(hybrid.plan, each)) for each in found}

    systems = {each.name for each in hybrid.plan.storage.lustre}
    assert named == {
        *((FILE_SYSTEM, each) for each in systems),
        *((SECURITY_GROUP, each) for each in systems),
        *((BUCKET, each.name) for each in hybrid.plan.storage.buckets),
    }


def retained(assembly: Assembly) -> list[tuple[str, str, str]]:
    """Return type, layer and logical id of whatever outlives its stack."""
    return [
        (body["Type"], layer, logical_id)
        for layer, template in assembly.templates.items()
        for logical_id, body in template["Resources"].items()
        if body.get("DeletionPolicy", "").startswith("Retain")
    ]


def test_every_stack_that_a_cluster_may_have_goes() -> None:
    plan = research()
    stacks = fixed_stacks(plan.name) - {*stacks_apart(plan.name)}
    assert {f"{plan.name}-{layer}" for layer in places(plan)} >= stacks


def test_nodes_of_pools_go_before_the_controllers_that_end_them() -> None:
    place = places(research())
    assert place["node-pools"] < place["karpenter"]
    assert place["train"] < place["addons"] < place["system"] < place["cluster"] < place["network"]
