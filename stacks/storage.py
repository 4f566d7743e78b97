"""File systems and buckets. They outlive the stack."""

from collections.abc import Mapping

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from stacks._environment import environment
from ultrascale.plan import ClusterPlan
from ultrascale_constructs.bucket import Bucket
from ultrascale_constructs.key import Key
from ultrascale_constructs.lustre import LustreFileSystem
from ultrascale_constructs.network import Network


class StorageStack(Stack):
    """Defines the FSx for Lustre file systems and the S3 buckets.

    Attributes:
        placeholders: What the placeholders in the manifests stand for.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: ClusterPlan,
        network: Network,
        cluster_security_group_id: str,
    ) -> None:
        super().__init__(scope, id, env=environment(plan))
        key = Key(self, "Key", description=f"File systems and buckets of {plan.name}").key
        values: dict[str, str] = {}
        for lustre in plan.lustre:
            (subnet_id, *_) = network.subnet_ids("private", zones=[lustre.zone])
            file_system = LustreFileSystem(
                self,
                lustre.name,
                plan=lustre,
                key=key,
                vpc=network.vpc,
                subnet_id=subnet_id,
                client_security_group_id=cluster_security_group_id,
            )
            values[lustre.file_system_id] = file_system.file_system_id
            values[lustre.dns_name] = file_system.dns_name
            values[lustre.mount_name] = file_system.mount_name
        for placeholder, value in values.items():
            self.export_value(value)
            words = placeholder.strip("${}").split("_")
            CfnOutput(
                self,
                "".join(word.capitalize() for word in words),
                value=value,
                description=f"{placeholder} in the manifests",
            )
        self.placeholders: Mapping[str, str] = values
        # A file system and a bucket may have the same name.
        buckets = Construct(self, "Buckets")
        for bucket in plan.buckets:
            Bucket(buckets, bucket.name, plan=bucket, key=key)
