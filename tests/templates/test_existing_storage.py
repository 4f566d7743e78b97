"""The storage stack of file systems and buckets that were there already: rights, and no storage."""

from collections import Counter
from typing import Any

import pytest
from aws_cdk.assertions import Template

from tests.support.changes import between
from tests.support.construct_stacks import cluster_of
from tests.support.pools import make_cluster
from ultrascale.plan import plan_cluster
from ultrascale_stacks.storage import StorageStack

OWNER = "444455556666"
KEY = f"arn:aws:kms:us-west-2:{OWNER}:key/11111111-2222-4333-8444-555555555503"
GROUP = "sg-0a1b2c3d4e5f60001"
MADE = {
    "name": "scratch",
    "zone": "us-west-2b",
    "capacity_gib": 1200,
    "throughput_mbps_per_tib": 250,
}


def lustre(name: str, last: str, **existing: Any) -> dict[str, Any]:
    ids = {"id": f"fs-0a1b2c3d4e5f6000{last}", "mount_name": "abcdefgh", "security_group": GROUP}
    return {"name": name, "zone": "us-west-2b", "existing": ids | existing}


def bucket(name: str, existing: str, **changes: Any) -> dict[str, Any]:
    claim = {"namespace": "training", "name": name, "mount_path": f"/{name}"}
    return {"name": name, "existing": existing, "claim": claim} | changes


def synthesize(**storage: Any) -> Template:
    plan = plan_cluster(make_cluster(storage=storage))
    return Template.from_stack(StorageStack(cluster_of(plan), "storage"))


@pytest.fixture(scope="module")
def foreign() -> Template:
    return synthesize(
        lustre=[lustre("a", "1", owner=OWNER), lustre("b", "2", owner=OWNER)],
        buckets=[
            bucket("corpus", "corp-datasets", key=KEY, owner=OWNER, read_only=True),
            bucket("checkpoints", "corp-checkpoints", claim=None),
        ],
    )


def statements(template: Template, beginning: str) -> list[dict[str, Any]]:
    roles = template.find_resources("AWS::IAM::Role")
    (role,) = (body for key, body in roles.items() if key.startswith(beginning))
    (policy,) = role["Properties"]["Policies"]
    return policy["PolicyDocument"]["Statement"]


def test_nothing_is_made_but_rights_of_pods_and_rules_of_our_own_security_group(
    foreign: Template,
) -> None:
    types = Counter(body["Type"] for body in foreign.to_json()["Resources"].values())
    rules = [
        body["Properties"]
        for body in foreign.find_resources("AWS::EC2::SecurityGroupIngress").values()
    ]

    # Two file systems of one group: a second rule of the same words would fail.
    assert types == {
        "AWS::EC2::SecurityGroupIngress": 2,
        "AWS::IAM::Role": 2,
        "AWS::EKS::PodIdentityAssociation": 2,
    }
    # Our nodes hear the servers on Lustre's ports.
    assert sorted((each["FromPort"], each["ToPort"]) for each in rules) == [
        (988, 988),
        (1018, 1023),
    ]
    assert {each["SourceSecurityGroupId"] for each in rules} == {GROUP}
    assert {each["SourceSecurityGroupOwnerId"] for each in rules} == {OWNER}
    assert GROUP not in {str(each["GroupId"]) for each in rules}


def test_a_mount_reads_one_bucket_of_one_account_and_its_key_for_no_other_data(
    foreign: Template,
) -> None:
    listed, read, key = statements(foreign, "Mountpoint")
    arn = "arn:aws:s3:::corp-datasets"
    of_owner = {"StringEquals": {"s3:ResourceAccount": OWNER}}

    assert (listed["Action"], listed["Resource"]) == ("s3:ListBucket", arn)
    assert (read["Action"], read["Resource"]) == ("s3:GetObject", f"{arn}/*")
    assert listed["Condition"] == read["Condition"] == of_owner
    assert (key["Action"], key["Resource"]) == ("kms:Decrypt", KEY)
    context = key["Condition"]["StringLike"]["kms:EncryptionContext:aws:s3:arn"]
    assert context == [arn, f"{arn}/*"]
    assert "kms:ViaService" in key["Condition"]["StringEquals"]


def test_jobs_write_checkpoints_to_the_bucket_of_the_file_and_use_no_key(foreign: Template) -> None:
    listed, objects = statements(foreign, "Output")
    account = {"StringEquals": {"s3:ResourceAccount": {"Ref": "AWS::AccountId"}}}

    assert listed["Resource"] == "arn:aws:s3:::corp-checkpoints"
    assert "s3:PutObject" in objects["Action"]
    assert listed["Condition"] == objects["Condition"] == account


@pytest.mark.parametrize(("role", "changes"), [("Output", {"claim": None}), ("Mountpoint", {})])
def test_no_checkpoint_in_a_bucket_of_a_key_is_lost_or_unreadable_for_want_of_a_right(
    role: str, changes: dict[str, Any]
) -> None:
    """Each step of a save in parts, its resumption and its deletion needs a right of its own."""
    there = bucket("checkpoints", "corp-checkpoints", key=KEY, owner=OWNER, **changes)
    template = synthesize(buckets=[there])
    rights: dict[str, set[str]] = {}
    for statement in statements(template, role):
        actions = statement["Action"]
        own = rights.setdefault(statement["Resource"], set())
        own |= {actions} if isinstance(actions, str) else {*actions}

    assert rights == {
        "arn:aws:s3:::corp-checkpoints": {"s3:ListBucket"},
        "arn:aws:s3:::corp-checkpoints/*": {
            "s3:GetObject",
            "s3:PutObject",
            "s3:DeleteObject",
            "s3:AbortMultipartUpload",
        },
        KEY: {"kms:Decrypt", "kms:GenerateDataKey"},
    }


def test_beside_what_is_made_each_has_its_own_key() -> None:
    template = synthesize(
        lustre=[MADE | {"s3": {"bucket": "corpus", "export": ["new"]}}],
        buckets=[
            bucket("corpus", "corp-datasets", key=KEY),
            {"name": "results", "claim": bucket("results", "")["claim"]},
        ],
    )
    keys = [
        statement["Resource"]
        for statement in statements(template, "Mountpoint")
        if "kms" in str(statement["Action"])
    ]
    (ours,) = template.find_resources("AWS::KMS::Key")
    made = {"Fn::GetAtt": [ours, "Arn"]}

    assert keys == [made, KEY]
    (link,) = template.find_resources("AWS::FSx::DataRepositoryAssociation").values()
    assert link["Properties"]["DataRepositoryPath"] == "s3://corp-datasets"
    # FSx's role for the link needs a foreign key, and none of ours.
    key_policy = template.to_json()["Resources"][ours]["Properties"]["KeyPolicy"]
    assert "ObjectsOfLinkedFileSystems" not in str(key_policy)


def test_a_file_system_that_becomes_an_existing_one_stays_and_cuts_nobody_off_unasked() -> None:
    system = {key: MADE[key] for key in ("name", "zone")}
    ids = {"id": "fs-0a1b2c3d4e5f60001", "mount_name": "abcdefgh", "security_group": GROUP}
    before = synthesize(lustre=[MADE]).to_json()["Resources"]
    after = synthesize(lustre=[system | {"existing": ids}]).to_json()["Resources"]

    changes = between(before, after)

    kept = {change.type for change in changes.resources if change.action == "kept"}
    refused = {change.type for change in changes.resources if change.protected}
    assert {"AWS::FSx::FileSystem", "AWS::EC2::SecurityGroup", "AWS::KMS::Key"} <= kept
    assert refused == {"AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress"}
    assert not changes.is_safe
