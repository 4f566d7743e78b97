"""Remains after a teardown: each paid resource with the command that removes it."""

from pathlib import Path
from typing import Any, cast

import botocore
import pytest

from tests.support.estate.cluster import ALL, FILE_SYSTEM, NOTHING, estate, stack
from tests.support.estate.doubles import FakeClock
from tests.support.fake_aws import ID, FakeAws, denied
from ultrascale.teardown import prices, sweep


def test_what_was_to_go_and_did_not_is_told_although_no_tag_tells_of_it(tmp_path: Path) -> None:
    cluster = estate()
    teardown = cluster.run(tmp_path, ALL)
    cluster.answers["ec2:DescribeVolumes"] = lambda asked: {
        "Volumes": [{"VolumeId": each} for each in asked.get("VolumeIds", [])]
    }
    (volume,) = sweep(cluster.scope, teardown).orphans
    assert str(volume.thing) == "AWS::EC2::Volume vol-1 (other/db)"
    assert volume.paid


def test_a_file_system_that_was_to_go_and_did_not_is_told_with_its_price() -> None:
    cluster = estate()
    teardown = cluster.planned(ALL)
    left = {each.thing.id: each for each in sweep(cluster.scope, teardown).orphans}
    assert left[FILE_SYSTEM].why == "it was to go, and is there"
    assert left[FILE_SYSTEM].price.startswith("$252.00 per month")


def test_what_controllers_and_services_left_is_told_with_what_removes_it() -> None:
    cluster = estate()
    balancer = f"arn:aws:elasticloadbalancing:us-west-2:{ID}:loadbalancer"
    arns = [f"{balancer}/net/k8s-web/0a1", f"{balancer}/classic"]
    cluster.answers["tag:GetResources"] = {
        "ResourceTagMappingList": [{"ResourceARN": each} for each in arns]
    }
    profile = {"InstanceProfileName": "research_1", "InstanceProfileId": "AIPA0123456789ABC"}
    cluster.answers["iam:ListInstanceProfiles"] = {
        "InstanceProfiles": [
            profile
            | {
                "Path": "/karpenter/us-west-2/research/1/",
                "Arn": f"arn:aws:iam::{ID}:instance-profile/research_1",
                "CreateDate": FakeClock().now(),
                "Roles": [],
            }
        ]
    }
    cluster.log_groups.add("/aws/containerinsights/research/performance")

    found = sweep(cluster.scope, NOTHING)

    commands = {each.thing.id: each.command for each in found.orphans}
    assert commands[arns[0]].startswith("aws elbv2 delete-load-balancer --load-balancer-arn")
    assert "elb delete-load-balancer --load-balancer-name classic" in commands[arns[1]]
    assert "delete-instance-profile --instance-profile-name research_1" in commands["research_1"]
    assert "/aws/containerinsights/research/performance" in commands
    assert FILE_SYSTEM in commands


def test_an_instance_has_its_price_where_the_catalog_has_one() -> None:
    words, usd = prices.of_instance("us-east-1", "p5.48xlarge")
    assert words == f"${usd:,.3f} per hour On-Demand"
    assert usd > 20
    elsewhere = f"${usd:,.3f} per hour On-Demand in us-east-1, here unknown"
    assert prices.of_instance("eu-west-1", "p5.48xlarge") == (elsewhere, 0)


def test_a_group_that_would_launch_instances_anew_is_told_and_to_be_deleted_first() -> None:
    cluster = estate()
    group = {
        "AutoScalingGroupName": "eks-train",
        "MinSize": 0,
        "MaxSize": 4,
        "DesiredCapacity": 2,
        "DefaultCooldown": 300,
        "AvailabilityZones": ["us-west-2b"],
        "HealthCheckType": "EC2",
        "CreatedTime": FakeClock().now(),
    }
    cluster.answers["autoscaling:DescribeAutoScalingGroups"] = {"AutoScalingGroups": [group]}
    tag = {"Key": "aws:autoscaling:groupName", "Value": "eks-train"}
    cluster.instances["i-0a1"]["Tags"].append(tag)

    left = {each.thing.id: each for each in sweep(cluster.scope, NOTHING).orphans}

    assert left["eks-train"].thing.note == "of 2 instances"
    assert "delete-auto-scaling-group --force-delete" in left["eks-train"].command
    assert "eks-train replaces it: delete that first" in left["i-0a1"].why


def test_a_stopped_instance_is_not_said_to_run_on_at_its_price() -> None:
    cluster = estate()
    cluster.instances["i-0a1"]["State"] = {"Code": 80, "Name": "stopped"}
    (left,) = (each for each in sweep(cluster.scope, NOTHING).orphans if each.thing.id == "i-0a1")
    assert left.why == "it is stopped, and its volumes are paid for"
    assert not left.usd_per_hour


# Whatever a sweep asks; each is denied once.
QUESTIONS = [
    "autoscaling:DescribeAutoScalingGroups",
    "cloudformation:DescribeStacks",
    "cloudformation:ListStackResources",
    "cloudformation:ListStacks",
    "ec2:DescribeAddresses",
    "ec2:DescribeInstances",
    "ec2:DescribeLaunchTemplates",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSnapshots",
    "ec2:DescribeVolumes",
    "ecr:DescribeRepositories",
    "eks:DescribeCluster",
    "fsx:DescribeBackups",
    "fsx:DescribeFileSystems",
    "iam:ListInstanceProfiles",
    "logs:DescribeLogGroups",
    "tag:GetResources",
]


@pytest.mark.parametrize("action", QUESTIONS)
def test_whatever_may_not_be_asked_is_told_and_hides_no_instance(action: str) -> None:
    cluster = estate(stack("old", status="DELETE_COMPLETE"))
    cluster.answers[action] = denied(action)
    found = sweep(cluster.scope, NOTHING)
    assert any(each.startswith(f"{action}: denied") for each in found.unknown)
    seen = "i-0a1" in {each.thing.id for each in found.left}
    assert seen == (action != "ec2:DescribeInstances")


def test_every_list_is_read_to_its_end(tmp_path: Path) -> None:
    cluster = estate()
    found = cluster.planned(ALL)
    sweep(cluster.scope, found)

    aws = FakeAws()
    for action in cluster.listed:
        prefix, _, operation = action.partition(":")
        client: Any = aws.client({"tag": "resourcegroupstaggingapi"}.get(prefix, prefix))
        answer = client.meta.service_model.operation_model(operation).output_shape.members
        tokens = {each for each in answer if each.lower().endswith(("token", "marker"))}
        assert client.can_paginate(cast("Any", botocore).xform_name(operation)) or not tokens, (
            action
        )
    assert {*QUESTIONS} - cluster.listed == {"eks:DescribeCluster"}
