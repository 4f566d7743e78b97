"""The backend's database: not lost, not open to others, and no password where nobody needs one."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from aws_cdk import aws_kms as kms
from aws_cdk.assertions import Template
from msgspec.structs import replace

from tests.support.construct_stacks import make_context, make_stack, resources, the
from ultrascale.parts.backend.model import DatabasePlan, InstanceCapacity, ServerlessCapacity
from ultrascale_constructs.backend import Database
from ultrascale_constructs.pod_identity import PodIdentityRole

AURORA = DatabasePlan(
    engine="aurora-postgresql",
    version="17",
    minor_upgrades=True,
    parameter_group_family="aurora-postgresql17",
    parameters={"rds.force_ssl": "1"},
    capacity=ServerlessCapacity(
        instance_class="db.serverless", instances=2, min_acu=0.5, max_acu=4, pause_seconds=None
    ),
    name="backend",
    port=5432,
    login="secret",
    backup_retention_days=7,
    insights_days=None,
    log_types=("postgresql",),
    log_retention_days=90,
)
RDS = replace(
    AURORA,
    engine="postgres",
    parameter_group_family="postgres17",
    capacity=InstanceCapacity(
        instance_class="db.m6g.large", multi_az=True, storage_gib=20, max_storage_gib=200
    ),
    login="iam",
    insights_days=7,
    log_types=("postgresql", "upgrade"),
)
# Every value that a key of the cluster file can change, but `service`.
OTHER = {"version": "17.9", "minor_upgrades": False, "backup_retention_days": 35} | {
    "insights_days": 7,
    "log_types": (),
    "log_retention_days": 30,
}
OTHERS = {
    "aurora": replace(
        AURORA,
        **OTHER,
        login="iam",
        capacity=ServerlessCapacity(
            instance_class="db.serverless", instances=1, min_acu=0, max_acu=8, pause_seconds=3600
        ),
    ),
    "instance": replace(
        RDS,
        **OTHER,
        login="secret",
        capacity=InstanceCapacity(
            instance_class="db.r7g.large", multi_az=False, storage_gib=50, max_storage_gib=500
        ),
    ),
}
# Properties whose change makes CloudFormation replace the database, or by which it is named.
# Source: https://github.com/aws-cloudformation/cfn-lint/tree/v1.58.0/src/cfnlint/data/schemas
CREATE_ONLY = {
    *("DBClusterIdentifier", "DBInstanceIdentifier", "DBName", "DBSubnetGroupName"),
    *("DatabaseName", "Engine", "EngineMode", "KmsKeyId", "MasterUsername", "Port"),
    *("PubliclyAccessible", "SnapshotIdentifier", "StorageEncrypted", "Timezone"),
}
NAMES = {
    *("DBClusterIdentifier", "DBInstanceIdentifier", "DBSubnetGroupName"),
    *("DBClusterParameterGroupName", "DBParameterGroupName", "GroupName"),
}
CLUSTER = "AWS::RDS::DBCluster"
KEY = "arn:aws:kms:us-west-2:111122223333:key/data"
INSTANCE = "AWS::RDS::DBInstance"
CLIENTS = "sg-0123456789abcdef0"


def synthesize(plan: DatabasePlan) -> Template:
    stack = make_stack()
    database = Database(
        stack,
        "Database",
        plan=plan,
        key=kms.Key.from_key_arn(stack, "Key", KEY),
        cluster=make_context(stack),
    )
    PodIdentityRole(
        stack,
        "Pods",
        cluster_name="research",
        namespace="backend",
        service_account="backend",
        permissions=database.permissions,
    )
    return Template.from_stack(stack)


@pytest.fixture(scope="module")
def aurora() -> Template:
    return synthesize(AURORA)


@pytest.fixture(scope="module")
def instance() -> Template:
    return synthesize(RDS)


@pytest.fixture(params=["aurora", "instance"])
def template(request: pytest.FixtureRequest) -> Template:
    return request.getfixturevalue(request.param)


@pytest.fixture
def database(template: Template) -> Mapping[str, Any]:
    """The body of what holds the data."""
    clusters = resources(template, CLUSTER)
    (found,) = clusters or resources(template, INSTANCE)
    return found


def role(template: Template) -> list[Mapping[str, Any]]:
    """Return the statements of the pods' role."""
    (found,) = (
        each for each in resources(template, "AWS::IAM::Role") if "Policies" in each["Properties"]
    )
    (policy,) = found["Properties"]["Policies"]
    return policy["PolicyDocument"]["Statement"]


def test_what_the_retained_database_uses_stays_with_it_and_has_no_name_of_ours(
    template: Template,
) -> None:
    bodies = [*template.to_json()["Resources"].values()]

    for kind in ("AWS::RDS::DBSubnetGroup", "AWS::EC2::SecurityGroup", "ParameterGroup"):
        found = [each for each in bodies if each["Type"].endswith(kind)]
        assert [each["DeletionPolicy"] for each in found] == ["Retain"]
    # A replacement could not have the same name.
    for body in bodies:
        named = NAMES & body.get("Properties", {}).keys()
        assert not [key for key in named if isinstance(body["Properties"][key], str)]


