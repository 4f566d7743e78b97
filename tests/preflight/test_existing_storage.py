"""File systems and buckets that exist are what the file says, and nodes and pods reach them."""

import json
from collections.abc import Mapping
from typing import Any, cast

import boto3
import pytest
from moto import mock_aws

from tests.support.cases import for_each
from tests.support.existing_vpc import VPC, existing_document
from tests.support.fake_aws import ID, Refusal, Told, denied
from tests.support.pools import as_text
from tests.support.preflight_context import NOW, found
from ultrascale import config
from ultrascale.account import connect
from ultrascale.findings import Finding
from ultrascale.plan import ClusterPlan, plan_cluster
from ultrascale.plan.needs.report import plan_needs
from ultrascale.preflight.existing_buckets import EXISTING_BUCKETS
from ultrascale.preflight.existing_lustre import EXISTING_LUSTRE
from ultrascale.preflight.model import Context
from ultrascale.preflight.policy import policy

FILE_SYSTEM, GROUP, SUBNET = (
    "fs-0a1b2c3d4e5f60001",
    "sg-0a1b2c3d4e5f60001",
    "subnet-0a1b2c3d4e5f60021",
)
OTHER, SYSTEMS = "444455556666", "fsx:DescribeFileSystems"
KEY = f"arn:aws:kms:us-east-1:{OTHER}:key/11111111-2222-4333-8444-555555555503"
RANGES = ("10.20.16.0/20", "10.20.32.0/20", "100.64.0.0/18")


def planned(**storage: Any) -> ClusterPlan:
    document = existing_document() | {"account": ID, "storage": storage}
    return plan_cluster(config.loads(as_text(document)))


def lustre(**existing: Any) -> ClusterPlan:
    ids = {"id": FILE_SYSTEM, "mount_name": "abcdefgh", "security_group": GROUP}
    system = {"name": "training", "zone": "us-east-1a", "existing": ids | existing}
    return planned(lustre=[system])


def described(**changes: Any) -> dict[str, Any]:
    configuration = {"DeploymentType": "PERSISTENT_2", "MountName": "abcdefgh"}
    system = {
        "FileSystemId": FILE_SYSTEM,
        "FileSystemType": "LUSTRE",
        "FileSystemTypeVersion": "2.15",
        "Lifecycle": "AVAILABLE",
        "StorageCapacity": 9600,
        "VpcId": VPC,
        "SubnetIds": [SUBNET],
        "NetworkInterfaceIds": ["eni-0a1b2c3d4e5f60001"],
        "DNSName": f"{FILE_SYSTEM}.fsx.us-east-1.amazonaws.com",
        "KmsKeyId": KEY,
        "LustreConfiguration": configuration | changes.pop("LustreConfiguration", {}),
    }
    return system | changes


def opened(*ranges: str, first: int = 988, last: int = 1023, **rest: Any) -> dict[str, Any]:
    cidrs = [{"CidrIp": each} for each in ranges]
    return {"IpProtocol": "tcp", "FromPort": first, "ToPort": last, "IpRanges": cidrs} | rest


NOTHING: dict[str, Any] = {}
EVERYWHERE = {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}


def answers(
    system: Mapping[str, Any] | None = None,
    *,
    ingress: list[dict[str, Any]] | None = None,
    egress: list[dict[str, Any]] | None = None,
    zone: str = "us-east-1a",
    key: str = "Enabled",
    cluster: Told | None = None,
) -> dict[str, Told]:
    group = {
        "GroupId": GROUP,
        "IpPermissions": [opened(*RANGES)] if ingress is None else ingress,
        "IpPermissionsEgress": [EVERYWHERE] if egress is None else egress,
    }
    subnet = {"SubnetId": SUBNET, "AvailabilityZone": zone, "AvailabilityZoneId": "use1-az4"}
    return {
        SYSTEMS: {"FileSystems": [system or described()]},
        "ec2:DescribeSubnets": {"Subnets": [subnet]},
        "ec2:DescribeNetworkInterfaces": {
            "NetworkInterfaces": [{"Groups": [{"GroupId": GROUP, "GroupName": "lustre"}]}]
        },
        "ec2:DescribeSecurityGroups": {"SecurityGroups": [group]},
        "kms:DescribeKey": {"KeyMetadata": {"KeyId": "1111", "KeyState": key}},
        "eks:DescribeCluster": cluster or Refusal("ResourceNotFoundException"),
    }


