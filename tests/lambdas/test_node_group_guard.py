"""Changes that neither a deployment nor Auto Scaling may make to running nodes."""

from typing import Any

import pytest

from tests.support.node_group_requests import answers, delete, request, update
from tests.support.node_group_services import CLUSTER, POOL, Aws

GUARD = "Custom::NodeGroupGuard"
ZONES = "Custom::SuspendedZoneRebalancing"
LABELS = {**POOL, "ultrascale.dev/shard": ""}
LAUNCHED = {"Provisioner": "managed-node-group", "Purchase": "odcr", "Release": "1"}
BEFORE: dict[str, Any] = {
    "ServiceToken": "arn",
    "ClusterName": CLUSTER,
    "Labels": LABELS,
    "Guarded": "true",
    "SizedBy": "file",
    "LaunchedFrom": LAUNCHED,
}
AFTER = BEFORE | {"LaunchedFrom": LAUNCHED | {"Release": "2"}}
OWN = BEFORE | {"LaunchedFrom": {"Provisioner": "self-managed", "Purchase": "odcr"}}
OPEN = {"Guarded": "false"}
SCALED = {"SizedBy": "cluster-autoscaler"}
SHOWN = 500
LONGEST_CLUSTER_NAME = 40


@pytest.fixture
def aws() -> Aws:
    return Aws()


class TestGuard:
    """A roll of reserved nodes breaks their job off, and has no place for a second set."""

    def test_nodes_that_run_fail_the_deploy(self, aws: Aws) -> None:
        aws.has_stack("UPDATE_IN_PROGRESS")
        aws.lists("other", "train-x")
        aws.describes("other", labels={})
        aws.describes("train-x")
        aws.has("eks-train-x", 16)

        told = answers(aws, update(GUARD, AFTER, BEFORE))

        assert told["Status"] == "FAILED"
        assert told["PhysicalResourceId"] == "there"
        reason = told["Reason"]
        assert "train-x runs 16 nodes" in reason
        assert "When their jobs are done, scale it to 0" in reason
        assert (
            "aws eks update-nodegroup-config --cluster-name research --nodegroup-name train-x "
            "--scaling-config minSize=0,desiredSize=0;"
        ) in reason
        assert reason.endswith("minSize=1,desiredSize=16")

    @pytest.mark.parametrize(
        ("before", "after"),
        [(BEFORE, AFTER | OPEN), (BEFORE | OPEN, AFTER)],
        ids=["with the guard that it takes away", "with the guard that it brings"],
    )
    def test_a_change_is_judged(
        self, aws: Aws, before: dict[str, Any], after: dict[str, Any]
    ) -> None:
        aws.has_stack("UPDATE_IN_PROGRESS")
        aws.lists("train-x")
        aws.describes("train-x")
        aws.has("eks-train-x", 16)

        assert answers(aws, update(GUARD, after, before))["Status"] == "FAILED"

    def test_nobody_is_asked_of_nodes_that_are_not_guarded(self, aws: Aws) -> None:
        assert answers(aws, update(GUARD, AFTER | OPEN, BEFORE | OPEN))["Status"] == "SUCCESS"

    @pytest.mark.parametrize("changes", [OPEN, SCALED, {"ServiceToken": "new"}], ids=str)
    def test_nobody_is_asked_of_a_change_that_nodes_outlive(
        self, aws: Aws, changes: dict[str, str]
    ) -> None:
        assert answers(aws, update(GUARD, BEFORE | changes, BEFORE))["Status"] == "SUCCESS"

    def test_jobs_that_would_have_the_group_filled_again_are_suspended_first(
        self, aws: Aws
    ) -> None:
        aws.has_stack("UPDATE_IN_PROGRESS")
        aws.lists("train-x")
        aws.describes("train-x")
        aws.has("eks-train-x", 16)

        reason = answers(aws, update(GUARD, AFTER, BEFORE | SCALED))["Reason"]

        assert "Suspend its jobs first (they scale it up), then scale it to 0: aws eks" in reason

    @pytest.mark.parametrize("before", [BEFORE, BEFORE | SCALED], ids=["fixed", "scaled"])
    def test_all_of_the_advice_is_shown(self, aws: Aws, before: dict[str, Any]) -> None:
        name = "NodeGroup" + "x" * 54
        aws.has_stack("UPDATE_IN_PROGRESS")
        aws.lists(name)
        aws.describes(name)
        aws.has(f"eks-{name}", 450)

        reason = answers(aws, update(GUARD, AFTER, before))["Reason"]

        assert reason.endswith("minSize=1,desiredSize=450")
        assert len(reason) + LONGEST_CLUSTER_NAME - len(CLUSTER) <= SHOWN

    def test_an_empty_group_may_change(self, aws: Aws) -> None:
        aws.has_stack("UPDATE_IN_PROGRESS")
        aws.lists("train-x")
        aws.describes("train-x")
        aws.has("eks-train-x", 0)

        assert answers(aws, update(GUARD, AFTER, BEFORE))["Status"] == "SUCCESS"

    def test_one_that_goes_does_not_count(self, aws: Aws) -> None:
        aws.has_stack("UPDATE_IN_PROGRESS")
        aws.lists("train-x")
        aws.describes("train-x", status="DELETING")

        assert answers(aws, update(GUARD, AFTER, BEFORE))["Status"] == "SUCCESS"

    def test_a_self_managed_group_is_handed_over_empty(self, aws: Aws) -> None:
        aws.has_stack("UPDATE_IN_PROGRESS")
        aws.lists()
        aws.has_self_managed(own=8)

        reason = answers(aws, update(GUARD, AFTER, OWN))["Reason"]

        assert "own runs 8 nodes" in reason
        assert "--auto-scaling-group-name own --min-size 0 --desired-capacity 0;" in reason

    def test_an_empty_self_managed_group_may_be_handed_over(self, aws: Aws) -> None:
        aws.has_stack("UPDATE_IN_PROGRESS")
        aws.lists()
        aws.has_self_managed(own=0)

        assert answers(aws, update(GUARD, AFTER, OWN))["Status"] == "SUCCESS"

    def test_running_nodes_of_a_self_managed_group_outlive_another_purchase(self, aws: Aws) -> None:
        aws.has_stack("UPDATE_IN_PROGRESS")
        aws.lists()
        bought = {"Provisioner": "self-managed", "Purchase": "on-demand"}

        assert (
            answers(aws, update(GUARD, OWN | {"LaunchedFrom": bought}, OWN))["Status"] == "SUCCESS"
        )

    @pytest.mark.parametrize(
        "status", ["UPDATE_ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"]
    )
    def test_a_rollback_is_never_stopped(self, aws: Aws, status: str) -> None:
        aws.has_stack(status)

        assert answers(aws, update(GUARD, BEFORE, AFTER))["Status"] == "SUCCESS"

    def test_to_make_it_and_to_delete_it_nobody_is_asked(self, aws: Aws) -> None:
        assert answers(aws, request(GUARD, BEFORE))["Status"] == "SUCCESS"
        assert answers(aws, delete(GUARD, BEFORE))["Status"] == "SUCCESS"

    def test_what_eks_refuses_fails_the_deploy(self, aws: Aws) -> None:
        aws.has_stack("UPDATE_IN_PROGRESS")
        aws.fails("eks:ListNodegroups", "AccessDeniedException")

        assert answers(aws, update(GUARD, AFTER, BEFORE))["Status"] == "FAILED"

    def test_a_stack_that_cannot_be_read_does_too(self, aws: Aws) -> None:
        aws.has_no_stack()

        assert answers(aws, update(GUARD, AFTER, BEFORE))["Status"] == "FAILED"


