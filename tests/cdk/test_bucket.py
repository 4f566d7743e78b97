"""S3 buckets: datasets and checkpoints that no deploy and no deletion takes away."""

import json

import pytest
from aws_cdk import aws_kms as kms
from aws_cdk.assertions import Match, Template

from tests.support.construct_stacks import make_stack, the
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


@pytest.mark.parametrize("kind", [BUCKET, POLICY])
def test_it_outlives_its_stack_but_no_first_attempt_that_failed(built: Template, kind: str) -> None:
    built.has_resource(
        kind, {"DeletionPolicy": "RetainExceptOnCreate", "UpdateReplacePolicy": "Retain"}
    )


def test_a_retained_bucket_is_not_in_the_way_of_the_next_cluster(built: Template) -> None:
    built.has_resource_properties(BUCKET, {"BucketName": Match.absent()})


def test_nothing_in_it_is_public(built: Template) -> None:
    assert the(built, BUCKET)["PublicAccessBlockConfiguration"] == {
        "BlockPublicAcls": True,
        "BlockPublicPolicy": True,
        "IgnorePublicAcls": True,
        "RestrictPublicBuckets": True,
    }
    built.has_resource_properties(
        BUCKET, {"OwnershipControls": {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}}
    )


def test_connections_without_tls_are_refused_to_everyone(built: Template) -> None:
    (statement,) = the(built, POLICY)["PolicyDocument"]["Statement"]

    assert (statement["Effect"], statement["Action"]) == ("Deny", "s3:*")
    assert statement["Principal"] == {"AWS": "*"}
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert "/*" in json.dumps(statement["Resource"])


def test_a_fleet_that_reads_it_does_not_call_kms_for_every_object(built: Template) -> None:
    encryption = the(built, BUCKET)["BucketEncryption"]["ServerSideEncryptionConfiguration"]

    assert encryption == [
        {
            "BucketKeyEnabled": True,
            "ServerSideEncryptionByDefault": {"KMSMasterKeyID": KEY, "SSEAlgorithm": "aws:kms"},
        }
    ]


def test_what_was_overwritten_can_be_had_back_but_is_not_paid_for_forever(built: Template) -> None:
    built.has_resource_properties(BUCKET, {"VersioningConfiguration": {"Status": "Enabled"}})
    (rule,) = the(built, BUCKET)["LifecycleConfiguration"]["Rules"]

    assert rule["Status"] == "Enabled"
    assert rule["NoncurrentVersionExpiration"] == {"NoncurrentDays": 7}
    assert rule["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 3}
    assert rule["ExpiredObjectDeleteMarker"] is True


def test_no_rule_ever_expires_an_object_that_is_there(built: Template) -> None:
    (rule,) = the(built, BUCKET)["LifecycleConfiguration"]["Rules"]

    assert not {"ExpirationInDays", "ExpirationDate", "Transitions"} & {*rule}


def test_an_output_tells_its_name(built: Template) -> None:
    (bucket,) = built.find_resources(BUCKET)

    outputs = built.to_json()["Outputs"].values()
    assert [o["Value"] for o in outputs if o["Description"] == "Bucket datasets"] == [
        {"Ref": bucket}
    ]
