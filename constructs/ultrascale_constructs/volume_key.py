"""Permissions to use the user's own key of EBS volumes."""

from collections.abc import Mapping

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from ultrascale_constructs.pod_identity import Permission

# Source: https://github.com/kubernetes-sigs/aws-ebs-csi-driver/blob/master/docs/example-iam-policy.json
_USE = (
    "kms:Decrypt",
    "kms:DescribeKey",
    "kms:Encrypt",
    "kms:GenerateDataKey",
    "kms:GenerateDataKeyWithoutPlaintext",
    "kms:ReEncryptFrom",
    "kms:ReEncryptTo",
)
_GRANT = ("kms:CreateGrant", "kms:ListGrants", "kms:RevokeGrant")
_FOR_AWS: Mapping[str, object] = {"kms:GrantIsForAWSResource": "true"}


def volume_key_permissions(region: str, key_arn: str) -> tuple[Permission, ...]:
    """Return what a role needs that makes volumes with a key of the user's own.

    The key's policy has to leave the account to IAM, or to let the role in as well.

    Args:
        region: AWS Region of the key.
        key_arn: ARN of the key.
    """
    by_ec2 = {"kms:ViaService": f"ec2.{region}.amazonaws.com"}
    return (
        Permission(actions=_USE, resources=[key_arn], conditions={"StringEquals": by_ec2}),
        Permission(
            actions=_GRANT,
            resources=[key_arn],
            conditions={"StringEquals": by_ec2, "Bool": _FOR_AWS},
        ),
    )


def allow_volume_key(scope: Construct, role: iam.IRole, key_arn: str) -> iam.Policy:
    """Let a role make volumes with a key of the user's own.

    Args:
        scope: Parent of the policy.
        role: The role.
        key_arn: ARN of the key.
    """
    return iam.Policy(
        scope,
        "VolumeKey",
        roles=[role],
        statements=[
            iam.PolicyStatement(
                actions=list(each.actions),
                resources=list(each.resources),
                conditions={operator: dict(keys) for operator, keys in each.conditions.items()},
            )
            for each in volume_key_permissions(Stack.of(scope).region, key_arn)
        ],
    )
