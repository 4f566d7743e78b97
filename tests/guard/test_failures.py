"""Changes that CloudFormation cannot make, named before a deployment rolls back."""

from typing import Any

import pytest

from tests.support.changes import (
    REGION,
    STACK,
    between,
    body,
    export,
    launch_template,
    node_group,
    of,
    template,
)
from ultrascale.guard import Changes, compare

LUSTRE = "AWS::FSx::FileSystem"


def test_a_replacement_under_the_same_name_is_said_to_fail() -> None:
    old, new = ({"Name": "c", "RoleArn": f"arn:{each}"} for each in "ab")

    change = of(
        between({"A": body("AWS::EKS::Cluster", old)}, {"A": body("AWS::EKS::Cluster", new)}), "A"
    )

    assert "both would be Name c" in change.fails


def test_a_replacement_that_deletes_first_is_not() -> None:
    kind = "AWS::SageMaker::ComputeQuota"
    rest = {"ClusterArn": "arn:h", "Name": "quota"}
    old, new = (rest | {"ComputeQuotaTarget": {"TeamName": each}} for each in "ab")

    assert of(between({"A": body(kind, old)}, {"A": body(kind, new)}), "A").fails == ""


@pytest.mark.parametrize(("policy", "verb"), [("Retain", "stays"), ("Delete", "goes only after")])
def test_another_logical_id_under_the_same_name_is_said_to_fail(policy: str, verb: str) -> None:
    role = body("AWS::IAM::Role", {"RoleName": "node"}, DeletionPolicy=policy)

    changes = between({"A": role}, {"B": role})

    assert verb in of(changes, "B").fails
    assert not changes.is_safe


def test_ranges_that_change_places_are_said_to_fail() -> None:
    kind = "AWS::EC2::Subnet"
    one, other = (body(kind, {"VpcId": "vpc-1", "CidrBlock": f"10.0.{n}.0/24"}) for n in (0, 1))

    changes = between({"A": one, "B": other}, {"A": other, "B": one})

    assert f"{STACK}/B is VpcId vpc-1, CidrBlock 10.0.1.0/24 already" in of(changes, "A").fails


def test_a_name_in_a_stack_that_is_left_behind_is_taken() -> None:
    role = template({"A": body("AWS::IAM::Role", {"RoleName": "node"})})

    changes = compare({"c-karpenter": role}, {"c-nodes": role}, region=REGION)

    assert changes.left_stacks == ("c-karpenter",)
    assert changes.new_stacks == ("c-nodes",)
    assert "c-karpenter/A is RoleName node already, and stays" in changes.resources[0].fails


def test_another_type_under_the_same_id_and_what_is_held_are_said_to_fail() -> None:
    changes = between({"A": body("AWS::SQS::Queue")}, {"A": body("AWS::SNS::Topic")})
    cluster = body("AWS::EKS::Cluster", {"DeletionProtection": True})

    assert "another type" in of(changes, "A").fails
    assert "deletion protection" in of(between({"A": cluster}, {}), "A").fails


@pytest.mark.parametrize("kind", ["Custom::Build", "AWS::CloudFormation::CustomResource"])
def test_another_function_behind_a_custom_resource_is_said_to_fail(kind: str) -> None:
    old, new = (body(kind, {"ServiceToken": f"arn:{each}"}) for each in "ab")

    assert "never lets another function" in of(between({"A": old}, {"A": new}), "A").fails


def test_a_file_system_that_would_shrink_or_slow_down_is_said_to_fail() -> None:
    sizes = [{"StorageCapacity": each} for each in (1200, 2400)]
    speeds = [
        {"LustreConfiguration": {"MetadataConfiguration": {"Iops": each}}} for each in (1500, 6000)
    ]
    for low, high in (sizes, speeds):
        old, new = (body(LUSTRE, each) for each in (high, low))
        assert "only grows" in of(between({"A": old}, {"A": new}), "A").fails
        assert between({"A": new}, {"A": old}).is_safe


@pytest.mark.parametrize("rolled", [{"Version": "1.36"}, {"ReleaseVersion": "1.35.9-20261030"}])
@pytest.mark.parametrize(
    "other", [{"Labels": {"a": "b"}}, {"ScalingConfig": {"MinSize": 0, "MaxSize": 20}}], ids=str
)
def test_a_managed_group_that_would_roll_and_change_otherwise_at_once_is_said_to_fail(
    rolled: dict[str, Any], other: dict[str, Any]
) -> None:
    group = {"Group": node_group()}

    def later(**properties: Any) -> Changes:
        return between(group, {"Group": node_group(**properties)})

    assert "deploy the one, then the other" in of(later(**rolled, **other), "Group").fails
    assert of(later(**rolled), "Group").fails == ""
    assert of(later(**other), "Group").fails == ""
    assert of(later(**rolled, **other, Subnets=["subnet-2"]), "Group").fails == ""


def test_another_launch_template_counts_as_a_roll() -> None:
    old, new = (
        {"Template": launch_template(ImageId=image), "Group": node_group(Labels={"a": image})}
        for image in ("ami-1", "ami-2")
    )

    assert "LaunchTemplate/Version" in of(between(old, new), "Group").fails


def test_an_export_that_goes_before_its_user_is_said_to_fail() -> None:
    queue = {"Q": body("AWS::SQS::Queue")}
    user = template({"U": body("AWS::SQS::Queue", {"X": {"Fn::ImportValue": "q"}})})
    old = {"a": template(queue, **export("q", {"Ref": "Q"})), "b": user}
    told = "deploy that first, or destroy it: `cdk deploy --exclusively b "

    changes = compare(old, {"a": template(queue), "b": template({})}, region=REGION)
    # `cdk deploy` finds no stack that the file has not.
    left = compare(old, {"a": template(queue)}, region=REGION)

    assert told in of(changes, "q").fails
    assert "`cdk destroy --exclusively b -c cluster=FILE`" in of(left, "q").fails
    assert "cdk deploy" not in of(left, "q").fails
