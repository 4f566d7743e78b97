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
OTHER = {
    "version": "17.9",
    "minor_upgrades": False,
    "backup_retention_days": 35,
    "insights_days": 7,
    "log_types": (),
    "log_retention_days": 30,
}
OTHER_AURORA = replace(
    AURORA,
    **OTHER,
    login="iam",
    capacity=ServerlessCapacity(
        instance_class="db.serverless", instances=1, min_acu=0, max_acu=8, pause_seconds=3600
    ),
)
OTHER_RDS = replace(
    RDS,
    **OTHER,
    login="secret",
    capacity=InstanceCapacity(
        instance_class="db.r7g.large", multi_az=False, storage_gib=50, max_storage_gib=500
    ),
)
# Properties whose change makes CloudFormation replace the database.
# Source: https://github.com/aws-cloudformation/cfn-lint/tree/v1.58.0/src/cfnlint/data/schemas
REPLACE = {
    "DBClusterIdentifier",
    "DBInstanceIdentifier",
    "DBName",
    "DBSubnetGroupName",
    "DatabaseName",
    "Engine",
    "EngineMode",
    "KmsKeyId",
    "MasterUsername",
    "Port",
    "PubliclyAccessible",
    "SnapshotIdentifier",
    "StorageEncrypted",
    "Timezone",
}
CLUSTER = "AWS::RDS::DBCluster"
INSTANCE = "AWS::RDS::DBInstance"
KEY = "arn:aws:kms:us-west-2:111122223333:key/data"
CLIENTS = "sg-0123456789abcdef0"
# Properties by which each of these resources is named.
NAMES = {
    "DBClusterIdentifier",
    "DBInstanceIdentifier",
    "DBSubnetGroupName",
    "DBClusterParameterGroupName",
    "DBParameterGroupName",
    "GroupName",
}


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


class TestData:
    """It outlives the stack, and mistakes."""

    def test_neither_a_deploy_nor_a_command_deletes_it(self, database: Mapping[str, Any]) -> None:
        assert database["DeletionPolicy"] == database["UpdateReplacePolicy"] == "Retain"
        assert database["Properties"]["DeletionProtection"] is True

    @pytest.mark.parametrize("kind", ["AWS::RDS::DBSubnetGroup", "AWS::EC2::SecurityGroup"])
    def test_what_the_retained_database_uses_stays_with_it(
        self, template: Template, kind: str
    ) -> None:
        assert {each["DeletionPolicy"] for each in resources(template, kind)} == {"Retain"}

    def test_its_parameters_stay_with_it(self, aurora: Template, instance: Template) -> None:
        (cluster,) = resources(aurora, "AWS::RDS::DBClusterParameterGroup")
        (single,) = resources(instance, "AWS::RDS::DBParameterGroup")

        assert cluster["DeletionPolicy"] == single["DeletionPolicy"] == "Retain"

    def test_nothing_has_a_name_that_its_replacement_could_not_have(
        self, template: Template
    ) -> None:
        stated = {
            (body["Type"], key)
            for body in template.to_json()["Resources"].values()
            for key, value in body.get("Properties", {}).items()
            if isinstance(value, str) and key in NAMES
        }

        assert stated == set()

    def test_it_is_encrypted_with_the_key_of_its_own(self, database: Mapping[str, Any]) -> None:
        properties = database["Properties"]

        assert properties["StorageEncrypted"] is True
        assert properties["KmsKeyId"] == KEY

    def test_it_can_be_restored_to_any_second_of_a_week(self, database: Mapping[str, Any]) -> None:
        properties = database["Properties"]

        assert properties["BackupRetentionPeriod"] == 7
        assert properties["DeleteAutomatedBackups"] is False
        assert properties["CopyTagsToSnapshot"] is True

    @pytest.mark.parametrize(
        ("kind", "before", "other"),
        [(CLUSTER, "aurora", OTHER_AURORA), (INSTANCE, "instance", OTHER_RDS)],
        ids=["aurora", "instance"],
    )
    def test_no_change_of_the_file_replaces_the_database(
        self, kind: str, before: str, other: DatabasePlan, request: pytest.FixtureRequest
    ) -> None:
        """The new one would be empty."""
        template: Template = request.getfixturevalue(before)
        changed = synthesize(other)

        assert template.find_resources(kind).keys() == changed.find_resources(kind).keys()
        fixed = [
            {key: value for key, value in the(each, kind).items() if key in REPLACE}
            for each in (template, changed)
        ]
        assert fixed[0] == fixed[1]
        assert the(template, kind) != the(changed, kind)

    def test_servers_of_aurora_go_with_the_stack_and_the_data_stays(self, aurora: Template) -> None:
        instances = resources(aurora, INSTANCE)

        assert [each["DeletionPolicy"] for each in instances] == ["Delete", "Delete"]

    def test_logs_are_kept_as_long_as_all_others(self, instance: Template) -> None:
        found = [each["Properties"] for each in resources(instance, "Custom::LogRetention")]

        assert [each["RetentionInDays"] for each in found] == [90, 90]
        assert "/upgrade" in json.dumps(found)


