"""KMS keys: without its key, data that was retained is noise."""

from typing import Any

import pytest
from aws_cdk.assertions import Template

from tests.support.construct_stacks import make_stack, the
from ultrascale_constructs.key import Key, volume_key_permissions

KEY = "AWS::KMS::Key"


@pytest.fixture(scope="module")
def built() -> Template:
    stack = make_stack()
    Key(stack, "Key", description="File systems of research")
    return Template.from_stack(stack)


def statements(template: Template, effect: str) -> list[dict[str, Any]]:
    found = the(template, KEY)["KeyPolicy"]["Statement"]
    return [statement for statement in found if statement["Effect"] == effect]


def test_it_is_rotated_and_outlives_its_stack_and_its_replacement(built: Template) -> None:
    properties = {"Description": "File systems of research", "EnableKeyRotation": True}

    built.has_resource(
        KEY,
        {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain", "Properties": properties},
    )


def test_nobody_but_the_root_user_can_take_it_away(built: Template) -> None:
    (deny,) = statements(built, "Deny")

    assert set(deny["Action"]) == {"kms:DisableKey", "kms:ScheduleKeyDeletion"}
    assert deny["Principal"] == {"AWS": "*"}
    assert deny["Resource"] == "*"
    (operator,) = deny["Condition"]
    assert operator == "StringNotEquals"
    assert str(deny["Condition"][operator]["aws:PrincipalArn"]).endswith(":root']]}")


def test_the_account_can_still_administer_it(built: Template) -> None:
    (allow,) = statements(built, "Allow")

    assert allow["Action"] == "kms:*"
    assert ":root" in str(allow["Principal"]["AWS"])


def test_nodes_use_a_users_own_key_through_ec2_alone() -> None:
    """Otherwise whoever takes their role could decrypt whatever the key protects."""
    permissions = volume_key_permissions("us-west-2", "arn:aws:kms:us-west-2:111122223333:key/a")
    for permission in permissions:
        assert permission.conditions["StringEquals"] == {
            "kms:ViaService": "ec2.us-west-2.amazonaws.com"
        }
