"""A default key of volumes that nobody who launches may use ends each node at its launch."""

import json
from typing import Any

from tests.support.cases import for_each
from tests.support.fake_aws import ID, Told, denied
from tests.support.pools import pool_document
from tests.support.preflight_context import found, pools_plan
from ultrascale.parts.keys.preflight import VOLUME_KEY
from ultrascale.plan.model import ClusterPlan

KEY = f"arn:aws:kms:us-west-2:{ID}:key/1234"
ROLE = "aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"
AUTO_SCALING = f"arn:aws:iam::{ID}:role/{ROLE}"
CONTROLLER = f"arn:aws:iam::{ID}:role/research-karpenter-ControllerRole-0AB"
USE = ["kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:DescribeKey"]
ONLY_FOR_AWS = {"Bool": {"kms:GrantIsForAWSResource": "true"}}
ROOT_ONLY: dict[str, Any] = {
    "Effect": "Allow",
    "Principal": {"AWS": f"arn:aws:iam::{ID}:root"},
    "Action": "kms:*",
    "Resource": "*",
}
BY_EC2: dict[str, Any] = {
    "Effect": "Allow",
    "Principal": {"AWS": "*"},
    "Action": [*USE, "kms:CreateGrant"],
    "Resource": "*",
    "Condition": {
        "StringEquals": {"kms:ViaService": "ec2.us-west-2.amazonaws.com", "kms:CallerAccount": ID}
    },
}


def allow(principal: str) -> list[dict[str, Any]]:
    named = {"Effect": "Allow", "Principal": {"AWS": principal}, "Resource": "*"}
    return [
        named | {"Action": USE},
        named | {"Action": "kms:CreateGrant", "Condition": ONLY_FOR_AWS},
    ]


def answers(*statements: dict[str, Any], **changes: Any) -> dict[str, Told]:
    key = {"KeyId": "1234", "Arn": KEY, "AWSAccountId": ID, "KeyManager": "CUSTOMER"}
    return {
        "ec2:GetEbsEncryptionByDefault": {"EbsEncryptionByDefault": True},
        "ec2:GetEbsDefaultKmsKeyId": {"KmsKeyId": KEY},
        "kms:DescribeKey": {"KeyMetadata": key | {"KeyState": "Enabled"} | changes},
        "kms:GetKeyPolicy": {"Policy": json.dumps({"Statement": [ROOT_ONLY, *statements]})},
        "kms:ListGrants": {"Grants": []},
    }


def groups() -> ClusterPlan:
    return pools_plan(pool_document())


def with_karpenter() -> ClusterPlan:
    return pools_plan(pool_document(provisioner="karpenter"))


NOBODY: list[dict[str, Any]] = []
OF_ANOTHER_REGION: dict[str, Any] = BY_EC2 | {
    "Condition": {"StringEquals": {"kms:ViaService": "ec2.eu-west-1.amazonaws.com"}}
}
UNCLEAR: dict[str, Any] = BY_EC2 | {"Condition": {"StringEquals": {"aws:PrincipalOrgID": "o-1"}}}


@for_each(
    {
        "nobody but the account": (
            groups(),
            NOBODY,
            "fail",
            "AWSServiceRoleForAutoScaling may not",
        ),
        "Auto Scaling": (groups(), allow(AUTO_SCALING), "pass", ""),
        "all by EC2": (with_karpenter(), [BY_EC2], "pass", ""),
        "Auto Scaling, and not Karpenter": (
            with_karpenter(),
            allow(AUTO_SCALING),
            "fail",
            "Karpenter's controller may not",
        ),
        "both": (with_karpenter(), [*allow(AUTO_SCALING), *allow(CONTROLLER)], "pass", ""),
        "no grants": (groups(), allow(AUTO_SCALING)[:1], "fail", "kms:CreateGrant"),
        "by EC2 of another Region": (groups(), [OF_ANOTHER_REGION], "fail", "may not use the key"),
        "under a condition that cannot be judged": (
            groups(),
            [UNCLEAR],
            "warn",
            "unless a statement with other conditions",
        ),
    }
)
def test_who_launches_has_to_be_allowed_to_use_a_key_of_the_account(
    plan: ClusterPlan, statements: list[dict[str, Any]], state: str, told: str
) -> None:
    (finding,) = found(VOLUME_KEY, plan, answers(*statements))

    assert (finding.state, told in finding.evidence) == (state, True)


def test_the_key_of_aws_or_a_grant_is_as_good_as_a_statement() -> None:
    operations = [
        *("Decrypt", "ReEncryptFrom", "ReEncryptTo", "GenerateDataKeyWithoutPlaintext"),
        *("DescribeKey", "CreateGrant"),
    ]
    grant = {"GranteePrincipal": AUTO_SCALING, "Operations": operations}
    for more in (
        {"kms:ListGrants": {"Grants": [grant]}},
        {"ec2:GetEbsDefaultKmsKeyId": {"KmsKeyId": "alias/aws/ebs"}},
    ):
        (finding,) = found(VOLUME_KEY, groups(), answers() | more)
        assert finding.state == "pass"
    foreign = {"kms:GetKeyPolicy": denied("kms:GetKeyPolicy")}
    (finding,) = found(VOLUME_KEY, groups(), answers(AWSAccountId="999988887777") | foreign)
    assert finding.state == "warn"
    assert "create-grant" in (finding.fix or "")


def test_a_key_that_is_off_or_of_another_kind_fails() -> None:
    off = answers(*allow(AUTO_SCALING), KeyState="PendingDeletion", KeySpec="RSA_2048")

    (finding,) = found(VOLUME_KEY, groups(), off)

    assert finding.state == "fail"
    assert "PendingDeletion" in finding.evidence
    assert "RSA_2048" in finding.evidence
