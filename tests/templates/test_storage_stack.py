"""The storage stack: file systems alone, buckets alone, both."""

import json
from typing import Any

import pytest
from aws_cdk.assertions import Template

from tests.support.construct_stacks import cluster_of, the
from tests.support.pools import make_cluster
from ultrascale.plan import plan_cluster
from ultrascale_stacks.storage import StorageStack

LUSTRE = {
    "name": "training",
    "zone": "us-west-2b",
    "capacity_gib": 1200,
    "throughput_mbps_per_tib": 250,
}


def synthesize(**storage: Any) -> Template:
    plan = plan_cluster(make_cluster(storage=storage))
    return Template.from_stack(StorageStack(cluster_of(plan), "storage"))


S3 = {"bucket": "datasets", "prefix": "sets", "path": "/sets"}
EVENTS = {"import": ["new", "deleted"], "export": ["changed"]}
LINK = "AWS::FSx::DataRepositoryAssociation"


def ids(template: Template) -> dict[str, str]:
    """Return the type of each resource by its logical id."""
    return {key: body["Type"] for key, body in template.to_json()["Resources"].items()}


@pytest.fixture(scope="module")
def lustre_alone() -> Template:
    return synthesize(lustre=[LUSTRE])


@pytest.fixture(scope="module")
def both() -> Template:
    return synthesize(lustre=[LUSTRE], buckets=["datasets", "training"])


@pytest.fixture(scope="module")
def linked() -> Template:
    return synthesize(
        # Not in the zone of the pool, which therefore reads the datasets from S3.
        lustre=[LUSTRE | {"zone": "us-west-2a", "s3": S3 | EVENTS}],
        buckets=["datasets", "checkpoints"],
        default_claims=True,
    )


def key_statements(template: Template) -> list[dict[str, Any]]:
    return the(template, "AWS::KMS::Key")["KeyPolicy"]["Statement"]


def mountpoint_statements(template: Template) -> list[dict[str, Any]]:
    roles = template.find_resources("AWS::IAM::Role")
    [role] = [body for key, body in roles.items() if key.startswith("Mountpoint")]
    (policy,) = role["Properties"]["Policies"]
    return policy["PolicyDocument"]["Statement"]


def buckets(template: Template) -> dict[str, str]:
    """Return the cluster file's name of each bucket by its logical id."""
    return {
        output["Value"]["Ref"]: output["Description"].removeprefix("Bucket ")
        for output in template.to_json()["Outputs"].values()
        if output.get("Description", "").startswith("Bucket ")
    }


def test_a_bucket_moves_nothing_of_the_file_systems(lustre_alone: Template, both: Template) -> None:
    made = ids(lustre_alone)

    assert made.items() <= ids(both).items()
    assert "AWS::S3::Bucket" not in made.values()
    # Another id is another file system: an empty one.
    assert made["Key961B73FD"] == "AWS::KMS::Key"
    assert made["training1CA5CB2F"] == "AWS::FSx::FileSystem"


def test_a_cluster_of_buckets_has_no_file_system_and_pods_no_rights_without_checkpoints() -> None:
    kinds = [*ids(synthesize(buckets=["datasets", "results"])).values()]

    assert kinds.count("AWS::S3::Bucket") == 2
    assert not {"AWS::FSx::FileSystem", "AWS::EC2::SecurityGroup"} & {*kinds}
    assert "AWS::EKS::PodIdentityAssociation" not in kinds


def test_all_data_is_encrypted_with_one_key(both: Template) -> None:
    (key,) = both.find_resources("AWS::KMS::Key")
    reference = {"Fn::GetAtt": [key, "Arn"]}

    both.all_resources_properties("AWS::FSx::FileSystem", {"KmsKeyId": reference})
    default = {"ServerSideEncryptionByDefault": {"KMSMasterKeyID": reference}}
    both.all_resources_properties(
        "AWS::S3::Bucket", {"BucketEncryption": {"ServerSideEncryptionConfiguration": [default]}}
    )


