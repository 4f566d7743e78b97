"""Network resources that the nodes of a NodePool share; a mistake makes EFA fall back to TCP."""

from typing import Any

import pytest
from aws_cdk.assertions import Template
from msgspec.structs import replace

from tests.support.construct_stacks import make_context, make_pool_plan, make_stack, resources, the
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


class TestEfaSecurityGroup:
    """The fabric between the nodes of a pool."""

    @pytest.mark.parametrize(
        ("kind", "peer"),
        [
            ("AWS::EC2::SecurityGroupIngress", "SourceSecurityGroupId"),
            ("AWS::EC2::SecurityGroupEgress", "DestinationSecurityGroupId"),
        ],
    )
    def test_all_traffic_passes_to_and_from_the_group_itself(self, kind: str, peer: str) -> None:
        template, _ = synthesize(make_pool_plan())

        (group,) = template.find_resources(GROUP)
        reference = {"Fn::GetAtt": [group, "GroupId"]}
        rule = the(template, kind)
        assert (rule["GroupId"], rule[peer], rule["IpProtocol"]) == (reference, reference, "-1")

    def test_node_classes_find_it_by_its_tags(self) -> None:
        template, _ = synthesize(make_pool_plan())

        tags = {tag["Key"]: tag["Value"] for tag in the(template, GROUP)["Tags"]}
        assert tags == {"karpenter.sh/discovery": "research", "ultrascale.dev/pool": "train"}

    def test_shards_share_one(self) -> None:
        template, _ = synthesize(*sharded(count=3))

        template.resource_count_is(GROUP, 1)

    def test_a_pool_without_efa_has_none(self) -> None:
        template, _ = synthesize(make_pool_plan(efa="none"))

        template.resource_count_is(GROUP, 0)


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

    def test_ec2_makes_up_the_name_for_a_replacement_has_to_stand_beside_it(self) -> None:
        template, _ = synthesize(make_pool_plan(placement_group=True))

        (body,) = resources(template, PLACEMENT_GROUP)
        assert body["Properties"] == {"Strategy": "cluster"}

    def test_an_output_tells_it_to_whoever_applies_the_manifests_otherwise(self) -> None:
        template, placeholders = synthesize(make_pool_plan(placement_group=True))

        outputs = template.to_json()["Outputs"].values()
        ((placeholder, value),) = placeholders.items()
        assert [o["Value"] for o in outputs if placeholder in o["Description"]] == [value]
