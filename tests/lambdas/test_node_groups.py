"""Custom resources of managed node groups: what CloudFormation asks, what AWS says, the answer."""

from typing import Any

import pytest

from tests.support.node_group_requests import answers, delete, request, update
from tests.support.node_group_services import CLUSTER, POOL, Aws

SIZE = "Custom::NodeGroupSize"
TAGS = "Custom::AutoScalingGroupTags"
SIZES = {
    "ServiceToken": "arn",
    "ClusterName": CLUSTER,
    "Labels": {**POOL, "ultrascale.dev/shard": ""},
    # CloudFormation hands every number over as text.
    "MinSize": "1",
    "MaxSize": "8",
    "InitialSize": "2",
}


def size(aws: Aws, **changes: Any) -> object:
    told = answers(aws, request(SIZE, SIZES | changes))
    assert told["Status"] == "SUCCESS"
    return told["Data"]["DesiredSize"]


@pytest.fixture
def aws() -> Aws:
    return Aws()


class TestSize:
    """A wrong size takes nodes from under jobs, or pays for nodes that nobody wants."""

    def test_the_first_group_of_a_pool_gets_the_files_size(self, aws: Aws) -> None:
        aws.lists()

        assert size(aws) == 2

    def test_a_group_keeps_the_size_that_something_else_gave_it(self, aws: Aws) -> None:
        aws.lists("train-x")
        aws.describes("train-x")
        aws.has("eks-train-x", 5)

        assert size(aws) == 5

    @pytest.mark.parametrize(("standing", "deployed"), [(0, 1), (1, 1), (8, 8), (20, 8)])
    def test_it_lies_within_the_bounds_that_the_group_gets(
        self, aws: Aws, standing: int, deployed: int
    ) -> None:
        aws.lists("train-x")
        aws.describes("train-x")
        aws.has("eks-train-x", standing)

        assert size(aws) == deployed

    @pytest.mark.parametrize(
        "labels",
        [{}, {"ultrascale.dev/pool": "other"}, {**POOL, "ultrascale.dev/shard": "1"}],
        ids=["nobody's", "of another pool", "of a shard"],
    )
    def test_other_groups_do_not_count(self, aws: Aws, labels: dict[str, str]) -> None:
        aws.lists("other")
        aws.describes("other", labels=labels)

        assert size(aws) == 2

    def test_a_shard_is_not_taken_for_another(self, aws: Aws) -> None:
        aws.lists("one", "two")
        aws.describes("one", labels={**POOL, "ultrascale.dev/shard": "1"})
        aws.describes("two", labels={**POOL, "ultrascale.dev/shard": "2"})
        aws.has("eks-two", 7)

        assert size(aws, Labels={**POOL, "ultrascale.dev/shard": "2"}) == 7

    def test_the_group_is_found_on_a_later_page(self, aws: Aws) -> None:
        aws.lists("other", token="next")
        aws.describes("other", labels={})
        aws.lists("train-x", after="next")
        aws.describes("train-x")
        aws.has("eks-train-x", 5)

        assert size(aws) == 5

    @pytest.mark.parametrize("status", ["CREATING", "DELETING", "CREATE_FAILED", "DELETE_FAILED"])
    def test_a_group_on_its_way_in_or_out_does_not_count(self, aws: Aws, status: str) -> None:
        aws.lists("train-x", "train-y")
        aws.describes("train-x", status=status)
        aws.describes("train-y")
        aws.has("eks-train-y", 3)

        assert size(aws) == 3

    @pytest.mark.parametrize("status", ["UPDATING", "DEGRADED"])
    def test_a_group_that_still_has_its_nodes_does(self, aws: Aws, status: str) -> None:
        aws.lists("train-x")
        aws.describes("train-x", status=status)
        aws.has("eks-train-x", 6)

        assert size(aws) == 6

    def test_while_one_group_takes_the_place_of_another_no_node_is_lost(self, aws: Aws) -> None:
        aws.lists("old", "new")
        aws.describes("old")
        aws.has("eks-old", 6)
        aws.describes("new")
        aws.has("eks-new", 2)

        assert size(aws) == 6

    def test_a_group_that_goes_while_it_is_looked_at_does_not_count(self, aws: Aws) -> None:
        aws.lists("train-x")
        aws.fails("eks:DescribeNodegroup", "ResourceNotFoundException")

        assert size(aws) == 2

    def test_it_is_the_same_resource_for_ever(self, aws: Aws) -> None:
        aws.lists()

        told = answers(aws, update(SIZE, SIZES, SIZES))

        assert told["PhysicalResourceId"] == "there"

    def test_to_delete_it_asks_nobody(self, aws: Aws) -> None:
        assert answers(aws, delete(SIZE, SIZES))["Status"] == "SUCCESS"


