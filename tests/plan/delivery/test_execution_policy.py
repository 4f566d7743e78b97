"""CloudFormation's role may do what the stacks take: less fails a deployment, more is a risk."""

import json
import re
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from moto.iam.aws_managed_policies import aws_managed_policies_data

from tests.support.cases import for_each
from tests.support.defined_types import defined_types
from tests.support.handler_schemas import permissions
from ultrascale.catalog import cloudformation
from ultrascale.catalog.tables import read_table
from ultrascale.errors import CatalogError
from ultrascale.plan.delivery.execution_policy import (
    POLICIES_PER_ROLE,
    POLICY_SIZE,
    Document,
    ExecutionScope,
    boundary,
    execution_policies,
    policy_size,
)

SCOPE = ExecutionScope(cluster="prod", partition="aws", account="444455556666", region="us-east-2")
KINDS = sorted(row["type"] for row in read_table("handler_permissions.csv"))


def statements(documents: Iterable[Document], sid: str | None = None) -> list[dict[str, Any]]:
    found: list[Any] = [each for document in documents for each in document["Statement"]]  # pyright: ignore
    return [each for each in found if sid is None or each["Sid"] == sid]


def actions(documents: Iterable[Document], sid: str | None = None) -> set[str]:
    return {action for each in statements(documents, sid) for action in each["Action"]}


@for_each(KINDS)
def test_a_type_takes_what_its_schema_states_and_nothing_that_iam_may_refuse_as_no_action(
    kind: str,
) -> None:
    stated, taken = permissions(kind), cloudformation.permissions_of(kind)
    assert stated is not None
    assert taken == {each for each in stated if "REST." not in each}
    assert all(re.fullmatch(r"[a-z0-9-]+:[A-Za-z0-9]+\*?", each) for each in taken)


def test_a_file_system_takes_all_that_fsx_looks_at_ec2_for_with_its_callers_rights() -> None:
    full = json.loads(aws_managed_policies_data)["AmazonFSxFullAccess"]["Document"]["Statement"]
    (looked,) = (each for each in full if each["Sid"] == "DescribeEC2VpcResources")
    assert {*looked["Action"]} <= cloudformation.permissions_of("AWS::FSx::FileSystem")


@given(kinds=st.sets(st.sampled_from(KINDS)))
def test_policies_hold_every_action_and_fit_into_what_iam_takes(kinds: set[str]) -> None:
    documents = execution_policies(kinds, SCOPE)
    wanted = {action for kind in kinds for action in cloudformation.permissions_of(kind)}

    assert all(policy_size(document) <= POLICY_SIZE for document in documents)
    assert len(documents) <= POLICIES_PER_ROLE
    missing = wanted - actions(documents)
    assert all("User" in action or "Group" in action for action in missing)
    assert all(action.startswith("iam:") for action in missing)
    assert policy_size(boundary(kinds, SCOPE)) <= POLICY_SIZE


def test_roles_are_the_clusters_own() -> None:
    documents = execution_policies(["AWS::IAM::Role", "AWS::IAM::Policy"], SCOPE)
    (own,) = statements(documents, "OwnRoles")

    assert "iam:CreateRole" in own["Action"]
    assert own["Resource"] == [
        f"arn:aws:iam::444455556666:{kind}/prod-*"
        for kind in ("role", "policy", "instance-profile")
    ]
    for each in statements(documents):
        if each["Sid"] != "OwnRoles":
            assert not {"iam:CreateRole", "iam:PassRole", "iam:PutRolePolicy"} & {*each["Action"]}


def test_fsx_links_a_file_system_by_a_role_of_its_own_and_leaves_the_buckets_policy() -> None:
    """Otherwise it writes the bucket's policy, which the next deployment of the bucket undoes."""
    documents = execution_policies(["AWS::FSx::DataRepositoryAssociation"], SCOPE)
    (linked,) = statements(documents, "LinkedStorage")
    (objects,) = statements(documents, "LinkedObjects")

    assert {*linked["Action"]} == {
        *("iam:AttachRolePolicy", "iam:CreateServiceLinkedRole", "iam:PutRolePolicy")
    }
    service = "s3.data-source.lustre.fsx.amazonaws.com"
    assert linked["Resource"] == [f"arn:aws:iam::444455556666:role/aws-service-role/{service}/*"]
    assert objects["Resource"] == ["arn:aws:s3:::prod-*"]
    assert not statements(execution_policies(["AWS::FSx::FileSystem"], SCOPE), "LinkedStorage")


