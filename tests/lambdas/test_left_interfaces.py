"""Interfaces that ended nodes left: they keep addresses, and the cluster's subnets."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto import mock_aws

from ultrascale.lambdas.left_interfaces.handler import delete_left

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

    from ultrascale.lambdas.events import CleanerInput

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
CLUSTER_TAG, MADE_TAG = "cluster.k8s.amazonaws.com/name", "node.k8s.amazonaws.com/createdAt"


class Vpc:
    """A subnet with interfaces."""

    def __init__(self) -> None:
        self.ec2: EC2Client = boto3.client("ec2", region_name="us-west-2")
        vpc = self.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]
        subnet = self.ec2.create_subnet(VpcId=vpc.get("VpcId", ""), CidrBlock="10.0.0.0/24")
        self._subnet = subnet["Subnet"].get("SubnetId", "")

    def has(self, cluster: str | None, *, minutes: int | None) -> str:
        """Add a free interface of a cluster that was made so many minutes ago."""
        made = None if minutes is None else (NOW - timedelta(minutes=minutes)).isoformat()
        tags = {CLUSTER_TAG: cluster, MADE_TAG: made}
        specification: Any = {
            "ResourceType": "network-interface",
            "Tags": [{"Key": key, "Value": value} for key, value in tags.items() if value],
        }
        answer = self.ec2.create_network_interface(
            SubnetId=self._subnet,
            TagSpecifications=[specification] if specification["Tags"] else [],
        )
        return answer["NetworkInterface"].get("NetworkInterfaceId", "")

    def left(self) -> set[str]:
        found = self.ec2.describe_network_interfaces()["NetworkInterfaces"]
        return {each.get("NetworkInterfaceId", "") for each in found}


def settings(most: int = 100) -> "CleanerInput":
    return {
        "Cluster": "research",
        "ClusterTag": CLUSTER_TAG,
        "MadeTag": MADE_TAG,
        "LeastMinutes": 30,
        "Most": most,
    }


@pytest.fixture
def vpc() -> Iterator[Vpc]:
    with mock_aws():
        yield Vpc()


def test_those_of_the_cluster_that_nobody_holds_go_and_no_others(vpc: Vpc) -> None:
    vpc.has("research", minutes=45)
    # A node may be about to attach the first.
    others = {vpc.has("research", minutes=5), vpc.has("research", minutes=None)}
    others |= {vpc.has("other", minutes=90), vpc.has(None, minutes=90)}
    assert delete_left(vpc.ec2, settings(), now=NOW) == 1
    assert vpc.left() == others


def test_a_run_deletes_no_more_than_ec2_takes_in_its_time(vpc: Vpc) -> None:
    for _ in range(3):
        vpc.has("research", minutes=90)
    assert delete_left(vpc.ec2, settings(most=2), now=NOW) == 2
    assert len(vpc.left()) == 1
