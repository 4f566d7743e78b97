"""File systems, buckets and how pods mount them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Source = Literal["lustre", "bucket"]
Access = Literal["none", "read", "write"]
AccessMode = Literal["ReadOnlyMany", "ReadWriteMany"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimPlan:
    """The PersistentVolumeClaim through which pods of one namespace mount a volume.

    Attributes:
        namespace: Its namespace.
        name: Its name.
        mount_path: Where a job's containers mount it.
        source: What is behind it: a Lustre file system, or a bucket through Mountpoint for S3,
            which renames nothing and writes a file once, from its start to its end.
        read_only: Whether pods may only read.
        access_mode: Access mode of the claim, which never changes once it is there.
        zone: The zone that the file system lies in; None where every zone is as near.
        stand_in: Claim of the same namespace that shows the same data where no node of a job lies
            in ``zone``; None without one.
        file_system: File system behind it, by its name in the cluster file; None for a bucket.
    """

    namespace: str
    name: str
    mount_path: str
    source: Source = "lustre"
    read_only: bool = False
    access_mode: AccessMode = "ReadWriteMany"
    zone: str | None = None
    stand_in: str | None = None
    file_system: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumePlan:
    """A PersistentVolume, and the one claim that it serves.

    Attributes:
        name: Its name, unique in the cluster.
        component: The file system or bucket behind it, by its name in the cluster file.
        claim: The claim.
        driver: Name of the CSI driver.
        handle: What the driver calls it, unique in the cluster: of two volumes with one handle,
            a pod would mount only one.
        attributes: What the driver is told.
        mount_options: What the mount is told.
        capacity_gib: Its size, in GiB. Kubernetes only shows it.
    """

    name: str
    component: str
    claim: ClaimPlan
    driver: str
    handle: str
    attributes: Mapping[str, str]
    mount_options: tuple[str, ...]
    capacity_gib: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DataRepositoryPlan:
    """The S3 data that a file system shows as files.

    Attributes:
        bucket: The bucket, by its name in the cluster file.
        prefix: Key prefix, with a slash at its end; empty for the whole bucket.
        path: Directory of the file system in which they are.
        import_events: Changes in S3 that reach the file system, in FSx's words.
        export_events: Changes in the file system that reach S3, in FSx's words.
    """

    bucket: str
    prefix: str
    path: str
    import_events: tuple[str, ...]
    export_events: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LustrePlan:
    """An FSx for Lustre file system that is made.

    Attributes:
        name: Name in the cluster file.
        zone: Its one Availability Zone, by name or zone id.
        capacity_gib: Storage capacity, in GiB.
        throughput_mbps_per_tib: Throughput tier, in MB/s per TiB.
        deployment_type: FSx's name of the kind of file system.
        lustre_version: Version of Lustre.
        port_ranges: First and last TCP port between servers and clients.
        data_compression: FSx's name of the compression.
        backup_retention_days: How long the daily backups are kept, in days; 0 makes none.
        efa: Whether clients reach it over EFA.
        repository: The S3 data that it shows; None without any.
        file_system_id: Placeholder that stands for the file system's id in ``dist/``.
        dns_name: Placeholder for its DNS name.
        mount_name: Placeholder for its Lustre mount name.
    """

    name: str
    zone: str
    capacity_gib: int
    throughput_mbps_per_tib: int
    deployment_type: str
    lustre_version: str
    port_ranges: tuple[tuple[int, int], ...]
    data_compression: Literal["NONE", "LZ4"]
    backup_retention_days: int
    efa: bool
    repository: DataRepositoryPlan | None
    file_system_id: str
    dns_name: str
    mount_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingLustrePlan:
    """A file system that is there already: pods mount it, and nothing of it is made or changed.

    Attributes:
        name: Name in the cluster file.
        zone: Its one Availability Zone, by name or zone id.
        file_system_id: Its id.
        dns_name: Its DNS name.
        mount_name: Its Lustre mount name.
        security_group: Id of the security group of its network interfaces.
        owner: Account of it and of its security group; None for the cluster's.
        port_ranges: First and last TCP port between servers and clients.
    """

    name: str
    zone: str
    file_system_id: str
    dns_name: str
    mount_name: str
    security_group: str
    owner: str | None
    port_ranges: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LustreAccessPlan:
    """Access of jobs to new file systems.

    Attributes:
        image: Image with a shell and the usual tools, pinned, for every architecture.
        claims: One claim of each file system that it opens.
    """

    image: str
    claims: tuple[ClaimPlan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketNamePlan:
    """The ConfigMap that tells pods S3's name of a bucket.

    Attributes:
        config_map: Its name.
        key: Its only key.
        bucket_name: S3's name of the bucket, as a placeholder.
    """

    config_map: str
    key: str
    bucket_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputAccessPlan:
    """Access of training pods to the bucket that takes their checkpoints through S3's own API.

    Attributes:
        bucket: The bucket, by its name in the cluster file.
        namespaces: Namespaces whose jobs write there.
        service_account: Service account of their pods.
        bucket_names: S3's name of each bucket of the cluster file.
    """

    bucket: str
    namespaces: tuple[str, ...]
    service_account: str
    bucket_names: tuple[BucketNamePlan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketPlan:
    """An S3 bucket that is made.

    Attributes:
        name: Name in the cluster file.
        old_version_days: How long an overwritten or deleted object is kept, in days.
        unfinished_upload_days: How long the parts of an unfinished upload are kept, in days.
        access: What pods that mount it may do with its objects.
        bucket_name: Placeholder that stands for S3's name of it in ``dist/``.
    """

    name: str
    old_version_days: int
    unfinished_upload_days: int
    access: Access
    bucket_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingBucketPlan:
    """A bucket that is there already: pods use it, and nothing of it is made or changed.

    Attributes:
        name: Name in the cluster file.
        bucket_name: S3's name of it.
        arn: Its ARN.
        key_arn: ARN of the KMS key of its objects; None where S3 encrypts with its own.
        owner: Its account; None for the cluster's.
        access: What pods that mount it may do with its objects.
    """

    name: str
    bucket_name: str
    arn: str
    key_arn: str | None
    owner: str | None
    access: Access
