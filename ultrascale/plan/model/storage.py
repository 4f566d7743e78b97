"""File systems and how pods mount them."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimPlan:
    """The PersistentVolumeClaim through which pods of one namespace mount a file system."""

    namespace: str
    name: str
    mount_path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LustrePlan:
    """An FSx for Lustre file system.

    Attributes:
        name: Name in the cluster file.
        zone: Its one Availability Zone, by name or zone id.
        capacity_gib: Storage capacity, in GiB.
        throughput_mbps_per_tib: Throughput tier, in MB/s per TiB.
        deployment_type: FSx's name of the kind of file system.
        lustre_version: Version of Lustre.
        port_ranges: First and last TCP port between servers and clients.
        data_compression: FSx's name of the compression.
        backup_retention_days: How long the daily backups are kept, in days.
        efa: Whether clients reach it over EFA.
        claim: How pods mount it; None where nothing in the cluster does.
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
    claim: ClaimPlan | None
    file_system_id: str
    dns_name: str
    mount_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LustreAccessPlan:
    """What opens new file systems to jobs.

    Attributes:
        image: Image with a shell and the usual tools, pinned, for every architecture.
        claims: Claims whose file systems it opens.
    """

    image: str
    claims: tuple[ClaimPlan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketPlan:
    """An S3 bucket.

    Attributes:
        name: Name in the cluster file.
        old_version_days: How long an overwritten or deleted object is kept, in days.
        unfinished_upload_days: How long the parts of an unfinished upload are kept, in days.
    """

    name: str
    old_version_days: int
    unfinished_upload_days: int
