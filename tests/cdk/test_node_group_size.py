"""The size that a managed node group is deployed with, and what its scaler must know of it."""

from typing import Any

import pytest
from aws_cdk.assertions import Match, Template
from msgspec.structs import replace

from tests.support.construct_stacks import make_pool_plan, the
from tests.support.managed_groups import (
    BLOCK,
    FUNCTION,
    NODE_GROUP,
    ODCR,
    PLAN,
    SIZE,
    TAGS,
    synthesize,
)
from ultrascale import config
from ultrascale.plan.model import RootDisk


@pytest.fixture(scope="module")
def p5() -> Template:
    return synthesize(PLAN)


class TestSize:
    """A deploy states a size only where nothing else sets it."""

    @pytest.mark.parametrize(
        ("changes", "sizes"),
        [({"nodes": config.Nodes(static=3)}, (3, 3, 3)), ({"purchase": ODCR}, (0, 16, 16))],
        ids=["fixed", "paid for whether it runs or not"],
    )
    def test_the_file_states_its_own(self, changes: Any, sizes: tuple[int, ...]) -> None:
        template = synthesize(make_pool_plan(**changes))

        keys = ("MinSize", "DesiredSize", "MaxSize")
        assert the(template, NODE_GROUP)["ScalingConfig"] == dict(zip(keys, sizes, strict=True))
        template.resource_count_is(SIZE, 0)

    @pytest.mark.parametrize(
        ("changes", "least"),
        [({"nodes": config.Nodes(min=2, max=16)}, 2), ({"purchase": BLOCK}, 0)],
        ids=["Cluster Autoscaler", "calendar"],
    )
    def test_that_of_a_scaler_or_of_the_calendar_is_looked_up(
        self, changes: Any, least: int
    ) -> None:
        template = synthesize(make_pool_plan(**changes))

        (lookup,) = template.find_resources(SIZE)
        bounds = {"MinSize": least, "MaxSize": 16}
        size = {"DesiredSize": {"Fn::GetAtt": [lookup, "DesiredSize"]}}
        assert the(template, NODE_GROUP)["ScalingConfig"] == bounds | size
        asked = {"ServiceToken": FUNCTION, "ClusterName": "research", "InitialSize": least}
        assert (bounds | asked).items() <= the(template, SIZE).items()

    def test_the_standing_group_and_a_shard_are_found_by_labels_that_they_have(
        self, p5: Template
    ) -> None:
        plan = make_pool_plan()
        own = {"ultrascale.dev/pool": "train", "ultrascale.dev/shard": "2"}
        shard = synthesize(replace(plan, name="train-2", shard=2, labels={**plan.labels, **own}))

        for template, labels in ((p5, own | {"ultrascale.dev/shard": ""}), (shard, own)):
            assert the(template, SIZE)["Labels"] == labels
            found = the(template, NODE_GROUP)["Labels"]
            assert found.items() >= {key: value for key, value in labels.items() if value}.items()

    @pytest.mark.parametrize(
        "changes",
        [
            {"min_nodes": 1},
            {"max_nodes": 17},
            {"labels": {"ultrascale.dev/pool": "train"}},
            {"taints": ()},
            {"max_unavailable": 2},
            {"replace_before_launch": False},
            {"ami_type": "AL2023_ARM_64_NVIDIA"},
            {"purchase": "spot"},
            {"instance_types": ("p5.48xlarge", "p5e.48xlarge")},
        ],
        ids=str,
    )
    def test_it_is_looked_up_again_whenever_it_is_sent_again(
        self, p5: Template, changes: Any
    ) -> None:
        after = the(synthesize(replace(PLAN, **changes)), SIZE)

        assert after["Configuration"] != the(p5, SIZE)["Configuration"]

    @pytest.mark.parametrize(
        "changes",
        [
            {"ami_release": "1.35.9-20261130"},
            {"kubernetes_version": "1.36"},
            {"max_pods": 100},
            {"root_disk": RootDisk(size_gib=200, iops=3000, throughput_mibps=125)},
            {"instance_types": ("p5e.48xlarge",)},
            {"tags": {"team": "research"}},
            {"raid0": False},
        ],
        ids=str,
    )
    def test_it_stays_as_it_is_beside_a_version_or_template(
        self, p5: Template, changes: Any
    ) -> None:
        template = synthesize(replace(PLAN, **changes))

        assert template.to_json() != p5.to_json()
        assert the(template, SIZE) == the(p5, SIZE)

    def test_tags_of_the_group_never_stand_in_the_way_of_a_new_template(self) -> None:
        template = synthesize(replace(PLAN, tags={"team": "research"}))

        template.has_resource_properties(NODE_GROUP, {"Tags": Match.absent()})


def test_the_autoscalers_tags_are_handed_on_to_the_group_behind_the_node_group(
    p5: Template,
) -> None:
    """The Cluster Autoscaler reads tags of a group that EKS makes and tags by itself."""
    template = synthesize(PLAN, autoscaler_tags={"a": "1"})

    (group,) = template.find_resources(NODE_GROUP)
    assert (
        the(template, TAGS).items()
        >= {
            "ServiceToken": FUNCTION,
            "ClusterName": "research",
            "NodegroupName": {"Fn::GetAtt": [group, "NodegroupName"]},
            "Tags": {"a": "1"},
        }.items()
    )
    # Groups that it does not scale have none.
    p5.resource_count_is(TAGS, 0)


@pytest.mark.parametrize("kind", [SIZE, TAGS])
def test_a_function_that_never_answers_does_not_hold_a_deploy_for_an_hour(kind: str) -> None:
    lookup = the(synthesize(PLAN, autoscaler_tags={"a": "1"}), kind)

    assert int(lookup["ServiceTimeout"]) <= 600
