"""File systems, buckets and their mounts in pods."""

from collections.abc import Mapping
from typing import Literal

from ultrascale.frozen import Frozen

Source = Literal["lustre", "bucket"]
Access = Literal["none", "read", "write"]
AccessMode = Literal["ReadOnlyMany", "ReadWriteMany"]


class ClaimPlan(Frozen):
    """The PersistentVolumeClaim through which pods of one namespace mount a volume."""

    namespace: str  # Its namespace
    name: str  # Its name
    mount_path: str  # Path in a job's containers
    # Its storage: a Lustre file system, or a bucket through Mountpoint for S3, which renames
    # nothing and writes a file once, from its start to its end.
    source: Source = "lustre"
    read_only: bool = False  # Whether pods may only read
    # Access mode of the claim, which never changes.
    access_mode: AccessMode = "ReadWriteMany"
    # The zone of the file system; None where every zone is as near.
    zone: str | None = None
    # Claim of the same namespace that shows the same data to a job without nodes in ``zone``; None
    # without one.
    stand_in: str | None = None
    # File system behind it, by its name in the cluster file; None for a bucket.
    file_system: str | None = None


class VolumePlan(Frozen):
    """A PersistentVolume, and the one claim that it serves."""

    name: str  # Its name, unique in the cluster
    component: str  # The file system or bucket behind it, by its name in the cluster file
    claim: ClaimPlan  # The claim
    driver: str  # Name of the CSI driver
    # The driver's handle of it, unique in the cluster: of two volumes with one handle, a pod would
    # mount only one.
    handle: str
    attributes: Mapping[str, str]  # Attributes for the driver
    mount_options: tuple[str, ...]  # Options of the mount
    capacity_gib: int  # Its size, in GiB. Kubernetes only shows it.


class DataRepositoryPlan(Frozen):
    """The S3 data that a file system shows as files."""

    bucket: str  # The bucket, by its name in the cluster file
    prefix: str  # Key prefix, with a slash at its end; empty for the whole bucket
    path: str  # Their directory in the file system
    import_events: tuple[str, ...]  # Changes in S3 that reach the file system, in FSx's words
    export_events: tuple[str, ...]  # Changes in the file system that reach S3, in FSx's words


class LustrePlan(Frozen):
    """An FSx for Lustre file system of ours."""

    name: str  # Name in the cluster file
    zone: str  # Its one Availability Zone, by name or zone id
    capacity_gib: int  # Storage capacity, in GiB
    throughput_mbps_per_tib: int  # Throughput tier, in MB/s per TiB
    deployment_type: str  # FSx's name of the kind of file system
    lustre_version: str  # Version of Lustre
    port_ranges: tuple[tuple[int, int], ...]  # First and last TCP port between servers and clients
    data_compression: Literal["NONE", "LZ4"]  # FSx's name of the compression
    backup_retention_days: int  # Retention of the daily backups, in days; 0 makes none
    efa: bool  # Whether clients reach it over EFA
    repository: DataRepositoryPlan | None  # The S3 data that it shows; None without any
    file_system_id: str  # Placeholder for the file system's id in ``dist/``
    dns_name: str  # Placeholder for its DNS name
    mount_name: str  # Placeholder for its Lustre mount name


class ExistingLustrePlan(Frozen):
    """An existing file system: pods mount it, and the stacks leave it as it is."""

    name: str  # Name in the cluster file
    zone: str  # Its one Availability Zone, by name or zone id
    file_system_id: str  # Its id
    dns_name: str  # Its DNS name
    mount_name: str  # Its Lustre mount name
    security_group: str  # Id of the security group of its network interfaces
    owner: str | None  # Account of it and of its security group; None for the cluster's
    port_ranges: tuple[tuple[int, int], ...]  # First and last TCP port between servers and clients


class LustreAccessPlan(Frozen):
    """Access of jobs to new file systems."""

    image: str  # Image with a shell and the usual tools, pinned, for every architecture
    claims: tuple[ClaimPlan, ...]  # A claim of each file system that it opens


class BucketNamePlan(Frozen):
    """The ConfigMap with S3's name of a bucket, for pods."""

    config_map: str  # Its name
    key: str  # Its only key
    bucket_name: str  # Placeholder for S3's name of the bucket


class OutputAccessPlan(Frozen):
    """Access of training pods to the bucket of their checkpoints by S3's own API."""

    bucket: str  # The bucket, by its name in the cluster file
    namespaces: tuple[str, ...]  # Namespaces whose jobs write there
    service_account: str  # Service account of their pods
    bucket_names: tuple[BucketNamePlan, ...]  # S3's name of each bucket of the cluster file


class BucketPlan(Frozen):
    """An S3 bucket of ours."""

    name: str  # Name in the cluster file
    old_version_days: int  # Retention of an overwritten or deleted object, in days
    unfinished_upload_days: int  # Retention of the parts of an unfinished upload, in days
    access: Access  # Rights of mounting pods on its objects
    bucket_name: str  # Placeholder for S3's name of it in ``dist/``
    # Prefixes of objects that are deleted, with the days that they are kept
    kept: tuple[tuple[str, int], ...] = ()
    readers: tuple[str, ...] = ()  # ARNs of roles that its policy lets read it


class ExistingBucketPlan(Frozen):
    """An existing bucket: pods use it, and the stacks leave it as it is."""

    name: str  # Name in the cluster file
    bucket_name: str  # S3's name of it
    arn: str  # Its ARN
    key_arn: str | None  # ARN of the KMS key of its objects; None where S3 encrypts with its own
    owner: str | None  # Its account; None for the cluster's
    access: Access  # Rights of mounting pods on its objects


class StoragePlan(Frozen):
    """File systems, buckets and their volumes."""

    lustre: tuple[LustrePlan, ...]  # File systems of ours
    existing_lustre: tuple[ExistingLustrePlan, ...]  # Existing file systems
    volumes: tuple[VolumePlan, ...]  # Volumes of file systems and buckets, each with its claim
    # Access to file systems of ours that jobs mount; None where they mount none.
    lustre_access: LustreAccessPlan | None
    buckets: tuple[BucketPlan, ...]  # S3 buckets of ours
    existing_buckets: tuple[ExistingBucketPlan, ...]  # Existing S3 buckets
    # Access of training pods to the bucket of checkpoints; None without one.
    output_access: OutputAccessPlan | None

    @property
    def claims(self) -> tuple[ClaimPlan, ...]:
        """Every claim through which pods mount a file system or a bucket."""
        return tuple(volume.claim for volume in self.volumes)

    @property
    def mounts_buckets(self) -> bool:
        """Whether pods mount a bucket, by rights of an identity of theirs."""
        return any(bucket.access != "none" for bucket in (*self.buckets, *self.existing_buckets))

    @property
    def names_cluster(self) -> bool:
        """Whether it names the cluster: its security group, or identities of its pods."""
        lustre = bool(self.lustre or self.existing_lustre)
        return lustre or self.mounts_buckets or self.output_access is not None
