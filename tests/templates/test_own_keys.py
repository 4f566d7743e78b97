"""Keys of a security team: each volume, file system, bucket and image takes its own, none of ours.

A volume without the key breaks the company's rule silently; a key of ours may not even be made.
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast

import pytest
import yaml

from tests.support.assembly import Assembly, synthesize
from tests.support.folders import ROOT

USES = ("volumes", "secrets", "storage", "registry", "logs")
KEYS = {
    use: f"arn:aws:kms:us-east-1:444455556666:key/11111111-2222-4333-8444-55555555550{number}"
    for number, use in enumerate(USES, 1)
}
ADDED: Mapping[str, Any] = {
    "keys": KEYS,
    "images": {"repositories": ["trainer"], "builds": {"trainer": "nvidia"}},
    "scheduling": {"rendezvous": {"backend": "etcd"}},
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    folder = tmp_path_factory.mktemp("keys")
    document = yaml.safe_load((ROOT / "clusters" / "hybrid-hyperpod.yaml").read_text())
    file = folder / "cluster.yaml"
    file.write_text(yaml.safe_dump({**document, **ADDED}))
    return synthesize(file, folder)


def properties(built: Assembly, kind: str) -> list[Mapping[str, Any]]:
    found = [body["Properties"] for _, body in built.resources(kind)]
    assert found, f"no {kind} to look at"
    return found


def test_no_stack_makes_a_key_and_every_volume_takes_that_of_volumes(built: Assembly) -> None:
    classes = [each for each in built.documents if each["kind"] == "EC2NodeClass"]
    storage_class = built.find("StorageClass", "ultrascale-gp3")
    keys = [
        disk["Ebs"]["KmsKeyId"]
        for each in properties(built, "AWS::EC2::LaunchTemplate")
        for disk in each["LaunchTemplateData"]["BlockDeviceMappings"]
    ]

    assert not [*built.resources("AWS::KMS::Key")]
    assert classes
    for each in classes:
        (disk,) = each["spec"]["blockDeviceMappings"]
        keys.append(disk["ebs"]["kmsKeyID"])
    assert {*keys, storage_class["parameters"]["kmsKeyId"]} == {KEYS["volumes"]}


def test_both_volumes_of_each_hyperpod_instance_take_the_key(built: Assembly) -> None:
    (cluster,) = properties(built, "AWS::SageMaker::Cluster")
    for group in cluster["InstanceGroups"]:
        volumes = [
            each["EbsVolumeConfig"]
            for each in group["InstanceStorageConfigs"]
            if "EbsVolumeConfig" in each
        ]

        assert {each["RootVolume"] for each in volumes} == {True, False}
        assert {each["VolumeKmsKeyId"] for each in volumes} == {KEYS["volumes"]}
        # Of the root volume SageMaker chooses the size.
        assert all("VolumeSizeInGB" not in each for each in volumes if each["RootVolume"])
        assert len(group["InstanceStorageConfigs"]) <= 4


def test_secrets_data_images_and_logs_each_take_their_own_key(built: Assembly) -> None:
    (cluster,) = properties(built, "AWS::EKS::Cluster")
    (repository,) = properties(built, "AWS::ECR::Repository")
    (topic,) = properties(built, "AWS::SNS::Topic")
    buckets = [
        body["Properties"]["BucketEncryption"]["ServerSideEncryptionConfiguration"][0]
        for stack, body in built.resources("AWS::S3::Bucket")
        if stack == "storage"
    ]
    data = {each["KmsKeyId"] for each in properties(built, "AWS::FSx::FileSystem")}
    data |= {each["ServerSideEncryptionByDefault"]["KMSMasterKeyID"] for each in buckets}
    builders = [each.get("EncryptionKey") for each in properties(built, "AWS::CodeBuild::Project")]
    groups = properties(built, "AWS::Logs::LogGroup")

    (encryption,) = cluster["EncryptionConfig"]
    assert encryption == {"Provider": {"KeyArn": KEYS["secrets"]}, "Resources": ["secrets"]}
    assert buckets
    assert data == {KEYS["storage"]}
    encryption = {"EncryptionType": "KMS", "KmsKey": KEYS["registry"]}
    assert repository["EncryptionConfiguration"] == encryption
    assert builders.count(KEYS["registry"]) == 1
    assert {each.get("KmsKeyId") for each in groups} == {KEYS["logs"]}
    assert topic["KmsMasterKeyId"] == KEYS["logs"]


def allowed(built: Assembly, layer: str) -> set[str]:
    """Return the actions on the key of volumes that roles of a stack may take."""
    return {
        action
        for stack, template in built.templates.items()
        if stack == layer
        for statement in statements(template)
        if KEYS["volumes"] in statement["Resource"]
        for action in statement["Action"]
    }


def statements(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield each statement of IAM within a template."""
    if isinstance(value, list):
        for each in cast("list[Any]", value):
            yield from statements(each)
    elif isinstance(value, dict):
        found = cast("dict[str, Any]", value)
        if {"Effect", "Action", "Resource"} <= found.keys():
            yield found
        else:
            yield from statements([*found.values()])


@pytest.mark.parametrize("layer", ["karpenter", "addons", "hyperpod-groups"])
def test_roles_that_make_volumes_may_use_the_key(built: Assembly, layer: str) -> None:
    """These alone let them in where the key's policy leaves the account to IAM."""
    actions = allowed(built, layer)

    assert {"kms:CreateGrant", "kms:DescribeKey"} <= actions
    assert layer == "hyperpod-groups" or {"kms:Decrypt", "kms:ReEncryptFrom"} <= actions