MANAGED = {"ServiceToken": "arn", "ClusterName": CLUSTER, "NodegroupName": "train-x"}
SELF_MANAGED = {"ServiceToken": "arn", "AutoScalingGroupName": "train-asg"}


class TestZones:
    """A node that moves to another zone for balance takes its job down."""

    def test_those_of_a_managed_group_are_left_as_they_are(self, aws: Aws) -> None:
        aws.describes("train-x")
        aws.suspends_rebalancing("eks-train-x")

        told = answers(aws, request(ZONES, MANAGED))

        assert (told["Status"], told["PhysicalResourceId"]) == ("SUCCESS", "train-x")

    def test_those_of_a_self_managed_group_are_too(self, aws: Aws) -> None:
        aws.suspends_rebalancing("train-asg")

        told = answers(aws, request(ZONES, SELF_MANAGED))

        assert (told["Status"], told["PhysicalResourceId"]) == ("SUCCESS", "train-asg")

    def test_a_group_that_took_the_place_of_another_is_told_as_well(self, aws: Aws) -> None:
        aws.suspends_rebalancing("train-asg")

        event = update(ZONES, SELF_MANAGED, SELF_MANAGED | {"AutoScalingGroupName": "old"})

        assert answers(aws, event)["PhysicalResourceId"] == "train-asg"

    @pytest.mark.parametrize("properties", [MANAGED, SELF_MANAGED])
    def test_a_group_that_goes_needs_nothing(self, aws: Aws, properties: dict[str, Any]) -> None:
        assert answers(aws, delete(ZONES, properties))["Status"] == "SUCCESS"

    def test_a_group_that_is_not_there_fails_the_deploy(self, aws: Aws) -> None:
        aws.fails("eks:DescribeNodegroup", "ResourceNotFoundException")

        told = answers(aws, request(ZONES, MANAGED))

        assert told["Status"] == "FAILED"
        assert "no node group train-x" in told["Reason"]

    def test_what_auto_scaling_refuses_does_too(self, aws: Aws) -> None:
        aws.does_not_suspend()

        assert answers(aws, request(ZONES, SELF_MANAGED))["Status"] == "FAILED"
