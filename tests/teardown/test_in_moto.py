"""Remains of a cluster in an account of moto, which keeps its state."""

from typing import Any, cast

import boto3
import pytest
from moto import mock_aws

from tests.support.estate.cluster import research
from ultrascale.account import connect
from ultrascale.teardown.inventory import as_left, inventory
from ultrascale.teardown.model import Scope
from ultrascale.teardown.retained import by_deleted_stacks, by_stack_tags

REGION = "us-west-2"
OWNED = {"Key": "kubernetes.io/cluster/research", "Value": "owned"}
SHARED = {"Key": "kubernetes.io/cluster/research", "Value": "shared"}
KARPENTERS = {"Key": "eks:eks-cluster-name", "Value": "research"}
OTHERS = [
    {"Key": "kubernetes.io/cluster/research-two", "Value": "owned"},
    {"Key": "eks:eks-cluster-name", "Value": "research-two"},
]


def tagged(kind: str, *tags: dict[str, str]) -> list[dict[str, Any]]:
    return [{"ResourceType": kind, "Tags": tags}]


@mock_aws
def test_what_others_made_for_the_cluster_is_found_by_its_tags_and_nobody_elses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    ec2: Any = cast("Any", boto3).client("ec2", region_name=REGION)
    volumes = [
        ec2.create_volume(
            AvailabilityZone=f"{REGION}a",
            Size=100,
            VolumeType="gp3",
            TagSpecifications=tagged("volume", *tags),
        )["VolumeId"]
        for tags in ([OWNED], OTHERS)
    ]
    address: str = ec2.allocate_address(
        Domain="vpc", TagSpecifications=tagged("elastic-ip", OWNED)
    )["AllocationId"]
    templates = [
        ec2.create_launch_template(
            LaunchTemplateName=f"t{number}",
            LaunchTemplateData={},
            TagSpecifications=tagged("launch-template", *tags),
        )["LaunchTemplate"]["LaunchTemplateId"]
        for number, tags in enumerate(([KARPENTERS], OTHERS))
    ]
    groups = [
        ec2.create_security_group(
            GroupName=tag["Value"], Description="x", TagSpecifications=tagged("security-group", tag)
        )["GroupId"]
        for tag in (OWNED, SHARED)
    ]
    account = connect(REGION)

    scope = Scope(account=account, plan=research())
    of_ec2 = (row for kind, row in inventory().items() if kind.startswith("AWS::EC2::"))
    by_tags = {search for row in of_ec2 for search in row.searches} - {
        by_deleted_stacks,
        by_stack_tags,
    }
    found = [each for search in by_tags for each in search(scope)]

    left = {each.thing.id: as_left(each, REGION) for each in found}
    assert left.keys() == {volumes[0], address, templates[0], groups[0]}
    assert left[volumes[0]].price.startswith("from $8.00 per month")
    assert left[address].usd_per_hour == 0.005
    assert not left[templates[0]].paid
