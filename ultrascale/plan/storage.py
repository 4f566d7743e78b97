"""File systems and buckets."""

from collections.abc import Iterable, Sequence

from ultrascale import config
from ultrascale.catalog import lustre as fsx
from ultrascale.catalog import regions, versions
from ultrascale.plan import names, retention
from ultrascale.plan.model import (
    BucketNamePlan,
    BucketPlan,
    ClaimPlan,
    DataRepositoryPlan,
    ExistingBucketPlan,
    ExistingLustrePlan,
    LustreAccessPlan,
    LustrePlan,
    OutputAccessPlan,
    VolumePlan,
)
from ultrascale.plan.model.storage import Access
from ultrascale.plan.namespaces import team_namespaces, training_namespaces


def plan_lustre(lustre: config.Lustre) -> LustrePlan:
    """Return the plan of a new file system, with its placeholders in the manifests.

    The manifests are written before the file system exists. Values that only CloudFormation will
    know stand in them as placeholders in the form that `envsubst` replaces; the platform stack
    replaces the same placeholders with references to the storage stack.
    """
    assert lustre.capacity_gib is not None, "a rule demands it"
    assert lustre.throughput_mbps_per_tib is not None, "a rule demands it"
    prefix = f"FSX_{lustre.name.upper().replace('-', '_')}"
    return LustrePlan(
        name=lustre.name,
        zone=lustre.zone,
        capacity_gib=lustre.capacity_gib,
        throughput_mbps_per_tib=lustre.throughput_mbps_per_tib,
        deployment_type=fsx.DEPLOYMENT_TYPE,
        lustre_version=fsx.LUSTRE_VERSION,
        port_ranges=fsx.PORT_RANGES,
        # The same data takes less of the paid capacity.
        data_compression="LZ4",
        # FSx backs up no file system that is linked to S3.
        # Source: https://docs.aws.amazon.com/fsx/latest/LustreGuide/using-backups-fsx.html
        backup_retention_days=retention.BACKUP_DAYS if lustre.s3 is None else 0,
        efa=lustre.efa,
        repository=None if lustre.s3 is None else _repository(lustre.s3),
        file_system_id=f"${{{prefix}_ID}}",
        dns_name=f"${{{prefix}_DNS_NAME}}",
        mount_name=f"${{{prefix}_MOUNT_NAME}}",
    )


def plan_existing_lustre(cluster: config.Cluster) -> tuple[ExistingLustrePlan, ...]:
    """Return the existing file systems of ``cluster``."""
    return tuple(
        ExistingLustrePlan(
            name=lustre.name,
            zone=lustre.zone,
            file_system_id=lustre.existing.id,
            dns_name=fsx.dns_name(lustre.existing.id, cluster.region),
            mount_name=lustre.existing.mount_name,
            security_group=lustre.existing.security_group,
            owner=_foreign_account(lustre.existing.owner, cluster),
            port_ranges=fsx.PORT_RANGES,
        )
        for lustre in cluster.storage.lustre
        if lustre.existing is not None
    )


def bucket_name(bucket: str, cluster: config.Cluster) -> str:
    """Return S3's name of a bucket, or its placeholder in the manifests until S3 generates one.

    Args:
        bucket: Its name in the cluster file.
        cluster: The cluster file.
    """
    existing = cluster.storage.existing_buckets.get(bucket)
    if existing is not None and existing.existing is not None:
        return existing.existing
    return f"${{BUCKET_{bucket.upper().replace('-', '_')}}}"


def plan_lustre_access(
    cluster: config.Cluster, volumes: Iterable[VolumePlan]
) -> LustreAccessPlan | None:
    """Return the access to new file systems that jobs mount, if there are any.

    Only its owner changes the root directory of an existing one. One claim of each file system is
    enough, and one outside the namespaces of teams is better: those are made late.
    """
    teams = team_namespaces(cluster)
    made = {system.name for system in cluster.storage.lustre if system.existing is None}
    found: dict[str, ClaimPlan] = {}
    for volume in sorted(volumes, key=lambda volume: volume.claim.namespace in teams):
        if volume.claim.source == "lustre" and volume.claim.file_system in made:
            found.setdefault(volume.component, volume.claim)
    if not found:
        return None
    return LustreAccessPlan(image=versions.image("python").reference, claims=(*found.values(),))


def plan_buckets(cluster: config.Cluster, volumes: Sequence[VolumePlan]) -> tuple[BucketPlan, ...]:
    """Return the buckets that ``cluster`` makes, with the rights of mounting pods."""
    return tuple(
        BucketPlan(
            name=name,
            old_version_days=retention.OBJECT_VERSION_DAYS,
            unfinished_upload_days=retention.UPLOAD_DAYS,
            access=_access(name, volumes),
            bucket_name=bucket_name(name, cluster),
        )
        for name in cluster.storage.made_bucket_names
    )


def plan_existing_buckets(
    cluster: config.Cluster, volumes: Sequence[VolumePlan]
) -> tuple[ExistingBucketPlan, ...]:
    """Return the existing buckets, with the rights of mounting pods."""
    partition = regions.lookup_region(cluster.region).partition
    return tuple(
        ExistingBucketPlan(
            name=name,
            bucket_name=bucket_name(name, cluster),
            arn=f"arn:{partition}:s3:::{bucket_name(name, cluster)}",
            key_arn=bucket.key,
            owner=_foreign_account(bucket.owner, cluster),
            access=_access(name, volumes),
        )
        for name, bucket in cluster.storage.existing_buckets.items()
    )


def plan_output_access(cluster: config.Cluster) -> OutputAccessPlan | None:
    """Return how training pods reach the bucket of checkpoints, if the file has it."""
    buckets = cluster.storage.bucket_names
    if names.CHECKPOINTS_BUCKET not in buckets:
        return None
    return OutputAccessPlan(
        bucket=names.CHECKPOINTS_BUCKET,
        namespaces=training_namespaces(cluster),
        service_account=names.OUTPUT_ACCOUNT,
        bucket_names=tuple(
            BucketNamePlan(
                config_map=names.bucket_config(bucket),
                key=names.BUCKET_NAME_KEY,
                bucket_name=bucket_name(bucket, cluster),
            )
            for bucket in buckets
        ),
    )


def _repository(s3: config.LustreS3) -> DataRepositoryPlan:
    return DataRepositoryPlan(
        bucket=s3.bucket,
        prefix=config.folder(s3.prefix),
        path=s3.path,
        import_events=tuple(event.upper() for event in s3.import_),
        export_events=tuple(event.upper() for event in s3.export),
    )


def _foreign_account(owner: str | None, cluster: config.Cluster) -> str | None:
    return None if owner == cluster.account else owner


def _access(bucket: str, volumes: Iterable[VolumePlan]) -> Access:
    claims = [volume.claim for volume in volumes if volume.component == bucket]
    mounts = [claim for claim in claims if claim.source == "bucket"]
    if not mounts:
        return "none"
    return "read" if all(claim.read_only for claim in mounts) else "write"