def judged(plan: ClusterPlan, told: Mapping[str, Told]) -> Finding:
    (finding,) = found(EXISTING_LUSTRE, plan, told)
    return finding


REPAIR = "have its owner repair it first"
SCRATCH = "keep datasets and checkpoints on a persistent file system"


@for_each(
    {
        "another mount name": (
            {"LustreConfiguration": {"MountName": "zzzzzzzz"}},
            *("fail", "MountName is zzzzzzzz, abcdefgh by the file"),
            "correct existing.mount_name: zzzzzzzz",
        ),
        "another VPC": (
            {"VpcId": "vpc-0b1b2c3d4e5f60001"},
            *("fail", f"it lies in vpc-0b1b2c3d4e5f60001, the nodes in {VPC}", f"system of {VPC}"),
        ),
        "not of Lustre": ({"FileSystemType": "ONTAP"}, "fail", "is ONTAP", "of FSx for Lustre"),
        "no key or network any more": (
            {"Lifecycle": "MISCONFIGURED_UNAVAILABLE", "FailureDetails": {"Message": "no key"}},
            *("fail", "Lifecycle is MISCONFIGURED_UNAVAILABLE: no key", REPAIR),
        ),
        "being deleted": ({"Lifecycle": "DELETING"}, "fail", "Lifecycle is DELETING", REPAIR),
        "misconfigured": ({"Lifecycle": "MISCONFIGURED"}, "warn", "is MISCONFIGURED", REPAIR),
        "too old for the clients": (
            {"FileSystemTypeVersion": "2.10"},
            *("fail", "Lustre 2.10: clients of Amazon", "--file-system-type-version 2.15"),
        ),
        "scratch": (
            {"LustreConfiguration": {"DeploymentType": "SCRATCH_2"}},
            *("warn", "DeploymentType is SCRATCH_2: it keeps no copies", SCRATCH),
        ),
    }
)
def test_what_keeps_pods_from_mounting_is_found_in_its_description(
    changes: dict[str, Any], state: str, told: str, fix: str
) -> None:
    finding = judged(lustre(), answers(described(**changes)))
    assert finding.state == state
    assert told in finding.evidence
    assert fix in str(finding.fix)


OPEN = "its ports are open"
TWO_RULES = [opened(*RANGES, last=988), opened(*RANGES, first=1000, last=1023)]
OF_CLUSTER = {"cluster": {"resourcesVpcConfig": {"clusterSecurityGroupId": "sg-0cccc"}}}


@for_each(
    {
        "a port too few": (
            {"ingress": [opened(*RANGES, last=1022)]},
            "fail",
            f"{GROUP} does not open TCP 1018-1023 from 10.20.16.0/20, 10.20.32.0/20, 100.64.0.0/18",
        ),
        "half of a subnet": (
            {"ingress": [opened("10.20.16.0/21", *RANGES[1:])]},
            *("fail", "TCP 988, 1018-1023 from 10.20.16.0/20"),
        ),
        "both halves of a subnet": (
            {"ingress": [opened("10.20.16.0/21", "10.20.24.0/21", *RANGES[1:])]},
            *("pass", OPEN),
        ),
        "ports in two rules": ({"ingress": TWO_RULES}, "pass", OPEN),
        "UDP": ({"ingress": [opened(*RANGES, IpProtocol="udp")]}, "fail", "TCP 988, 1018-1023 fr"),
        "no way back": (
            {"egress": [EVERYWHERE | {"IpProtocol": "udp"}]},
            *("fail", "TCP 988, 1018-1023 to 10.20.16.0/20"),
        ),
        "a prefix list": (
            {"ingress": [opened(PrefixListIds=[{"PrefixListId": "pl-0aaa"}])]},
            *("warn", "unless pl-0aaa holds them"),
        ),
        "the group of the cluster": (
            {
                "ingress": [opened(UserIdGroupPairs=[{"GroupId": "sg-0cccc"}])],
                "cluster": OF_CLUSTER,
            },
            *("pass", OPEN),
        ),
    }
)
def test_ports_that_are_closed_to_a_part_of_the_nodes_are_found(
    rules: dict[str, Any], state: str, told: str
) -> None:
    finding = judged(lustre(), answers(**rules))
    assert finding.state == state
    assert told in finding.evidence


