"""File systems and the volumes through which pods mount them."""

from ultrascale import config
from ultrascale.catalog import lustre as fsx
from ultrascale.catalog import versions
from ultrascale.plan import retention
from ultrascale.plan.model import BucketPlan, ClaimPlan, LustreAccessPlan, LustrePlan


def plan_lustre(lustre: config.Lustre) -> LustrePlan:
    """Join a file system with the placeholders that stand for it in the manifests.

    The manifests are written before the file system exists. What CloudFormation will know of it
    stands in them as a placeholder in the form that `envsubst` replaces; the platform stack
    replaces the same placeholders with references to the storage stack.
    """
    claim = lustre.claim
    prefix = f"FSX_{lustre.name.upper().replace('-', '_')}"
    return LustrePlan(
        name=lustre.name,
        zone=lustre.zone,
        capacity_gib=lustre.capacity_gib,
        throughput_mbps_per_tib=lustre.throughput_mbps_per_tib,
        deployment_type=fsx.DEPLOYMENT_TYPE,
        lustre_version=fsx.LUSTRE_VERSION,
        port_ranges=fsx.PORT_RANGES,
        # The same data takes less of the capacity that is paid for.
        data_compression="LZ4",
        backup_retention_days=retention.BACKUP_DAYS,
        efa=lustre.efa,
        claim=claim
        and ClaimPlan(namespace=claim.namespace, name=claim.name, mount_path=claim.mount_path),
        file_system_id=f"${{{prefix}_ID}}",
        dns_name=f"${{{prefix}_DNS_NAME}}",
        mount_name=f"${{{prefix}_MOUNT_NAME}}",
    )


def plan_lustre_access(cluster: config.Cluster) -> LustreAccessPlan | None:
    """Return what opens the file systems that jobs mount to them, if there are any."""
    planned = (plan_lustre(lustre).claim for lustre in cluster.storage.lustre)
    claims = tuple(claim for claim in planned if claim is not None)
    if not claims:
        return None
    return LustreAccessPlan(image=versions.image("python").reference, claims=claims)


def plan_buckets(cluster: config.Cluster) -> tuple[BucketPlan, ...]:
    """Return the S3 buckets of ``cluster``."""
    return tuple(
        BucketPlan(
            name=name,
            old_version_days=retention.OBJECT_VERSION_DAYS,
            unfinished_upload_days=retention.UPLOAD_DAYS,
        )
        for name in cluster.storage.buckets
    )