class TestLink:
    """A file system that shows the objects of a bucket."""

    def test_it_joins_the_prefix_and_the_directory_both_ways_from_the_start(
        self, linked: Template
    ) -> None:
        (body,) = linked.find_resources(LINK).values()
        (bucket,) = (key for key, name in buckets(linked).items() if name == "datasets")
        link = body["Properties"]

        assert link["S3"] == {
            "AutoImportPolicy": {"Events": ["NEW", "DELETED"]},
            "AutoExportPolicy": {"Events": ["CHANGED"]},
        }
        place = {"Fn::Join": ["", ["s3://", {"Ref": bucket}, "/sets/"]]}
        assert (link["DataRepositoryPath"], link["FileSystemPath"]) == (place, "/sets")
        # Objects that are there already are files from the start.
        assert link["BatchImportMetaDataOnCreate"] is True
        # A link that leaves the file is cut and deletes no data.
        assert "DeletionPolicy" not in body
        linked.has_resource("AWS::FSx::FileSystem", {"DeletionPolicy": "RetainExceptOnCreate"})
        linked.all_resources("AWS::S3::Bucket", {"DeletionPolicy": "RetainExceptOnCreate"})
        # FSx finds the bucket's policy when it tries its access.
        (policy,) = (
            key
            for key, found in linked.find_resources("AWS::S3::BucketPolicy").items()
            if found["Properties"]["Bucket"] == {"Ref": bucket}
        )
        assert policy in body["DependsOn"]

    def test_fsx_may_use_the_key_through_s3_and_in_no_other_way(self, linked: Template) -> None:
        (statement,) = [s for s in key_statements(linked) if "FileSystems" in s.get("Sid", "")]

        assert statement["Effect"] == "Allow"
        via = json.dumps(statement["Condition"]["StringEquals"]["kms:ViaService"])
        role = json.dumps(statement["Condition"]["ArnLike"]["aws:PrincipalArn"])
        assert "s3.us-west-2." in via
        assert "AWSServiceRoleForFSxS3Access_fs-*" in role
        assert "kms:CallerAccount" in statement["Condition"]["StringEquals"]

    def test_a_linked_file_system_asks_for_no_backups_which_fsx_would_refuse(
        self, linked: Template, both: Template
    ) -> None:
        days = [
            the(each, "AWS::FSx::FileSystem")["LustreConfiguration"]["AutomaticBackupRetentionDays"]
            for each in (linked, both)
        ]

        assert days[0] == 0 < days[1]
        # Without a link nobody else gets the key.
        both.resource_count_is(LINK, 0)
        assert len(key_statements(both)) == 2


def test_a_bucket_keeps_its_export_when_its_last_mount_leaves_the_file(both: Template) -> None:
    # A Spot pool that gives up a zone ends a mount, and CloudFormation would refuse the deploy.
    template = both.to_json()
    values = [each["Value"] for each in template["Outputs"].values() if "Export" in each]

    assert both.find_resources("AWS::EKS::PodIdentityAssociation") == {}
    assert [key for key in buckets(both) if {"Ref": key} not in values] == []
    assert len(buckets(both)) == 2


class TestMountpoint:
    """Permissions of pods that mount a bucket: on this bucket only."""

    def test_reading_datasets_gives_no_right_to_change_them(self, linked: Template) -> None:
        names = buckets(linked)
        reached: dict[str, set[str]] = {name: set() for name in names.values()}
        for statement in mountpoint_statements(linked):
            actions = statement["Action"]
            for key, name in names.items():
                if key in json.dumps(statement["Resource"]):
                    reached[name] |= {actions} if isinstance(actions, str) else {*actions}

        assert reached["datasets"] == {"s3:ListBucket", "s3:GetObject"}
        assert reached["checkpoints"] == {
            "s3:ListBucket",
            "s3:GetObject",
            "s3:PutObject",
            "s3:AbortMultipartUpload",
            "s3:DeleteObject",
        }

    def test_only_the_drivers_pods_take_the_role(self, linked: Template, both: Template) -> None:
        accounts = linked.find_resources("AWS::EKS::PodIdentityAssociation").values()
        found = [each["Properties"] for each in accounts]

        assert {(each["Namespace"], each["ServiceAccount"]) for each in found} == {
            ("kube-system", "s3-csi-driver-sa"),
            ("training", "training-output"),
        }
        # Buckets that nothing mounts are in nobody's reach.
        both.resource_count_is("AWS::EKS::PodIdentityAssociation", 0)
        both.resource_count_is("AWS::IAM::Role", 0)

    def test_the_manifests_learn_the_names_that_s3_makes_up(self, linked: Template) -> None:
        outputs = linked.to_json()["Outputs"].values()
        told = {each.get("Description", ""): each["Value"] for each in outputs}

        for key, name in buckets(linked).items():
            assert told[f"${{BUCKET_{name.upper()}}} in the manifests"] == {"Ref": key}


def test_training_pods_alone_may_write_to_the_bucket_of_checkpoints() -> None:
    template = synthesize(buckets=["datasets", "checkpoints"])
    association = the(template, "AWS::EKS::PodIdentityAssociation")
    policies = json.dumps(the(template, "AWS::IAM::Role")["Policies"])
    [checkpoints] = [
        key
        for key, kind in ids(template).items()
        if kind == "AWS::S3::Bucket" and "checkpoints" in key
    ]

    assert (association["Namespace"], association["ServiceAccount"]) == (
        "training",
        "training-output",
    )
    assert f'"{checkpoints}"' in policies
    assert "datasets" not in policies
    # With the same key the file systems are encrypted.
    assert "kms:ViaService" in policies
    assert {"s3:PutObject", "s3:DeleteObject", "kms:GenerateDataKey"} <= {
        word for word in policies.split('"') if ":" in word
    }
