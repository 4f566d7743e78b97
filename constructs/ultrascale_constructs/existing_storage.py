"""Existing buckets and file systems."""

from collections.abc import Sequence

from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from ultrascale.plan.model import ExistingBucketPlan, ExistingLustrePlan
from ultrascale_constructs.acknowledgment import acknowledge_wildcards
from ultrascale_constructs.cluster_context import ClusterContext


class ExistingLustreClients(Construct):
    """Opens the nodes' Lustre ports to the servers of existing file systems.

    The other direction is a rule of the servers' security group, which its owner sets.

    Source: https://docs.aws.amazon.com/fsx/latest/LustreGuide/limit-access-security-groups.html
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plans: Sequence[ExistingLustrePlan],
        cluster: ClusterContext,
    ) -> None:
        """Define the rules.

        Args:
            scope: The stack.
            id: Construct id.
            plans: The file systems.
            cluster: The cluster, to whose security group its nodes belong.
        """
        super().__init__(scope, id)
        # File systems may share a group, and a group takes the same rule only once.
        groups = {plan.security_group: plan for plan in plans}
        for group, plan in groups.items():
            for first, last in plan.port_ranges:
                ec2.CfnSecurityGroupIngress(
                    self,
                    f"{group}-{first}",
                    group_id=cluster.security_group_id,
                    description="Lustre",
                    ip_protocol="tcp",
                    from_port=first,
                    to_port=last,
                    source_security_group_id=group,
                    source_security_group_owner_id=plan.owner,
                )


class ExistingBucket(Construct):
    """Gives the policies of our roles an existing bucket's names and ARNs; defines no resource.

    The policies allow it only in the owner's account: after its deletion, somebody else could
    create a bucket of the same name.

    Sources:
        https://docs.aws.amazon.com/AmazonS3/latest/userguide/amazon-s3-policy-keys.html
        https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html#encryption-context
    """

    def __init__(self, scope: Construct, id: str, *, plan: ExistingBucketPlan) -> None:
        super().__init__(scope, id)
        stack = Stack.of(self)
        self.bucket_name = plan.bucket_name  # Its name
        self.bucket_arn = plan.arn  # Its ARN
        self.objects_arn = f"{plan.arn}/*"  # ARN of all its objects
        # ARN of the KMS key of its objects; None where S3 encrypts with its own
        self.key_arn = plan.key_arn
        # Conditions under which roles may use it, by operator and key
        self.conditions = {"StringEquals": {"s3:ResourceAccount": plan.owner or stack.account}}
        # The key may also encrypt other data.
        # Conditions under which they may use its key, by operator and key
        self.key_conditions = {
            "StringEquals": {"kms:ViaService": f"s3.{stack.region}.{stack.url_suffix}"},
            # With a bucket key, S3 names the bucket in the encryption context, otherwise the
            # object.
            "StringLike": {"kms:EncryptionContext:aws:s3:arn": [plan.arn, self.objects_arn]},
        }

    def acknowledge_objects(self, role: Construct, reason: str) -> None:
        """Accept that the permissions of ``role`` name all objects of the bucket.

        Args:
            role: The role.
            reason: Why it is accepted.
        """
        acknowledge_wildcards(role, {self.objects_arn: reason})
