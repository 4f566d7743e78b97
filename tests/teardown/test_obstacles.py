"""Obstacles in a teardown: it stops, says why, and deletes nothing unprinted."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.estate.cluster import (
    ALL,
    FILE_SYSTEM,
    FSX_GROUP,
    NOTHING,
    ORDER,
    claim,
    estate,
    hyperpod_estate,
    interface,
    stack,
)
from tests.support.estate.doubles import FakeClock, FakeStack
from tests.support.fake_aws import ID, Refusal
from tests.support.hyperpod import without_hyperpod
from ultrascale.errors import UnansweredError
from ultrascale.teardown import sweep
from ultrascale.teardown.kept import Asked
from ultrascale.teardown.model import StoppedError


def test_a_stuck_network_interface_is_named_and_what_else_is_paid_for_goes(tmp_path: Path) -> None:
    held = [("AWS::EC2::SecurityGroup", "Group", "sg-9", False)]
    stuck = stack("train", resources=held, stuck=("Group", "resource sg-9 has a dependent object"))
    other = FakeStack("research-old", [], looks=9)
    cluster = estate(other, train=stuck)
    cluster.interfaces["eni-9"] = interface(
        "eni-9", Status="in-use", Description="ELB app/web", Groups=[{"GroupId": "sg-9"}]
    )

    with pytest.raises(StoppedError) as stopped:
        cluster.run(tmp_path)

    assert stopped.value.why == "AWS::EC2::SecurityGroup sg-9: resource sg-9 has a dependent object"
    assert "(eni-9 in-use: ELB app/web)" in stopped.value.fix
    assert cluster.stacks["research-old"].status == "DELETE_COMPLETE"
    assert "web" not in cluster.deleted
    (node,) = (
        each
        for each in sweep(cluster.scope, NOTHING).orphans
        if each.thing.kind == "AWS::EC2::Instance"
    )
    assert node.paid
    assert node.why == "it runs on"

    stuck.stuck = None
    cluster.interfaces.clear()
    cluster.run(tmp_path, ALL)
    assert set(ORDER) <= set(cluster.deleted)


def test_interfaces_that_aws_gives_back_are_waited_for(tmp_path: Path) -> None:
    cluster = estate()
    nat = {"Description": "Interface for NAT Gateway nat-0a1"}
    cluster.interfaces["eni-6"] = interface("eni-6", Status="in-use", **nat)
    lambda_ = {"Description": "AWS Lambda VPC ENI-research-cluster-Kubectl"}
    cluster.interfaces["eni-7"] = interface("eni-7", Status="in-use", **lambda_)

    server = {"Description": f"AWS created network interface for {FILE_SYSTEM}"}
    cluster.interfaces["eni-8"] = interface("eni-8", Status="in-use", **server)

    with pytest.raises(StoppedError, match="not gone after 90 minutes: it is in use") as stopped:
        cluster.run(tmp_path, ALL)

    assert "eni-7 in-use: AWS Lambda VPC ENI" in stopped.value.why
    assert "eni-6" not in stopped.value.why
    del cluster.interfaces["eni-7"], cluster.interfaces["eni-8"]
    cluster.run(tmp_path, ALL)
    assert "research-network" in cluster.deleted


def test_the_first_cause_is_told_and_not_what_follows_from_it(tmp_path: Path) -> None:
    cluster = estate()
    train = cluster.stacks["research-train"]
    train.stuck = ("Group", "Nodegroup is in use")
    train.tell("Old", "AWS::IAM::Role", "old", "DELETE_FAILED", "of an earlier attempt")
    train.resources.append(("AWS::IAM::Role", "Role", "role-1", False))
    train.cancelled = "Role"
    with pytest.raises(StoppedError, match="Nodegroup is in use"):
        cluster.run(tmp_path)


def test_objects_of_a_cluster_that_is_gone_are_told_how_to_be_left_behind(tmp_path: Path) -> None:
    held = [
        ("Custom::AWSCDK-EKS-KubernetesResource", "Namespaces", "namespaces-1", False),
        ("Custom::AWSCDK-EKS-HelmChart", "Chart", "chart-1", False),
    ]
    reason = "Received response status [FAILED] from custom resource. Message returned: Error: no"
    cluster = estate(platform=stack("platform", resources=held, stuck=("Chart", reason)))

    with pytest.raises(StoppedError) as stopped:
        cluster.run(tmp_path)

    assert stopped.value.why == "Custom::AWSCDK-EKS-HelmChart chart-1: Error: no"
    assert (
        "delete-stack --region us-west-2 --stack-name research-platform --retain-resources Chart`"
        in (stopped.value.fix)
    )


def test_a_refusal_of_cloudformation_is_not_taken_for_a_stack_that_is_gone() -> None:
    cluster = estate()
    teardown = cluster.planned()
    refusal = Refusal("ValidationError", "Stack name fails to satisfy constraint")
    cluster.answers["cloudformation:DescribeStacks"] = refusal
    (target,) = (
        target
        for step in teardown.steps
        for wave in step.waves
        for target in wave
        if target.thing.id == "research-train"
    )

    with pytest.raises(UnansweredError, match="fails to satisfy"):
        target.look()


def test_a_node_that_does_not_go_keeps_karpenter_alive_and_is_named(tmp_path: Path) -> None:
    cluster, clock = estate(), FakeClock()
    claim(cluster, "burst-2")
    begun = clock.time

    with pytest.raises(StoppedError, match="not gone after 120 minutes: 1 of its nodes") as stopped:
        cluster.run(tmp_path, clock=clock)

    assert "NodeClaim burst-2 (i-0b2 m7i.8xlarge)" in stopped.value.why
    assert "remove no finalizer" in stopped.value.fix
    assert (clock.time - begun).total_seconds() < 3 * 3600
    assert not {"research-node-pools", "research-karpenter"} & set(cluster.deleted)

    cluster.api.remove("/apis/karpenter.sh/v1/nodeclaims/burst-2")
    cluster.run(tmp_path, ALL)
    assert set(cluster.deleted) == set(ORDER)


def test_a_stack_that_was_changed_since_the_plan_was_printed_is_not_deleted(tmp_path: Path) -> None:
    cluster = estate()
    teardown = cluster.planned()
    cluster.stacks["research-train"].resources.append(("AWS::RDS::DBInstance", "Db", "db-1", False))
    with pytest.raises(StoppedError, match="it holds AWS::RDS::DBInstance db-1, too"):
        cluster.carry_out(teardown, tmp_path)
    assert "research-train" not in cluster.deleted


def test_a_stack_that_no_longer_keeps_what_the_plan_says_stays_is_not_deleted(
    tmp_path: Path,
) -> None:
    cluster = estate()
    teardown = cluster.planned()
    held = cluster.stacks["research-storage"].resources
    held[:] = [(type, logical, id, False) for type, logical, id, _ in held]
    with pytest.raises(StoppedError, match=f"no longer keeps .*{FSX_GROUP}"):
        cluster.carry_out(teardown, tmp_path)
    assert "research-storage" not in cluster.deleted


def test_a_job_of_the_same_name_that_came_later_is_not_deleted(tmp_path: Path) -> None:
    cluster = estate()
    teardown = cluster.planned()
    path = "/apis/batch/v1/namespaces/training/jobs/bert"
    cluster.api.remove(path)
    cluster.api.put(path, {"kind": "Job"})
    with pytest.raises(StoppedError, match="since the plan was printed came Job training/bert"):
        cluster.carry_out(teardown, tmp_path)
    assert "bert" not in cluster.deleted


def test_what_is_left_in_the_vpc_later_is_printed_before_it_goes(tmp_path: Path) -> None:
    cluster = estate()
    teardown = cluster.planned(ALL)
    cluster.interfaces["eni-1"] = interface("eni-1")
    with pytest.raises(StoppedError, match=r"eni-1 .*; run the command again"):
        cluster.carry_out(teardown, tmp_path)
    assert not {"eni-1", "research-network"} & set(cluster.deleted)
    cluster.run(tmp_path, ALL)
    assert cluster.deleted[-2:] == ["eni-1", "research-network"]


def test_an_export_that_another_stack_imports_is_told(tmp_path: Path) -> None:
    cluster = estate(FakeStack("theirs", [], imports=("research-scaling",), cluster="theirs"))
    with pytest.raises(StoppedError, match=r"stack research-scaling: .*in use by") as stopped:
        cluster.run(tmp_path)
    assert "delete the stacks that import it first" in stopped.value.fix


def test_the_protection_of_the_cluster_stays_until_everything_on_it_is_gone(tmp_path: Path) -> None:
    cluster = estate(addons=stack("addons", resources=[("a", "b", "c", False)], stuck=("b", "no")))
    with pytest.raises(StoppedError, match="stack research-addons"):
        cluster.run(tmp_path)
    assert cluster.cluster is not None
    assert cluster.cluster["deletionProtection"]


def test_an_object_that_s3_keeps_is_named(tmp_path: Path) -> None:
    cluster = estate()
    error = {"Key": "a", "Code": "AccessDenied", "Message": "legal hold"}
    cluster.answers["s3:DeleteObjects"] = {"Errors": [error]}
    with pytest.raises(StoppedError, match="S3 keeps a: AccessDenied: legal hold"):
        cluster.run(tmp_path, Asked(storage=frozenset({"data"})))


@pytest.mark.parametrize("has_left", [False, True], ids=["in the file", "has left the file"])
def test_hyperpod_goes_after_its_governance_and_before_its_chart(
    tmp_path: Path, has_left: bool
) -> None:
    cluster = hyperpod_estate()
    if has_left:
        arn = f"arn:aws:sagemaker:us-east-1:{ID}:cluster/abcdef012345"
        groups = cluster.stacks["hybrid-hyperpod-hyperpod-groups"]
        groups.resources.append(("AWS::SageMaker::Cluster", "HyperPod", arn, False))
        cluster.plan = without_hyperpod(cluster.plan)

    cluster.run(tmp_path)

    names = ["hyperpod-metrics", "teams", "governance", "hyperpod-groups", "hyperpod-chart"]
    deleted = [name.removeprefix("hybrid-hyperpod-") for name in cluster.deleted]
    assert "hyperpod-groups" in deleted
    assert has_left or deleted == names
    assert cluster.hyperpod_nodes == []


def test_an_object_that_s3_is_too_busy_for_is_asked_for_again(tmp_path: Path) -> None:
    cluster = estate()
    delete: Any = cluster.answers["s3:DeleteObjects"]
    busy = iter([True])

    def once(asked: dict[str, Any]) -> Any:
        if next(busy, False):
            return {"Errors": [{"Key": "a", "Code": "SlowDown", "Message": "later"}]}
        return delete(asked)

    cluster.answers["s3:DeleteObjects"] = once

    cluster.run(tmp_path, Asked(storage=frozenset({"data"})))

    assert not cluster.buckets


def test_a_deep_health_check_that_does_not_end_is_told(tmp_path: Path) -> None:
    cluster = hyperpod_estate()
    cluster.hyperpod_nodes = [["DeepHealthCheckInProgress"]] * 1000
    with pytest.raises(StoppedError, match="updates or checks its nodes"):
        cluster.run(tmp_path)
    assert "hybrid-hyperpod-hyperpod-groups" not in cluster.deleted