class TestFailure:
    """A look-up that failed must fail the deploy: a default would be a size that nobody chose."""

    @pytest.mark.parametrize(
        ("operation", "code"),
        [
            ("eks:ListNodegroups", "AccessDeniedException"),
            ("eks:ListNodegroups", "ResourceNotFoundException"),
            ("eks:DescribeNodegroup", "AccessDeniedException"),
            ("eks:DescribeNodegroup", "ServerException"),
        ],
    )
    def test_what_eks_refuses_fails_the_deploy(self, aws: Aws, operation: str, code: str) -> None:
        if operation == "eks:DescribeNodegroup":
            aws.lists("train-x")
        aws.fails(operation, code)

        told = answers(aws, request(SIZE, SIZES))

        assert told["Status"] == "FAILED"
        assert code in told["Reason"]
        assert told["Data"] == {}

    def test_a_group_without_its_auto_scaling_group_does_too(self, aws: Aws) -> None:
        aws.lists("train-x")
        aws.describes("train-x")
        aws.has_lost("eks-train-x")

        told = answers(aws, request(SIZE, SIZES))

        assert told["Status"] == "FAILED"
        assert "train-x has lost its Auto Scaling group" in told["Reason"]

    def test_an_unknown_resource_is_answered_as_well(self, aws: Aws) -> None:
        assert answers(aws, request("Custom::Other", {}))["Status"] == "FAILED"

    def test_a_resource_that_was_there_is_not_replaced(self, aws: Aws) -> None:
        aws.fails("eks:ListNodegroups", "ServerException")

        assert answers(aws, update(SIZE, SIZES, SIZES))["PhysicalResourceId"] == "there"


def tagged(name: str = "train-x", **tags: str) -> dict[str, Any]:
    return {"ServiceToken": "arn", "ClusterName": CLUSTER, "NodegroupName": name, "Tags": tags}


class TestTags:
    """The Cluster Autoscaler scales a group from zero only by the tags that it reads."""

    def test_they_are_set_on_the_group_and_not_on_instances(self, aws: Aws) -> None:
        aws.describes("train-x")
        aws.tags("eks-train-x", {"a": "1", "b": "2"})

        told = answers(aws, request(TAGS, tagged(a="1", b="2")))

        assert told["Status"] == "SUCCESS"
        assert told["PhysicalResourceId"] == "train-x"

    def test_those_that_are_gone_are_taken_away(self, aws: Aws) -> None:
        aws.describes("train-x")
        aws.untags("eks-train-x", "a")
        aws.tags("eks-train-x", {"b": "3"})

        told = answers(aws, update(TAGS, tagged(b="3"), tagged(a="1", b="2")))

        assert told["Status"] == "SUCCESS"

    def test_a_new_group_starts_from_nothing(self, aws: Aws) -> None:
        aws.describes("train-y")
        aws.tags("eks-train-y", {"b": "2"})

        told = answers(aws, update(TAGS, tagged("train-y", b="2"), tagged(a="1")))

        assert told["PhysicalResourceId"] == "train-y"

    def test_without_the_resource_the_autoscaler_lets_go(self, aws: Aws) -> None:
        aws.describes("train-x")
        aws.untags("eks-train-x", "a", "b")

        assert answers(aws, delete(TAGS, tagged(a="1", b="2")))["Status"] == "SUCCESS"

    def test_a_group_that_is_gone_needs_nothing_taken_away(self, aws: Aws) -> None:
        aws.fails("eks:DescribeNodegroup", "ResourceNotFoundException")

        assert answers(aws, delete(TAGS, tagged(a="1")))["Status"] == "SUCCESS"

    @pytest.mark.parametrize("status", ["DELETING", "CREATE_FAILED"])
    def test_one_that_goes_does_not_either(self, aws: Aws, status: str) -> None:
        aws.describes("train-x", status=status, groups=())

        assert answers(aws, delete(TAGS, tagged(a="1")))["Status"] == "SUCCESS"

    def test_a_group_that_is_not_there_fails_the_deploy(self, aws: Aws) -> None:
        aws.fails("eks:DescribeNodegroup", "ResourceNotFoundException")

        told = answers(aws, request(TAGS, tagged(a="1")))

        assert told["Status"] == "FAILED"
        assert "no node group train-x" in told["Reason"]

    def test_neither_does_one_without_an_auto_scaling_group_pass(self, aws: Aws) -> None:
        aws.describes("train-x", groups=())

        assert answers(aws, request(TAGS, tagged(a="1")))["Status"] == "FAILED"

    def test_what_eks_refuses_fails_the_deletion(self, aws: Aws) -> None:
        aws.fails("eks:DescribeNodegroup", "AccessDeniedException")

        assert answers(aws, delete(TAGS, tagged(a="1")))["Status"] == "FAILED"