class TestCapacity:
    """Instances and storage of the database."""

    def test_two_instances_of_aurora_share_the_range_of_the_file(self, aurora: Template) -> None:
        properties = the(aurora, CLUSTER)

        assert properties["ServerlessV2ScalingConfiguration"] == {
            "MinCapacity": 0.5,
            "MaxCapacity": 4,
        }
        assert {each["Properties"]["DBInstanceClass"] for each in resources(aurora, INSTANCE)} == {
            "db.serverless"
        }

    def test_rds_keeps_a_standby_and_storage_that_grows(self, instance: Template) -> None:
        properties = the(instance, INSTANCE)

        assert properties["MultiAZ"] is True
        assert (properties["AllocatedStorage"], properties["MaxAllocatedStorage"]) == ("20", 200)

    def test_the_files_version_is_asked_for_with_its_parameters(
        self, aurora: Template, instance: Template
    ) -> None:
        assert the(aurora, CLUSTER)["EngineVersion"] == "17"
        family = the(aurora, "AWS::RDS::DBClusterParameterGroup")
        assert family["Family"] == "aurora-postgresql17"
        assert the(instance, "AWS::RDS::DBParameterGroup")["Parameters"] == {"rds.force_ssl": "1"}


class TestAccess:
    """Network access to the database, and logins."""

    def test_postgresql_is_open_to_nodes_and_pods_and_nobody_else(self, template: Template) -> None:
        rule = the(template, "AWS::EC2::SecurityGroupIngress")
        group = the(template, "AWS::EC2::SecurityGroup")

        assert (rule["FromPort"], rule["ToPort"], rule["IpProtocol"]) == (5432, 5432, "tcp")
        assert rule["SourceSecurityGroupId"] == CLIENTS
        assert "SecurityGroupIngress" not in group
        assert "0.0.0.0/0" not in json.dumps(group)

    def test_the_rule_that_names_the_clusters_group_goes_with_the_stack(
        self, template: Template
    ) -> None:
        """EKS cannot delete a group that a rule names."""
        (rule,) = resources(template, "AWS::EC2::SecurityGroupIngress")

        assert "DeletionPolicy" not in rule

    def test_it_has_no_public_address(self, template: Template) -> None:
        found = {each["Properties"]["PubliclyAccessible"] for each in resources(template, INSTANCE)}

        assert found == {False}

    def test_iam_may_log_users_in_either_way(self, database: Mapping[str, Any]) -> None:
        assert database["Properties"]["EnableIAMDatabaseAuthentication"] is True

    def test_rds_keeps_and_rotates_the_password_under_the_same_key(self, aurora: Template) -> None:
        properties = the(aurora, CLUSTER)

        assert properties["ManageMasterUserPassword"] is True
        assert properties["MasterUserSecret"] == {"KmsKeyId": KEY}
        assert "MasterUserPassword" not in properties

    def test_with_iam_there_is_no_password_at_all(self, instance: Template) -> None:
        properties = the(instance, INSTANCE)

        assert properties["MasterUserAuthenticationType"] == "iam-db-auth"
        assert not {"ManageMasterUserPassword", "MasterUserSecret"} & properties.keys()

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
