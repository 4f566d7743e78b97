"""A cluster does not move to another VPC: neither to one that exists, nor back to one of ours."""

from typing import Any

import pytest

from tests.support.changes import body, template
from ultrascale.guard import compare

EXPORTED = {"Fn::ImportValue": "research-network:ExportsOutputRefA"}
OURS = {
    "A": body("AWS::EC2::Subnet", {"CidrBlock": "10.0.0.0/24", "VpcId": {"Ref": "Vpc"}}),
    "Vpc": body("AWS::EC2::VPC", {"CidrBlock": "10.0.0.0/16"}),
}


def cluster(*subnets: object) -> Any:
    properties = {"Name": "research", "ResourcesVpcConfig": {"SubnetIds": [*subnets]}}
    return template({"Cluster": body("AWS::EKS::Cluster", properties)})


@pytest.mark.parametrize("to_existing", [True, False])
def test_a_move_to_another_vpc_is_refused(to_existing: bool) -> None:
    outputs = {"A": {"Value": {"Ref": "A"}, "Export": {"Name": EXPORTED["Fn::ImportValue"]}}}
    ours: dict[str, Any] = {
        "research-network": template(OURS, Outputs=outputs),
        "research-cluster": cluster(EXPORTED),
    }
    existing: dict[str, Any] = {"research-cluster": cluster("subnet-1", "subnet-2")}
    old, new = (ours, existing) if to_existing else (existing, ours)

    changes = compare(old, new, region="us-east-1")

    (told,) = (each for each in changes.resources if each.logical_id == "Cluster")
    assert told.protected
    assert "loses data" in changes.verdicts
