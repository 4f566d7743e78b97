"""S3 buckets: datasets and checkpoints that no deploy and no deletion takes away."""

import json

import pytest
from aws_cdk import aws_kms as kms
from aws_cdk.assertions import Template

from tests.support.construct_stacks import flat, make_stack, the
from ultrascale.plan.model import BucketPlan
from ultrascale_constructs.bucket import Bucket

BUCKET = "AWS::S3::Bucket"
POLICY = "AWS::S3::BucketPolicy"
KEY = "arn:aws:kms:us-west-2:111122223333:key/data"
PLAN = BucketPlan(
    name="datasets",
    old_version_days=7,
    unfinished_upload_days=3,
    access="none",
    bucket_name="${BUCKET_DATASETS}",
)


@pytest.fixture(scope="module")
def built() -> Template:
    stack = make_stack()
    Bucket(stack, "datasets", plan=PLAN, key=kms.Key.from_key_arn(stack, "Key", KEY))
    return Template.from_stack(stack)


def test_it_outlives_its_stack_but_no_first_attempt_that_failed(built: Template) -> None:
    (bucket,) = built.find_resources(BUCKET)
    outputs = built.to_json()["Outputs"].values()
    policies = {"DeletionPolicy": "RetainExceptOnCreate", "UpdateReplacePolicy": "Retain"}

    for kind in (BUCKET, POLICY):
        built.has_resource(kind, policies)
    # An output tells its name.
    told = [each["Value"] for each in outputs if each["Description"] == "Bucket datasets"]
    assert told == [{"Ref": bucket}]


def test_it_is_private_encrypted_and_never_loses_an_object_that_is_there(built: Template) -> None:
    encryption = "BucketEncryption.ServerSideEncryptionConfiguration.0"
    rule = "LifecycleConfiguration.Rules.0"

    # Without a name: a retained bucket is not in the way of the next cluster's.
    assert flat(the(built, BUCKET)) == {
        # Else a fleet that reads it calls KMS for every object.
        f"{encryption}.BucketKeyEnabled": True,
        f"{encryption}.ServerSideEncryptionByDefault.KMSMasterKeyID": KEY,
        f"{encryption}.ServerSideEncryptionByDefault.SSEAlgorithm": "aws:kms",
        # Old versions can be had back, and are not paid for forever.
        "VersioningConfiguration.Status": "Enabled",
        f"{rule}.AbortIncompleteMultipartUpload.DaysAfterInitiation": 3,
        f"{rule}.ExpiredObjectDeleteMarker": True,
        f"{rule}.Id": "leftovers",
        f"{rule}.NoncurrentVersionExpiration.NoncurrentDays": 7,
        f"{rule}.Status": "Enabled",
        "OwnershipControls.Rules.0.ObjectOwnership": "BucketOwnerEnforced",
        "PublicAccessBlockConfiguration.BlockPublicAcls": True,
        "PublicAccessBlockConfiguration.BlockPublicPolicy": True,
        "PublicAccessBlockConfiguration.IgnorePublicAcls": True,
        "PublicAccessBlockConfiguration.RestrictPublicBuckets": True,
    }


def test_connections_without_tls_are_refused_to_everyone(built: Template) -> None:
    (statement,) = the(built, POLICY)["PolicyDocument"]["Statement"]

    assert (statement["Effect"], statement["Action"]) == ("Deny", "s3:*")
    assert statement["Principal"] == {"AWS": "*"}
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert "/*" in json.dumps(statement["Resource"])
