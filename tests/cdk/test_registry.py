"""ECR repositories: the image a job ran with last month must still be that image."""

import json

import pytest
from aws_cdk.assertions import Match, Template

from tests.support.construct_stacks import make_stack, resources
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


def test_every_repository_bears_the_name_of_its_cluster(built: Template) -> None:
    names = {body["Properties"]["RepositoryName"] for body in resources(built, REPOSITORY)}

    assert names == {"research/bert", "research/team/board"}


def test_a_tag_that_was_pushed_never_means_another_image(built: Template) -> None:
    built.all_resources_properties(REPOSITORY, {"ImageTagMutability": "IMMUTABLE"})


def test_images_are_scanned_when_they_are_pushed(built: Template) -> None:
    built.all_resources_properties(REPOSITORY, {"ImageScanningConfiguration": {"ScanOnPush": True}})


def test_images_are_encrypted_with_one_key_of_their_own(built: Template) -> None:
    (key,) = built.find_resources("AWS::KMS::Key")

    built.all_resources_properties(
        REPOSITORY,
        {
            "EncryptionConfiguration": {
                "EncryptionType": "KMS",
                "KmsKey": {"Fn::GetAtt": [key, "Arn"]},
            }
        },
    )


def test_images_outlive_the_stack(built: Template) -> None:
    built.all_resources(
        REPOSITORY, {"DeletionPolicy": "RetainExceptOnCreate", "UpdateReplacePolicy": "Retain"}
    )


def test_a_destroy_never_empties_a_repository(built: Template) -> None:
    built.all_resources_properties(REPOSITORY, {"EmptyOnDelete": Match.absent()})


def test_only_layers_without_a_tag_ever_expire(built: Template) -> None:
    for body in resources(built, REPOSITORY):
        policy = json.loads(body["Properties"]["LifecyclePolicy"]["LifecyclePolicyText"])
        assert [rule["selection"] for rule in policy["rules"]] == [
            {
                "tagStatus": "untagged",
                "countType": "sinceImagePushed",
                "countNumber": 14,
                "countUnit": "days",
            }
        ]
