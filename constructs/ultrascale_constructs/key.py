"""Customer-managed KMS keys."""

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultrascale_constructs.cdk_types import anyone, as_key


def key_of(scope: Construct, *, description: str, arn: str | None) -> kms.IKey:
    """Return the user's own key, or define one as `Key` in ``scope``.

    Args:
        scope: Parent.
        description: Description of a key of ours.
        arn: ARN of the user's own key, of which nothing is changed; None: there is none.
    """
    if arn is not None:
        return kms.Key.from_key_arn(scope, "Key", arn)
    return Key(scope, "Key", description=description).key


class Key(Construct):
    """Defines a rotated key that outlives its stack and that no ordinary administrator can disable.

    A disabled key makes the cluster unhealthy at once and, after 30 days, for ever; the data of a
    file system or repository is lost with its key. Only the account's root user may disable it or
    schedule its deletion.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/enable-kms.html

    Attributes:
        key: The key.
    """

    def __init__(self, scope: Construct, id: str, *, description: str) -> None:
        super().__init__(scope, id)
        key = kms.Key(
            self,
            # Left out of the logical id: a key that changes its id is a new key.
            "Default",
            description=description,
            enable_key_rotation=True,
            removal_policy=RemovalPolicy.RETAIN,
        )
        key.add_to_resource_policy(self._keep())
        self.key = as_key(key)

    def _keep(self) -> iam.PolicyStatement:
        root = f"arn:{Stack.of(self).partition}:iam::{Stack.of(self).account}:root"
        return iam.PolicyStatement(
            sid="KeepTheKey",
            effect=iam.Effect.DENY,
            principals=[anyone()],
            actions=["kms:DisableKey", "kms:ScheduleKeyDeletion"],
            resources=["*"],
            conditions={"StringNotEquals": {"aws:PrincipalArn": root}},
        )