@for_each(
    {
        "as the file says": (
            *(NOTHING, answers(), "pass"),
            f"training ({FILE_SYSTEM}): AVAILABLE, PERSISTENT_2, Lustre 2.15, 9600 GiB",
        ),
        "another zone": (
            *(NOTHING, answers(zone="us-east-1b"), "fail"),
            "it lies in zone us-east-1b or use1-az4, by the file in us-east-1a",
        ),
        "a disabled key": (NOTHING, answers(key="Disabled"), "fail", "KeyState is Disabled"),
        "another security group": (
            *({"security_group": "sg-0bbbbbbb"}, answers(), "fail"),
            f"its interfaces have {GROUP}, not sg-0bbbbbbb",
        ),
        "a rule that is missing": (
            *(NOTHING, answers(ingress=[opened(*RANGES[1:])]), "fail"),
            f"`aws ec2 authorize-security-group-ingress --group-id {GROUP} --protocol tcp "
            "--port 988 --cidr 10.20.16.0/20`",
        ),
        "no file system": (
            NOTHING,
            answers() | {SYSTEMS: Refusal("FileSystemNotFound")},
            "fail",
            "",
        ),
        "no answer": (NOTHING, answers() | {SYSTEMS: denied(SYSTEMS)}, "unknown", SYSTEMS),
    }
)
def test_a_file_system_is_held_against_the_file(
    keys: dict[str, Any], told: dict[str, Told], state: str, says: str
) -> None:
    finding = judged(lustre(**keys), told)
    assert finding.state == state
    assert says in f"{finding.subject}: {finding.evidence} {finding.fix} {finding.denied}"


def test_one_of_another_account_is_left_to_its_owner() -> None:
    told: dict[str, Told] = {"eks:DescribeCluster": Refusal("ResourceNotFoundException")}
    finding = judged(lustre(owner=OTHER), told)
    assert finding.state == "warn"
    assert f"have account {OTHER} compare them" in str(finding.fix)


def bucket(**keys: Any) -> ClusterPlan:
    claim = {"namespace": "training", "name": "corpus", "mount_path": "/corpus"}
    stated = {"name": "corpus", "existing": "corp", "read_only": True, "claim": claim}
    return planned(buckets=[stated | keys])


def encrypted(**default: str) -> dict[str, Any]:
    rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms"} | default}
    return {"ServerSideEncryptionConfiguration": {"Rules": [rule]}}


def of_bucket(
    *,
    head: Told | None = None,
    encryption: Told | None = None,
    statements: list[dict[str, Any]] | None = None,
) -> dict[str, Told]:
    document = json.dumps({"Statement": statements})
    return {
        "s3:ListBucket": head or {"BucketRegion": "us-east-1"},
        "s3:GetEncryptionConfiguration": encryption or encrypted(KMSMasterKeyID=KEY),
        "s3:GetBucketPolicy": Refusal("NoSuchBucketPolicy", status=404)
        if statements is None
        else {"Policy": document},
        "kms:DescribeKey": {"KeyMetadata": {"KeyId": "1111", "Arn": KEY}},
    }


LETS_US_IN = {
    "Effect": "Allow",
    "Principal": {"AWS": f"arn:aws:iam::{ID}:root"},
    "Action": ["s3:ListBucket", "s3:Get*"],
    "Resource": ["arn:aws:s3:::corp", "arn:aws:s3:::corp/*"],
}
DENIES = {"Sid": "No", "Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": "*"}


KEYED, FOREIGN = {"key": KEY}, {"key": KEY, "owner": OTHER}
OTHER_KEY = encrypted(KMSMasterKeyID=KEY.replace("03", "04"))


def with_policy(statement: dict[str, Any], **condition: Any) -> dict[str, Any]:
    return {"statements": [statement | ({"Condition": condition} if condition else {})]}


