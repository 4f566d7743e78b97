"""File systems and buckets. They outlive the stack."""

from collections.abc import Mapping

from aws_cdk import Stack
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultrascale.plan.model import ClusterPlan
from ultrascale_constructs.bucket import Bucket
from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_constructs.data_repository import DataRepository, grant_to_file_systems
from ultrascale_constructs.key import key_of
from ultrascale_constructs.lustre import LustreFileSystem
from ultrascale_constructs.mountpoint import MountpointAccess
from ultrascale_constructs.network import Network
from ultrascale_constructs.output_access import OutputAccess
from ultrascale_stacks.deployment import stack_properties
from ultrascale_stacks.placeholders import export


class StorageStack(Stack):
    """Defines the FSx for Lustre file systems, the S3 buckets, and the links between them.

    Attributes:
        placeholders: Values of placeholders in the manifests.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: ClusterPlan,
        network: Network,
        cluster: ClusterContext,
    ) -> None:
        super().__init__(scope, id, **stack_properties(plan))
        key = key_of(
            self,
            description=f"File systems and buckets of {plan.name}",
            arn=plan.keys.storage,
        )
        values: dict[str, str] = {}
        file_systems: dict[str, LustreFileSystem] = {}
        for lustre in plan.lustre:
            (subnet_id, *_) = network.subnet_ids("private", zones=[lustre.zone])
            file_system = LustreFileSystem(
                self,
                lustre.name,
                plan=lustre,
                key=key,
                cluster=cluster,
                subnet_id=subnet_id,
            )
            file_systems[lustre.name] = file_system
            values[lustre.file_system_id] = file_system.file_system_id
            values[lustre.dns_name] = file_system.dns_name
            values[lustre.mount_name] = file_system.mount_name
        # A file system and a bucket may have the same name.
        folder = Construct(self, "Buckets")
        buckets = {
            bucket.name: Bucket(folder, bucket.name, plan=bucket, key=key)
            for bucket in plan.buckets
        }
        self._link(plan, file_systems, buckets, key)
        self._mount(plan, buckets, key)
        if plan.output_access is not None:
            OutputAccess(
                self,
                "Output",
                plan=plan.output_access,
                bucket=buckets[plan.output_access.bucket],
                key=key,
                cluster_name=plan.name,
            )
        values |= {bucket.bucket_name: buckets[bucket.name].bucket_name for bucket in plan.buckets}
        self.placeholders: Mapping[str, str] = values
        export(self, values)

    def _link(
        self,
        plan: ClusterPlan,
        file_systems: Mapping[str, LustreFileSystem],
        buckets: Mapping[str, Bucket],
        key: kms.IKey,
    ) -> None:
        """Link file systems to the buckets whose objects they show."""
        folder = Construct(self, "DataRepositories")
        links = {
            lustre.name: lustre.repository
            for lustre in plan.lustre
            if lustre.repository is not None
        }
        for name, link in links.items():
            DataRepository(
                folder,
                name,
                plan=link,
                file_system_id=file_systems[name].file_system_id,
                bucket=buckets[link.bucket],
            )
        if links:
            grant_to_file_systems(key)

    def _mount(self, plan: ClusterPlan, buckets: Mapping[str, Bucket], key: kms.IKey) -> None:
        """Let Mountpoint reach the buckets that pods mount."""
        mounted = {bucket.name: bucket for bucket in plan.buckets if bucket.access != "none"}
        if mounted:
            MountpointAccess(
                self,
                "Mountpoint",
                buckets={name: buckets[name] for name in mounted},
                plans=mounted,
                key=key,
                cluster_name=plan.name,
            )