@pytest.mark.parametrize(("kind", "before"), [(CLUSTER, "aurora"), (INSTANCE, "instance")])
def test_no_change_of_the_file_replaces_the_database(
    kind: str, before: str, request: pytest.FixtureRequest
) -> None:
    """The new one would be empty."""
    template: Template = request.getfixturevalue(before)
    changed = synthesize(OTHERS[before])

    assert template.find_resources(kind).keys() == changed.find_resources(kind).keys()
    fixed = [
        {key: value for key, value in the(each, kind).items() if key in CREATE_ONLY}
        for each in (template, changed)
    ]
    assert fixed[0] == fixed[1]
    assert the(template, kind) != the(changed, kind)


def test_servers_of_aurora_go_with_the_stack_and_the_data_stays(aurora: Template) -> None:
    instances = resources(aurora, INSTANCE)

    assert [each["DeletionPolicy"] for each in instances] == ["Delete", "Delete"]
    assert {each["Properties"]["DBInstanceClass"] for each in instances} == {"db.serverless"}


def test_logs_are_kept_as_long_as_all_others(instance: Template) -> None:
    found = [each["Properties"] for each in resources(instance, "Custom::LogRetention")]

    assert [each["RetentionInDays"] for each in found] == [90, 90]
    assert "/upgrade" in json.dumps(found)


def test_neither_a_deploy_nor_a_command_deletes_it_and_it_is_restored_to_any_second_of_a_week(
    database: Mapping[str, Any],
) -> None:
    assert database["DeletionPolicy"] == database["UpdateReplacePolicy"] == "Retain"
    assert (
        database["Properties"].items()
        >= {
            "DeletionProtection": True,
            "StorageEncrypted": True,
            "KmsKeyId": KEY,
            "BackupRetentionPeriod": 7,
            "DeleteAutomatedBackups": False,
            "CopyTagsToSnapshot": True,
            # IAM may log users in with either login.
            "EnableIAMDatabaseAuthentication": True,
        }.items()
    )


def test_capacity_version_and_login_are_those_of_the_file(
    aurora: Template, instance: Template
) -> None:
    cluster, single = the(aurora, CLUSTER), the(instance, INSTANCE)

    acu = {"MinCapacity": 0.5, "MaxCapacity": 4}
    assert cluster["ServerlessV2ScalingConfiguration"] == acu
    assert cluster["EngineVersion"] == single["EngineVersion"] == "17"
    # A standby, and storage that grows.
    assert single["MultiAZ"] is True
    assert (single["AllocatedStorage"], single["MaxAllocatedStorage"]) == ("20", 200)
    assert the(aurora, "AWS::RDS::DBClusterParameterGroup")["Family"] == "aurora-postgresql17"
    assert the(instance, "AWS::RDS::DBParameterGroup")["Parameters"] == {"rds.force_ssl": "1"}
    # RDS keeps and rotates the password; with IAM there is none at all.
    assert cluster["ManageMasterUserPassword"] is True
    assert cluster["MasterUserSecret"] == {"KmsKeyId": KEY}
    assert single["MasterUserAuthenticationType"] == "iam-db-auth"
    assert "MasterUserPassword" not in cluster
    secrets = {"ManageMasterUserPassword", "MasterUserSecret", "MasterUserPassword"}
    assert not secrets & single.keys()


class TestAccess:
    """Network access to the database, and logins."""

    def test_postgresql_is_open_to_nodes_and_pods_and_nobody_else(self, template: Template) -> None:
        (body,) = resources(template, "AWS::EC2::SecurityGroupIngress")
        rule = body["Properties"]
        group = the(template, "AWS::EC2::SecurityGroup")

        assert (rule["FromPort"], rule["ToPort"], rule["IpProtocol"]) == (5432, 5432, "tcp")
        assert rule["SourceSecurityGroupId"] == CLIENTS
        # EKS cannot delete a group that a rule names: the rule goes with the stack.
        assert "DeletionPolicy" not in body
        assert "SecurityGroupIngress" not in group
        assert "0.0.0.0/0" not in json.dumps(group)
        found = {each["Properties"]["PubliclyAccessible"] for each in resources(template, INSTANCE)}
        assert found == {False}

    def test_pods_read_that_secret_and_decrypt_nothing_else_with_the_key(
        self, aurora: Template
    ) -> None:
        read, decrypt = role(aurora)
        (cluster,) = aurora.find_resources(CLUSTER)
        secret = {"Fn::GetAtt": [cluster, "MasterUserSecret.SecretArn"]}

        assert read == {
            "Effect": "Allow",
            "Action": "secretsmanager:GetSecretValue",
            "Resource": secret,
        }
        assert (decrypt["Action"], decrypt["Resource"]) == ("kms:Decrypt", KEY)
        assert decrypt["Condition"] == {
            "StringEquals": {
                "kms:ViaService": "secretsmanager.us-west-2.amazonaws.com",
                "kms:EncryptionContext:SecretARN": secret,
            }
        }

    def test_pods_log_in_as_that_user_of_that_database(self, instance: Template) -> None:
        (statement,) = role(instance)
        (database,) = instance.find_resources(INSTANCE)

        assert statement["Action"] == "rds-db:connect"
        assert json.dumps({"Fn::GetAtt": [database, "DbiResourceId"]}) in json.dumps(statement)
        assert statement["Resource"]["Fn::Join"][1][-1] == "/backend"
