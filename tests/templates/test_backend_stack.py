"""The backend's stack and charts in a whole cluster."""

from typing import Any

import pytest

from tests.support.assembly import Assembly, stacks_before


def test_the_database_waits_for_no_node(hybrid: Assembly) -> None:
    """It takes a quarter of an hour, and so do nodes."""
    assert stacks_before(hybrid, "backend") <= {"network", "cluster"}


def test_its_key_encrypts_nothing_else(hybrid: Assembly) -> None:
    template = hybrid.templates["backend"]
    keys = [name for name, body in template["Resources"].items() if body["Type"] == "AWS::KMS::Key"]
    (cluster,) = (
        body for body in template["Resources"].values() if body["Type"] == "AWS::RDS::DBCluster"
    )

    assert [cluster["Properties"]["KmsKeyId"]] == [{"Fn::GetAtt": [key, "Arn"]} for key in keys]


def test_it_lies_in_private_subnets_of_every_zone(hybrid: Assembly) -> None:
    (group,) = (body for _, body in hybrid.resources("AWS::RDS::DBSubnetGroup"))
    private = [
        output["Export"]["Name"]
        for output in hybrid.templates["network"]["Outputs"].values()
        if "Private" in str(output["Value"])
    ]
    subnets: list[dict[str, Any]] = group["Properties"]["SubnetIds"]

    assert len(subnets) == len(hybrid.plan.network.zones)
    assert {each["Fn::ImportValue"] for each in subnets} <= set(private)


@pytest.mark.parametrize(
    ("chart", "namespaces"),
    [("backend-rights", {"training"}), ("team-backend-rights", {"hyperpod-ns-production"})],
)
def test_rights_are_given_where_the_jobs_of_its_templates_run(
    hybrid: Assembly, chart: str, namespaces: set[str]
) -> None:
    bindings = [each for each in hybrid.charts[chart] if each["kind"] == "RoleBinding"]

    assert {each["metadata"]["namespace"] for each in bindings} == namespaces
    for each in bindings:
        assert each["subjects"] == [
            {"kind": "ServiceAccount", "name": "backend", "namespace": "backend"}
        ]


def test_only_its_own_account_takes_the_role_that_reads_the_secret(hybrid: Assembly) -> None:
    (association,) = (
        body["Properties"]
        for stack, body in hybrid.resources("AWS::EKS::PodIdentityAssociation")
        if stack == "backend"
    )

    account = hybrid.find("ServiceAccount", association["ServiceAccount"])
    assert account["metadata"]["namespace"] == association["Namespace"] == "backend"