@for_each(
    {
        "as the file says": (KEYED, NOTHING, "pass", "in us-east-1, encrypted by"),
        "by the key's id": (
            KEYED,
            {"encryption": encrypted(KMSMasterKeyID=KEY.rpartition("/")[2])},
            *("pass", ""),
        ),
        "no such bucket": (KEYED, {"head": Refusal("404", status=404)}, "fail", "no such bucket"),
        "of another account": (
            *(KEYED, {"head": Refusal("403", status=403)}),
            *("warn", f"it is not account {ID}'s"),
        ),
        "in another Region": (
            *(KEYED, {"head": {"BucketRegion": "eu-west-1"}}),
            *("fail", "it lies in eu-west-1, the cluster in us-east-1"),
        ),
        "a key that the file lacks": (NOTHING, NOTHING, "fail", "the file has no key"),
        "another key": (KEYED, {"encryption": OTHER_KEY}, "fail", "pods may use no other"),
        "a key that it does not use": (
            *(KEYED, {"encryption": encrypted(SSEAlgorithm="AES256")}),
            *("warn", "it encrypts new objects by AES256 without a customer's key"),
        ),
        "AWS's key of another account": (
            *({"owner": OTHER}, {"encryption": encrypted(), "statements": [LETS_US_IN]}),
            *("fail", f"alias/aws/s3 of account {OTHER}, which no other account can use"),
        ),
        "a foreign bucket that lets us in": (FOREIGN, with_policy(LETS_US_IN), "pass", ""),
        "a foreign bucket without a policy": (
            *(FOREIGN, NOTHING, "fail"),
            f"its policy does not let account {ID} (s3:GetObject, s3:ListBucket)",
        ),
        "a denial for all": (KEYED, with_policy(DENIES), "fail", "statement No of its"),
        "a denial beyond an endpoint": (
            *(KEYED, with_policy(DENIES, StringNotEquals={"aws:SourceVpce": "vpce-0aaa"})),
            *("warn", "denies by aws:sourcevpce"),
        ),
        "a denial of plain HTTP": (
            *(KEYED, with_policy(DENIES, Bool={"aws:SecureTransport": "false"})),
            *("pass", ""),
        ),
    }
)
def test_a_bucket_is_held_against_the_file(
    keys: dict[str, Any], told: dict[str, Any], state: str, says: str
) -> None:
    (finding,) = found(EXISTING_BUCKETS, bucket(**keys), of_bucket(**told))
    assert finding.state == state, finding.evidence
    assert says in finding.evidence


def test_the_owner_of_a_bucket_is_told_the_statements_that_are_missing() -> None:
    (finding,) = found(EXISTING_BUCKETS, bucket(key=KEY, owner=OTHER), of_bucket())
    statements = json.loads(str(finding.fix).partition(": ")[2])
    assert [each["Action"] for each in statements] == [["s3:ListBucket"], ["s3:GetObject"]]
    assert {each["Principal"]["AWS"] for each in statements} == {f"arn:aws:iam::{ID}:root"}


def test_the_permissions_name_the_buckets_of_the_file_and_no_others() -> None:
    document = policy([EXISTING_BUCKETS], bucket(key=KEY), ID)
    statements = cast("list[dict[str, Any]]", document["Statement"])
    of_s3 = [each["Resource"] for each in statements if "s3:ListBucket" in each["Action"]]
    assert of_s3 == ["arn:aws:s3:::corp"]


@mock_aws
def test_a_bucket_and_a_file_system_of_an_account_that_keeps_its_state(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    s3: Any = cast("Any", boto3).client("s3", region_name="us-east-1")
    s3.create_bucket(Bucket="corp")
    kms: Any = cast("Any", boto3).client("kms", region_name="us-east-1")
    key: str = kms.create_key()["KeyMetadata"]["Arn"]
    default = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key}
    s3.put_bucket_encryption(
        Bucket="corp",
        ServerSideEncryptionConfiguration={
            "Rules": [{"ApplyServerSideEncryptionByDefault": default}]
        },
    )
    account = connect("us-east-1")
    plan = bucket(key=key)

    def run() -> Finding:
        context = Context(plan=plan, needs=plan_needs(plan), account=account, at=NOW)
        (finding,) = EXISTING_BUCKETS.run(context)
        return finding

    assert run().state == "pass"
    s3.put_bucket_policy(Bucket="corp", Policy=json.dumps({"Statement": [DENIES]}))
    assert run().state == "fail"
