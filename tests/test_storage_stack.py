"""The storage stack: file systems alone, buckets alone, both."""

from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Template

from stacks.network import NetworkStack
from stacks.storage import StorageStack
from tests.assembly import CONTEXT
from tests.pools import make_cluster
from ultrascale.plan import plan_cluster

LUSTRE = {
    "name": "training",
    "zone": "us-west-2b",
    "capacity_gib": 1200,
    "throughput_mbps_per_tib": 250,
}


def synthesize(**storage: Any) -> Template:
    plan = plan_cluster(make_cluster(storage=storage))
    app = cdk.App(context=dict(CONTEXT), builtin_cloud_formation_validation=False)
    network = NetworkStack(app, "network", plan=plan).network
    stack = StorageStack(
        app, "storage", plan=plan, network=network, cluster_security_group_id="sg-1"
    )
    return Template.from_stack(stack)


def ids(template: Template) -> dict[str, str]:
    """Return the type of each resource by its logical id."""
    return {key: body["Type"] for key, body in template.to_json()["Resources"].items()}


@pytest.fixture(scope="module")
def lustre_alone() -> Template:
    return synthesize(lustre=[LUSTRE])


@pytest.fixture(scope="module")
def both() -> Template:
    return synthesize(lustre=[LUSTRE], buckets=["datasets", "training"])


def test_a_cluster_of_buckets_has_no_file_system() -> None:
    template = synthesize(buckets=["datasets", "checkpoints"])

    template.resource_count_is("AWS::S3::Bucket", 2)
    template.resource_count_is("AWS::FSx::FileSystem", 0)
    template.resource_count_is("AWS::EC2::SecurityGroup", 0)


def test_a_cluster_of_file_systems_has_no_bucket(lustre_alone: Template) -> None:
    lustre_alone.resource_count_is("AWS::FSx::FileSystem", 1)
    lustre_alone.resource_count_is("AWS::S3::Bucket", 0)


def test_all_data_is_encrypted_with_one_key(both: Template) -> None:
    (key,) = both.find_resources("AWS::KMS::Key")
    reference = {"Fn::GetAtt": [key, "Arn"]}

    both.all_resources_properties("AWS::FSx::FileSystem", {"KmsKeyId": reference})
    default = {"ServerSideEncryptionByDefault": {"KMSMasterKeyID": reference}}
    both.all_resources_properties(
        "AWS::S3::Bucket", {"BucketEncryption": {"ServerSideEncryptionConfiguration": [default]}}
    )


def test_a_bucket_moves_nothing_of_the_file_systems(lustre_alone: Template, both: Template) -> None:
    before, after = ids(lustre_alone), ids(both)

    assert before.items() <= after.items()


def test_a_file_system_and_its_key_have_the_ids_they_were_made_with(
    lustre_alone: Template,
) -> None:
    # Another id is another file system: an empty one.
    made = ids(lustre_alone)

    assert made["Key961B73FD"] == "AWS::KMS::Key"
    assert made["training1CA5CB2F"] == "AWS::FSx::FileSystem"
