"""ECR repositories: the image a job ran with last month must still be that image."""

import json

import pytest
from aws_cdk.assertions import Template

from tests.support.construct_stacks import flat, make_stack, resources
from ultrascale_constructs.images import Registry

REPOSITORY = "AWS::ECR::Repository"


@pytest.fixture(scope="module")
def built() -> Template:
    stack = make_stack()
    Registry(
        stack,
        "Registry",
        cluster_name="research",
        repositories=("bert", "team/board"),
        untagged_image_retention_days=14,
        key_arn=None,
    )
    return Template.from_stack(stack)


def test_images_stay_what_they_were_and_outlive_the_stack(built: Template) -> None:
    names = {body["Properties"]["RepositoryName"] for body in resources(built, REPOSITORY)}
    (key,) = built.find_resources("AWS::KMS::Key")

    assert names == {"research/bert", "research/team/board"}
    for body in resources(built, REPOSITORY):
        policies = (body["DeletionPolicy"], body["UpdateReplacePolicy"])
        assert policies == ("RetainExceptOnCreate", "Retain")
        properties = body["Properties"]
        # A destroy never empties a repository, and only layers without a tag ever expire.
        assert "EmptyOnDelete" not in properties
        lifecycle = json.loads(properties.pop("LifecyclePolicy")["LifecyclePolicyText"])
        assert [rule["selection"] for rule in lifecycle["rules"]] == [
            {"tagStatus": "untagged", "countType": "sinceImagePushed"}
            | {"countNumber": 14, "countUnit": "days"}
        ]
        assert flat(properties) == {
            "RepositoryName": properties["RepositoryName"],
            # A tag that was pushed never means another image.
            "ImageTagMutability": "IMMUTABLE",
            "ImageScanningConfiguration.ScanOnPush": True,
            "EncryptionConfiguration.EncryptionType": "KMS",
            "EncryptionConfiguration.KmsKey": {"Fn::GetAtt": [key, "Arn"]},
        }
