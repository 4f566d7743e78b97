"""Customer-managed KMS keys, and rights on them for volumes of nodes."""

from collections.abc import Mapping

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultrascale_constructs.cdk_types import anyone, as_key
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
    """Return the permissions of a role to make volumes with a user's own key.

    The key's policy must delegate to the account's IAM, or allow the role as well.

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
    """Let a role make volumes with a user's own key.

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


def key_of(scope: Construct, *, description: str, arn: str | None) -> kms.IKey:
    """Return the user's own key, or define a `Key` in ``scope``.

    Args:
        scope: Parent.
        description: Description of a key of ours.
        arn: ARN of the user's own key, which stays unchanged; None defines a key.
    """
    if arn is not None:
        return kms.Key.from_key_arn(scope, "Key", arn)
    return Key(scope, "Key", description=description).key


class Key(Construct):
    """Defines a rotated key that outlives its stack; no ordinary administrator can disable it.

    A disabled key makes the cluster unhealthy at once, and forever after 30 days; the data of a
    file system or repository is lost with its key. Only the account's root user may disable it or
    schedule its deletion.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/enable-kms.html
    """

    def __init__(self, scope: Construct, id: str, *, description: str) -> None:
        super().__init__(scope, id)
        key = kms.Key(
            self,
            # Not part of the logical id: with another id the key would be a new key.
            "Default",
            description=description,
            enable_key_rotation=True,
            removal_policy=RemovalPolicy.RETAIN,
        )
        key.add_to_resource_policy(self._deny_statement())
        self.key = as_key(key)  # The key

    def _deny_statement(self) -> iam.PolicyStatement:
        root = f"arn:{Stack.of(self).partition}:iam::{Stack.of(self).account}:root"
        return iam.PolicyStatement(
            sid="KeepTheKey",
            effect=iam.Effect.DENY,
            principals=[anyone()],
            actions=["kms:DisableKey", "kms:ScheduleKeyDeletion"],
            resources=["*"],
            conditions={"StringNotEquals": {"aws:PrincipalArn": root}},
        )
