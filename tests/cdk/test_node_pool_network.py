"""Network resources that the nodes of a NodePool share; a mistake makes EFA fall back to TCP."""

from typing import Any

from aws_cdk.assertions import Template
from msgspec.structs import replace

from tests.support.construct_stacks import make_context, make_pool_plan, make_stack, the
from ultrascale.plan.model import PoolPlan
from ultrascale_constructs.nodes import NodePoolNetwork

GROUP = "AWS::EC2::SecurityGroup"
PLACEMENT_GROUP = "AWS::EC2::PlacementGroup"


def synthesize(*shards: PoolPlan) -> tuple[Template, dict[str, Any]]:
    """Return the template of a pool, and what the placeholders of its manifests stand for."""
    stack = make_stack()
    network = NodePoolNetwork(stack, "Pool", cluster=make_context(stack), shards=shards)
    template = Template.from_stack(stack)
    return template, stack.resolve(network.placement_groups)


def sharded(*, count: int = 2, **changes: Any) -> list[PoolPlan]:
    plan = make_pool_plan(**changes)
    return [replace(plan, name=f"train-{n}", shard=n) for n in range(1, count + 1)]


def test_shards_share_one_security_group_for_efa_and_a_pool_without_has_none() -> None:
    template, _ = synthesize(*sharded(count=3))
    without, _ = synthesize(make_pool_plan(efa="none"))

    # Node classes find it by its tags.
    tags = {tag["Key"]: tag["Value"] for tag in the(template, GROUP)["Tags"]}
    assert tags == {"karpenter.sh/discovery": "research", "ultrascale.dev/pool": "train"}
    without.resource_count_is(GROUP, 0)


class TestPlacementGroup:
    """Nodes close together: each shard by itself, for a group has room for so many."""

    def test_there_is_none_unless_the_file_asks_for_it(self) -> None:
        template, placeholders = synthesize(make_pool_plan())

        template.resource_count_is(PLACEMENT_GROUP, 0)
        assert placeholders == {}

    def test_each_shard_has_its_own_which_its_placeholder_stands_for(self) -> None:
        template, placeholders = synthesize(*sharded(placement_group=True))

        assert sorted(placeholders) == ["${PLACEMENT_GROUP_TRAIN_1}", "${PLACEMENT_GROUP_TRAIN_2}"]
        assert {value["Ref"] for value in placeholders.values()} == {
            *template.find_resources(PLACEMENT_GROUP)
        }

    def test_an_output_tells_the_name_that_ec2_makes_up(self) -> None:
        """A replacement has to stand beside it; others apply the manifests themselves."""
        template, placeholders = synthesize(make_pool_plan(placement_group=True))

        assert the(template, PLACEMENT_GROUP) == {"Strategy": "cluster"}
        outputs = template.to_json()["Outputs"].values()
        ((placeholder, value),) = placeholders.items()
        assert [o["Value"] for o in outputs if placeholder in o["Description"]] == [value]
