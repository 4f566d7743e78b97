"""FSx for Lustre: the checkpoints of months, and the ports to reach them."""

from collections.abc import Mapping
from typing import Any

import pytest
from aws_cdk import aws_kms as kms
from aws_cdk.assertions import Template
from msgspec.structs import replace

from tests.support.construct_stacks import flat, make_context, make_stack, resources, the
from ultrascale.plan.model import LustrePlan
from ultrascale_constructs.lustre import LustreFileSystem

PLAN = LustrePlan(
    name="training",
    zone="us-west-2b",
    capacity_gib=9600,
    throughput_mbps_per_tib=500,
    deployment_type="PERSISTENT_2",
    lustre_version="2.15",
    port_ranges=((988, 988), (1018, 1023)),
    data_compression="LZ4",
    backup_retention_days=7,
    efa=False,
    repository=None,
    file_system_id="${FSX_TRAINING_ID}",
    dns_name="${FSX_TRAINING_DNS_NAME}",
    mount_name="${FSX_TRAINING_MOUNT_NAME}",
)
FILE_SYSTEM = "AWS::FSx::FileSystem"
INGRESS = "AWS::EC2::SecurityGroupIngress"
EGRESS = "AWS::EC2::SecurityGroupEgress"
CLIENTS = "sg-0123456789abcdef0"
KEY = "arn:aws:kms:us-west-2:111122223333:key/data"
LUSTRE_PORTS = {(988, 988), (1018, 1023)}


def synthesize(plan: LustrePlan) -> Template:
    stack = make_stack()
    LustreFileSystem(
        stack,
        "FileSystem",
        plan=plan,
        key=kms.Key.from_key_arn(stack, "Key", KEY),
        cluster=make_context(stack),
        subnet_id="subnet-b",
    )
    return Template.from_stack(stack)


@pytest.fixture(scope="module")
def built() -> Template:
    return synthesize(PLAN)


def test_size_throughput_backups_and_compression_are_the_files(built: Template) -> None:
    (group,) = built.find_resources("AWS::EC2::SecurityGroup")

    assert flat(the(built, FILE_SYSTEM)) == {
        "FileSystemType": "LUSTRE",
        "FileSystemTypeVersion": "2.15",  # Clients of today can mount it.
        "KmsKeyId": KEY,
        "LustreConfiguration.AutomaticBackupRetentionDays": 7,
        "LustreConfiguration.CopyTagsToBackups": True,
        "LustreConfiguration.DataCompressionType": "LZ4",
        # Data survives the failure of a server.
        "LustreConfiguration.DeploymentType": "PERSISTENT_2",
        # Performance of metadata can be raised later.
        "LustreConfiguration.MetadataConfiguration.Mode": "AUTOMATIC",
        "LustreConfiguration.PerUnitStorageThroughput": 500,
        "SecurityGroupIds.0": {"Fn::GetAtt": [group, "GroupId"]},
        "StorageCapacity": 9600,
        "StorageType": "SSD",
        "SubnetIds.0": "subnet-b",
        "Tags.0.Key": "Name",
        "Tags.0.Value": "Test/FileSystem",
    }
    other = replace(PLAN, capacity_gib=1200, throughput_mbps_per_tib=125)
    other = replace(other, backup_retention_days=30, data_compression="NONE")
    found = flat(the(synthesize(other), FILE_SYSTEM))
    assert (
        found.items()
        >= {
            "StorageCapacity": 1200,
            "LustreConfiguration.PerUnitStorageThroughput": 125,
            "LustreConfiguration.AutomaticBackupRetentionDays": 30,
            "LustreConfiguration.DataCompressionType": "NONE",
        }.items()
    )


def test_it_waits_for_its_ports_which_fsx_tries_at_once_and_outlives_its_stack(
    built: Template,
) -> None:
    (file_system,) = built.find_resources(FILE_SYSTEM).values()
    rules = {*built.find_resources(INGRESS), *built.find_resources(EGRESS)}

    assert len(rules) == 5 * len(LUSTRE_PORTS)
    assert rules <= set(file_system["DependsOn"])
    # A first attempt that failed leaves nothing.
    policies = {"DeletionPolicy": "RetainExceptOnCreate", "UpdateReplacePolicy": "Retain"}
    built.has_resource(FILE_SYSTEM, policies)


class TestPorts:
    """A port that is shut in one direction hangs every mount, hours into a job."""

    @staticmethod
    def inside(template: Template, group: str, key: str, peer_key: str) -> set[Any]:
        """Return (peer, first port, last port) of the rules in ``group`` itself."""
        rules = [
            *template.to_json()["Resources"][group]["Properties"].get(key, ()),
            *(
                body["Properties"]
                for body in resources(template, INGRESS if "Ingress" in key else EGRESS)
                if body["Properties"]["GroupId"] == {"Fn::GetAtt": [group, "GroupId"]}
            ),
        ]
        assert all(rule["IpProtocol"] == "tcp" for rule in rules)
        return {(str(rule[peer_key]), rule["FromPort"], rule["ToPort"]) for rule in rules}

    @pytest.mark.parametrize(
        ("key", "peer_key"),
        [
            ("SecurityGroupIngress", "SourceSecurityGroupId"),
            ("SecurityGroupEgress", "DestinationSecurityGroupId"),
        ],
    )
    def test_servers_talk_to_each_other_and_to_clients_both_ways(
        self, built: Template, key: str, peer_key: str
    ) -> None:
        (group,) = built.find_resources("AWS::EC2::SecurityGroup")
        peers = (str({"Fn::GetAtt": [group, "GroupId"]}), CLIENTS)

        assert self.inside(built, group, key, peer_key) == {
            (peer, *ports) for peer in peers for ports in LUSTRE_PORTS
        }

    def test_clients_let_the_servers_in(self, built: Template) -> None:
        (group,) = built.find_resources("AWS::EC2::SecurityGroup")
        rules = [
            body["Properties"]
            for body in resources(built, INGRESS)
            if body["Properties"]["GroupId"] == CLIENTS
        ]

        assert {(rule["FromPort"], rule["ToPort"]) for rule in rules} == LUSTRE_PORTS
        reference = {"Fn::GetAtt": [group, "GroupId"]}
        assert all(rule["SourceSecurityGroupId"] == reference for rule in rules)

    def test_the_retained_file_system_keeps_its_group_and_rules_and_no_client_any(
        self, built: Template
    ) -> None:
        (group,) = built.find_resources("AWS::EC2::SecurityGroup")
        of_servers = {"GroupId": {"Fn::GetAtt": [group, "GroupId"]}}

        for kind, properties in (
            ("AWS::EC2::SecurityGroup", {}),
            (INGRESS, of_servers | {"SourceSecurityGroupId": of_servers["GroupId"]}),
            (EGRESS, of_servers | {"DestinationSecurityGroupId": of_servers["GroupId"]}),
        ):
            found = built.find_resources(kind, {"Properties": properties})
            assert found
            assert all(self.retained(body) for body in found.values())
            # A rule that stays keeps EKS from deleting the group that it names.
            rules = built.find_resources(kind).values()
            assert not any(self.retained(body) for body in rules if CLIENTS in str(body))

    @staticmethod
    def retained(body: Mapping[str, Any]) -> bool:
        """Return whether a resource outlives its stack and its replacement."""
        policies = (body.get("DeletionPolicy"), body.get("UpdateReplacePolicy"))
        return policies == ("RetainExceptOnCreate", "Retain")
