"""A changed template makes no role that may do more than the cluster's roles need."""

import json
from typing import Any

import pytest
from moto.iam.aws_managed_policies import aws_managed_policies_data

from tests.support.pipelines import listed
from ultrascale.catalog import cloudformation
from ultrascale.documents import Template
from ultrascale.errors import CatalogError
from ultrascale.plan.delivery.execution_policy import (
    ExecutionScope,
    boundary,
    execution_policies,
    policy_size,
    roles_boundary,
)

ARN = "arn:aws:iam::444455556666:policy/roles"
SCOPE = ExecutionScope(
    cluster="prod",
    partition="aws",
    account="444455556666",
    region="us-east-2",
    permissions_boundary="roles",
)
BOUNDED = {"iam:PermissionsBoundary": ARN}
GIVING = {
    *("iam:AttachRolePolicy", "iam:CreateRole"),
    *("iam:PutRolePermissionsBoundary", "iam:PutRolePolicy"),
}


def template(*actions: str, managed: Any = ()) -> Template:
    statement = {"Effect": "Allow", "Action": [*actions], "Resource": "*"}
    document = {"Statement": [statement, {"Effect": "Deny", "Action": "rds:*", "Resource": "*"}]}
    return {
        "Resources": {
            "Role": {"Type": "AWS::IAM::Role", "Properties": {"ManagedPolicyArns": managed}},
            "Policy": {"Type": "AWS::IAM::Policy", "Properties": {"PolicyDocument": document}},
        }
    }


def statements(document: Any) -> dict[str, Any]:
    return {each["Sid"]: each for each in document["Statement"]}


@pytest.mark.parametrize("name", sorted(cloudformation._ALLOWED))  # pyright: ignore[reportPrivateUsage]
def test_a_boundary_leaves_a_managed_policy_all_that_aws_gives_it(name: str) -> None:
    kept = {
        action if action.startswith(("iam:", "sts:")) else f"{action.split(':')[0]}:*"
        for statement in json.loads(aws_managed_policies_data)[name]["Document"]["Statement"]
        if statement["Effect"] == "Allow"
        for action in listed(statement["Action"])
    }
    assert cloudformation.allowed_by(name) == kept


def test_roles_may_use_the_services_that_their_policies_name_and_no_other() -> None:
    found = statements(roles_boundary([template("ec2:RunInstances", "sqs:SendMessage")], SCOPE))

    assert found["Services"]["Action"] == ["ec2:*", "sqs:*"]
    assert list(found) == ["Services"]


def test_roles_hand_on_roles_of_the_cluster_alone() -> None:
    """With any role of the account, a function would become its administrator."""
    passing = template("iam:PassRole", "iam:TagInstanceProfile", "s3:GetObject")

    found = statements(roles_boundary([passing], SCOPE))

    assert found["OwnRoles"]["Resource"] == ["arn:aws:iam::444455556666:role/prod-*"]
    assert found["Identity"]["Action"] == ["iam:TagInstanceProfile"]
    assert not {"iam:*", "sts:*"} & {*found["Services"]["Action"]}


CORE = "iam::aws:policy/AmazonSSMManagedInstanceCore"


@pytest.mark.parametrize(
    "arn",
    [
        f"arn:aws:{CORE}",
        {"Fn::Join": ["", ["arn:", {"Ref": "AWS::Partition"}, f":{CORE}"]]},
        {"Fn::If": ["There", {"Fn::Sub": f"arn:${{P}}:{CORE}"}, {"Ref": "X"}]},
    ],
)
def test_a_managed_policy_is_found_however_its_arn_is_spelled(arn: object) -> None:
    found = statements(roles_boundary([template(managed=[arn])], SCOPE))
    assert found["Services"]["Action"] == ["ec2messages:*", "ssm:*", "ssmmessages:*"]


def test_a_managed_policy_that_nobody_knows_is_refused_and_not_left_out() -> None:
    arns = [f"arn:aws:iam::aws:policy/service-role/{name}" for name in ("Amazon1", "Amazon2")]

    with pytest.raises(CatalogError) as caught:
        roles_boundary([template(managed=arns)], SCOPE)

    assert str(caught.value).splitlines() == [
        f"no source states what the AWS managed policy {name} allows"
        for name in ("Amazon1", "Amazon2")
    ]


class TestExecution:
    """CloudFormation's role makes roles with the boundary, and none without."""

    def test_rights_are_given_to_bounded_roles_alone(self) -> None:
        (document,) = execution_policies(["AWS::IAM::Role", "AWS::EKS::Cluster"], SCOPE)
        found = statements(document)

        assert {*found["BoundedRoles"]["Action"]} == GIVING
        assert found["BoundedRoles"]["Condition"] == {"StringEquals": BOUNDED}
        others = {a for sid, each in found.items() if sid != "BoundedRoles" for a in each["Action"]}
        assert not (GIVING | {"iam:DeleteRolePermissionsBoundary"}) & others

    def test_the_role_of_fsx_for_a_linked_file_system_has_no_boundary(self) -> None:
        limits = statements(boundary(["AWS::FSx::DataRepositoryAssociation"], SCOPE))

        assert "Resource" not in limits["RolesHaveABoundary"]
        (linked,) = limits["RolesHaveABoundary"]["NotResource"]
        assert linked.endswith(":role/aws-service-role/s3.data-source.lustre.fsx.amazonaws.com/*")

    def test_nothing_that_is_attached_to_it_later_gets_round_the_boundary(self) -> None:
        limits = boundary(["AWS::IAM::Role"], SCOPE)
        found = statements(limits)

        without = found["RolesHaveABoundary"]
        assert (without["Effect"], {*without["Action"]}) == ("Deny", GIVING)
        assert without["Condition"] == {"StringNotEquals": BOUNDED}
        assert found["RolesKeepTheirs"]["Action"] == ["iam:DeleteRolePermissionsBoundary"]
        assert ARN in found["KeepThesePolicies"]["Resource"]
        assert policy_size(limits) < 6_144