def test_a_pipeline_alone_is_given_the_roles_that_it_deploys_by() -> None:
    kinds = ["AWS::CodePipeline::Pipeline"]
    policies = execution_policies(kinds, SCOPE)
    (given_roles,) = statements(policies, "RolesOfActions")
    assert given_roles["Resource"] == ["arn:aws:iam::*:role/cdk-*"]
    assert not statements(execution_policies(["AWS::EKS::Cluster"], SCOPE), "RolesOfActions")
    # It may pass a connection of either prefix.
    passing = {"codestar-connections:PassConnection", "codeconnections:PassConnection"}
    assert passing <= actions(policies)
    assert "codeconnections:*" in actions([boundary(kinds, SCOPE)])


def test_a_name_that_cloudformation_cuts_is_covered() -> None:
    scope = ExecutionScope(
        cluster="a-cluster-with-a-very-long-name", partition="aws", account="1" * 12, region="x"
    )

    assert scope.prefix == "a-cluster-with-a-ver*"


def test_what_nobody_states_is_refused_and_every_type_of_it_is_named() -> None:
    with pytest.raises(CatalogError) as caught:
        execution_policies(["AWS::Made::Up", "AWS::IAM::Role", "AWS::Else::Where"], SCOPE)

    assert str(caught.value).splitlines() == [
        "no source states what AWS::Else::Where takes of its role",
        "no source states what AWS::Made::Up takes of its role",
    ]


def test_custom_resources_call_functions_of_the_cluster_alone() -> None:
    documents = execution_policies(["Custom::BlockCalendar", "AWS::CDK::Metadata"], SCOPE)
    (call,) = statements(documents, "CustomResources")

    assert call["Resource"] == ["arn:aws:lambda:us-east-2:444455556666:function:prod-*"]


def test_an_action_that_a_schema_leaves_out_can_be_added() -> None:
    documents = execution_policies([], SCOPE, ["eks:TagResource"])

    assert "eks:TagResource" in actions(documents, "Resources")
    assert "eks:*" in actions([boundary([], SCOPE, ["eks:TagResource"])], "Services")


class TestBoundary:
    """Actions that the role may never take, even with policies attached later."""

    def test_it_leads_to_no_person_and_no_other_service(self) -> None:
        limits = boundary(["AWS::IAM::Role", "AWS::EKS::Cluster"], SCOPE)

        assert {"iam:*User*", "iam:*AccessKey*"} <= actions([limits], "NoPeople")
        assert {each["Effect"] for each in statements([limits], "NoPeople")} == {"Deny"}
        assert "eks:*" in actions([limits], "Services")
        assert not {"*", "organizations:*", "rds:*"} & actions([limits], "Services")

    def test_it_keeps_itself_and_the_bootstrap_roles(self) -> None:
        limits = boundary(["AWS::IAM::ManagedPolicy"], SCOPE)
        (roles,) = statements([limits], "KeepBootstrapRoles")
        (policies,) = statements([limits], "KeepThesePolicies")

        assert roles["Resource"] == ["arn:aws:iam::444455556666:role/cdk-*"]
        assert policies["Resource"] == ["arn:aws:iam::444455556666:policy/prod-cdk-*"]
        assert "iam:CreatePolicyVersion" in policies["Action"]
        for name in (SCOPE.boundary_name, SCOPE.policy_name(1)):
            assert name.startswith("prod-cdk-")

    def test_it_allows_every_service_that_the_policies_do(self) -> None:
        services = {action.split(":")[0] for action in actions(execution_policies(KINDS, SCOPE))}

        allowed = actions([boundary(KINDS, SCOPE)], "Services")

        assert {f"{service}:*" for service in services} <= allowed


def test_every_type_that_any_cluster_file_may_become_has_its_permissions() -> None:
    assert all(cloudformation.permissions_of(kind) for kind in defined_types())
