"""Obstacles that the plan of a teardown names: later the VPC alone is left, and paid for."""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.estate.account import VPC, Estate
from tests.support.estate.cluster import ALL, estate, instance, interface, kept, stack
from tests.support.estate.doubles import FakeStack
from tests.support.fake_aws import ID
from ultrascale import config
from ultrascale.errors import QuestionError
from ultrascale.parts.pipeline import Plan
from ultrascale.parts.pipeline.section import ConnectionId
from ultrascale.teardown.model import Scope, Step
from ultrascale.teardown.plan import plan_teardown, read_findings

ATTACHED = {"InstanceId": "i-7", "InstanceOwnerId": ID}
BALANCER = f"arn:aws:elasticloadbalancing:us-west-2:{ID}:loadbalancer/net/web/0a1"


def step(cluster: Estate, name: str) -> Step:
    return next(each for each in cluster.planned(ALL).steps if each.name == name)


def in_vpc(**fields: Any) -> Estate:
    cluster = estate()
    cluster.interfaces["eni-7"] = interface("eni-7", Status="in-use", **fields)
    return cluster


@pytest.mark.parametrize(
    "fields",
    [
        {"Description": "Amazon EKS research-two"},
        {"Description": "VPC Endpoint Interface vpce-0f9"},
        {"Description": "AWS created network interface for fs-0f9"},
        {"Description": "RDSNetworkInterface"},
        {"Description": "ELB app/theirs/0f9"},
        {"Description": "AWS Lambda VPC ENI-theirs-0f9"},
        {"Description": "", "Attachment": ATTACHED},
    ],
    ids=lambda fields: fields["Description"] or "instance",
)
def test_what_others_have_in_the_vpc_is_told_before_anything_is_done(
    fields: dict[str, Any],
) -> None:
    cluster = in_vpc(**fields)
    cluster.instances["i-7"] = instance("i-7", "", "m7i.8xlarge", VpcId=VPC, Tags=[])
    assert f"VPC {VPC}: it is in use by" in step(cluster, "network").stops
    assert "eni-7" in step(cluster, "network").stops
    assert cluster.changes == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"Description": "Amazon EKS research"},
        {"Description": "Interface for NAT Gateway nat-0a1"},
        {"Description": "ELB net/web/0a1"},
        {"Description": "AWS Lambda VPC ENI-research-fn-0f9"},
        {"Description": "aws-K8S-i-7", "Attachment": ATTACHED},
        {"Description": "", "Attachment": {"InstanceId": "i-8", "InstanceOwnerId": "a-service"}},
    ],
    ids=lambda fields: fields["Description"] or "of a service",
)
def test_what_goes_with_the_cluster_is_no_obstacle(fields: dict[str, Any]) -> None:
    cluster = in_vpc(**fields)
    cluster.instances["i-7"] = instance("i-7", "", "m7i.8xlarge", VpcId=VPC)
    cluster.tagged[BALANCER] = [{"Key": "elbv2.k8s.aws/cluster", "Value": "research"}]
    assert step(cluster, "network").stops == ""


def test_nodes_that_nobody_can_end_are_told_with_the_command_that_does() -> None:
    cluster = estate()
    cluster.cluster = None
    owned = {"Key": "kubernetes.io/cluster/research", "Value": "owned"}
    pool = {"Key": "karpenter.sh/nodepool", "Value": "burst"}
    cluster.instances["i-9"] = instance("i-9", "", "m7i.8xlarge", Tags=[owned, pool])

    left = kept(cluster.planned(ALL))["i-9"]

    assert not left.asked
    assert "terminate-instances --instance-ids i-9" in left.command
    assert "nodes run in it that nobody ends: 1" in step(cluster, "network").stops


@pytest.mark.parametrize("layer", ["pipeline", "pipeline-gate"])
def test_a_protected_pipeline_keeps_nobody_from_taking_the_cluster_down(layer: str) -> None:
    name = f"research-{layer}"
    cluster = estate(FakeStack(name, [], protected=True))
    left = kept(cluster.planned(ALL))[name]
    assert "deploys the cluster again whenever it runs" in left.why
    assert "--no-enable-termination-protection" in left.command
    assert f"delete-stack --stack-name {name}" in left.command


def test_a_pipeline_that_is_at_work_would_deploy_what_is_taken_down() -> None:
    busy = FakeStack("research-pipeline-gate", [], status="UPDATE_IN_PROGRESS")
    with pytest.raises(QuestionError, match="would deploy the cluster meanwhile"):
        estate(busy).planned()


def test_a_pipeline_of_another_region_is_told_although_nobody_looks_there() -> None:
    cluster = estate()
    home = ConnectionId("aws", "us-east-2", "777788889999")
    plan = replace(
        cluster.plan, parts=(*cluster.plan.parts, Plan(home=home, release=config.release_of(".")))
    )
    scope = Scope(account=cluster.account, plan=plan)
    found = read_findings(scope, cluster.reach(), "ACTIVE")

    left = kept(plan_teardown(scope, found, ALL))["research-pipeline"]

    assert left.thing.note == "in us-east-2 of 777788889999, not looked at"


def test_the_vpc_of_a_cluster_that_keeps_it_is_not_said_to_be_in_the_way() -> None:
    cluster = in_vpc(Description="Amazon EKS research-two")
    cluster.stacks["research-network"] = stack("network", status="DELETE_COMPLETE")
    assert all(not each.stops for each in cluster.planned().steps)
