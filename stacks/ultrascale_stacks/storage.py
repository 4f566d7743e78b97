"""File systems and buckets, which outlive their stack."""

from collections.abc import Mapping

from aws_cdk import aws_kms as kms
from constructs import Construct

from ultrascale.plan.model import StoragePlan
from ultrascale.plan.model.storage import Access
from ultrascale.plan.stacks import StackName
from ultrascale_constructs.bucket import Bucket, MountpointAccess, OutputAccess
from ultrascale_constructs.existing_storage import ExistingBucket, ExistingLustreClients
from ultrascale_constructs.key import key_of
from ultrascale_constructs.lustre import DataRepository, LustreFileSystem, grant_to_file_systems
from ultrascale_stacks.cluster import ClusterStacks, LayerStack
from ultrascale_stacks.platform import export


class StorageStack(LayerStack):
    """Stack of the FSx for Lustre file systems, the S3 buckets, and the links between them."""

    def __init__(self, cluster: ClusterStacks, name: StackName) -> None:
        super().__init__(cluster, name)
        plan, storage = cluster.plan, cluster.plan.storage
        values: dict[str, str] = {}
        file_systems: dict[str, LustreFileSystem] = {}
        # A file system and a bucket may have the same name.
        buckets: dict[str, Bucket | ExistingBucket] = {}
        key: kms.IKey | None = None
        if storage.lustre or storage.buckets:
            key = key_of(
                self,
                description=f"File systems and buckets of {plan.name}",
                arn=plan.key("storage"),
            )
            for lustre in storage.lustre:
                (subnet_id, *_) = cluster.network.subnet_ids("private", zones=[lustre.zone])
                file_system = LustreFileSystem(
                    self,
                    lustre.name,
                    plan=lustre,
                    key=key,
                    cluster=cluster.context,
                    subnet_id=subnet_id,
                )
                file_systems[lustre.name] = file_system
                values[lustre.file_system_id] = file_system.file_system_id
                values[lustre.dns_name] = file_system.dns_name
                values[lustre.mount_name] = file_system.mount_name
            folder = Construct(self, "Buckets")
            for bucket in storage.buckets:
                made = Bucket(folder, bucket.name, plan=bucket, key=key)
                buckets[bucket.name] = made
                values[bucket.bucket_name] = made.bucket_name
        if storage.existing_lustre:
            ExistingLustreClients(
                self, "ExistingLustre", plans=storage.existing_lustre, cluster=cluster.context
            )
        there = Construct(self, "ExistingBuckets")
        for bucket in storage.existing_buckets:
            buckets[bucket.name] = ExistingBucket(there, bucket.name, plan=bucket)
        self._link_buckets(storage, file_systems, buckets, key)
        self._mount(storage, buckets, cluster_name=plan.name)
        if storage.output_access is not None:
            OutputAccess(
                self,
                "Output",
                plan=storage.output_access,
                bucket=buckets[storage.output_access.bucket],
                cluster_name=plan.name,
            )
        self.placeholders = values
        export(self, values)

    def _link_buckets(
        self,
        storage: StoragePlan,
        file_systems: Mapping[str, LustreFileSystem],
        buckets: Mapping[str, Bucket | ExistingBucket],
        key: kms.IKey | None,
    ) -> None:
        """Link file systems to the buckets whose objects they show as files."""
        folder = Construct(self, "DataRepositories")
        links = {
            lustre.name: lustre.repository
            for lustre in storage.lustre
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
        made = {bucket.name for bucket in storage.buckets}
        if key is not None and any(link.bucket in made for link in links.values()):
            grant_to_file_systems(key)

    def _mount(
        self,
        storage: StoragePlan,
        buckets: Mapping[str, Bucket | ExistingBucket],
        *,
        cluster_name: str,
    ) -> None:
        """Let Mountpoint reach the buckets that pods mount."""
        mounted: list[tuple[Bucket | ExistingBucket, Access]] = [
            (buckets[bucket.name], bucket.access)
            for bucket in (*storage.buckets, *storage.existing_buckets)
            if bucket.access != "none"
        ]
        if mounted:
            MountpointAccess(self, "Mountpoint", buckets=mounted, cluster_name=cluster_name)
