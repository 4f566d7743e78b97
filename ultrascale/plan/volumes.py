"""The volumes through which pods of each job namespace mount file systems and buckets."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from msgspec.structs import replace

from ultrascale import catalog, config
from ultrascale.catalog import checkpoint_bandwidth, mountpoint
from ultrascale.frozen import Frozen
from ultrascale.plan import names
from ultrascale.plan.model import ClaimPlan, ExistingLustrePlan, LustrePlan, StoragePlan, VolumePlan
from ultrascale.plan.model.storage import AccessMode
from ultrascale.plan.namespaces import (
    serving_namespaces,
    team_namespaces,
    training_namespaces,
)
from ultrascale.plan.storage import (
    bucket_name,
    plan_buckets,
    plan_existing_buckets,
    plan_existing_lustre,
    plan_lustre,
    plan_lustre_access,
    plan_output_access,
)

_LUSTRE_DRIVER = "fsx.csi.aws.com"
# Without it a program that locks a file fails with ENOSYS.
_LUSTRE_OPTIONS = ("flock",)
# Images run as any user: the mount, not the object, has the rights. The bucket keeps versions of
# overwritten or deleted objects.
_WRITE_OPTIONS = ("allow-delete", "allow-overwrite", "file-mode=0666", "dir-mode=0777")
_READ_OPTIONS = ("read-only", "file-mode=0444", "dir-mode=0555")
# A bucket has no size, and that of an existing file system is not known, but a volume has one.
_ANY_GIB = 1200


class _Claimed(Frozen):
    """A claim and its storage."""

    claim: ClaimPlan  # The claim
    lustre: config.Lustre | None = None  # The file system; None with a bucket
    bucket: str | None = None  # The bucket, by its name in the file; None with a file system
    prefix: str = ""  # Key prefix of the objects that it shows
    own: bool = False  # Whether the file names the claim


def plan_storage(cluster: config.Cluster) -> StoragePlan:
    """Return the file systems, buckets and volumes of ``cluster``."""
    volumes = plan_volumes(cluster)
    made = (lustre for lustre in cluster.storage.lustre if lustre.existing is None)
    return StoragePlan(
        lustre=tuple(map(plan_lustre, made)),
        existing_lustre=plan_existing_lustre(cluster),
        volumes=volumes,
        lustre_access=plan_lustre_access(cluster, volumes),
        buckets=plan_buckets(cluster, volumes),
        existing_buckets=plan_existing_buckets(cluster, volumes),
        output_access=plan_output_access(cluster),
    )


def plan_volumes(cluster: config.Cluster) -> tuple[VolumePlan, ...]:
    """Return the volumes of ``cluster``: those of its own claims, then those of the default ones.

    A default claim is left out of a namespace in which a claim of the file has its name or its
    mount path.
    """
    existing = {system.name: system for system in plan_existing_lustre(cluster)}
    return tuple(_volume(claim, cluster, existing) for claim in _claims(cluster))


def plan_claims(cluster: config.Cluster) -> tuple[ClaimPlan, ...]:
    """Return the claims of ``cluster``, in the order of their volumes."""
    return tuple(claim.claim for claim in _claims(cluster))


def mounts_buckets(cluster: config.Cluster) -> bool:
    """Return whether pods mount a bucket of ``cluster``, for which they need Mountpoint for S3."""
    return any(claim.bucket is not None for claim in _claims(cluster))


def bucket_gbps(cluster: config.Cluster) -> int:
    """Return the target rate of a bucket's mount in Gbit/s: that of the fastest node to S3.

    Mountpoint asks the node's metadata service, which pods do not reach, and takes 10 without an
    answer.

    Source: https://github.com/awslabs/mountpoint-s3-csi-driver/issues/561
    """
    types = {name for pool in cluster.pools for name in pool.instance_types}
    specs = (catalog.lookup(name) for name in types if name in catalog.INSTANCE_TYPES)
    known = [spec.network_gbps for spec in specs if spec.knows("network_gbps")]
    fastest = min(max(known, default=0), checkpoint_bandwidth.NODE_GBPS)
    return max(mountpoint.DEFAULT_GBPS, int(fastest))


def mounted_claims(
    claims: Iterable[ClaimPlan], *, namespace: str, zones: Collection[str]
) -> tuple[ClaimPlan, ...]:
    """Return the claims that a job mounts by default.

    A job without nodes in the zone of a file system mounts its stand-in.

    Args:
        claims: All claims of the cluster.
        namespace: The job's.
        zones: Possible zones of its nodes.
    """
    here = {claim.name: claim for claim in claims if claim.namespace == namespace}
    stand_ins = {claim.stand_in for claim in here.values()}
    return tuple(
        here[claim.stand_in] if claim.stand_in and claim.zone not in zones else claim
        for claim in here.values()
        if claim.name not in stand_ins
    )


def _claims(cluster: config.Cluster) -> Iterator[_Claimed]:
    own = [*_own_claims(cluster)]
    taken = {word for claim in own for word in _words(claim.claim)}
    others = (claim for claim in _default_claims(cluster) if not _words(claim.claim) & taken)
    for claimed in (*own, *others):
        stand_in = _stand_in(cluster, claimed)
        if stand_in is None or _words(stand_in.claim) & taken - _words(claimed.claim):
            yield claimed
        else:
            yield replace(claimed, claim=replace(claimed.claim, stand_in=stand_in.claim.name))
            yield stand_in


def _words(claim: ClaimPlan) -> set[tuple[str, str]]:
    """Return the claim's words that no other claim of the namespace may have."""
    return {(claim.namespace, claim.name), (claim.namespace, claim.mount_path)}


def _own_claims(cluster: config.Cluster) -> Iterator[_Claimed]:
    for lustre in cluster.storage.lustre:
        if lustre.claim is not None:
            claim = ClaimPlan(
                namespace=lustre.claim.namespace,
                name=lustre.claim.name,
                mount_path=lustre.claim.mount_path,
                zone=lustre.zone,
                file_system=lustre.name,
            )
            yield _Claimed(claim=claim, lustre=lustre, own=True)
    for bucket, stated in cluster.storage.bucket_claims.items():
        claim = ClaimPlan(
            namespace=stated.namespace, name=stated.name, mount_path=stated.mount_path
        )
        yield _Claimed(claim=_bucket_claim(claim, bucket, cluster), bucket=bucket, own=True)


def _bucket_claim(claim: ClaimPlan, bucket: str, cluster: config.Cluster) -> ClaimPlan:
    """Return ``claim`` as one of a bucket, which services only read unless the file says more."""
    storage = cluster.storage
    read_only = bucket in storage.read_only_buckets
    served = claim.namespace in serving_namespaces(cluster)
    return replace(
        claim,
        source="bucket",
        read_only=read_only or (served and bucket not in storage.writable_buckets),
        # A namespace becomes one of services by a job, and Kubernetes takes no other access mode of
        # an existing claim: the mount alone refuses writes then.
        access_mode=_access_mode(read_only=read_only),
    )


def _access_mode(*, read_only: bool) -> AccessMode:
    return "ReadOnlyMany" if read_only else "ReadWriteMany"


def _default_claims(cluster: config.Cluster) -> Iterator[_Claimed]:
    storage = cluster.storage
    stated = storage.default_claims
    if not (any(pool.facts.have_claims for pool in cluster.pools) if stated is None else stated):
        return
    file_systems = {lustre.name: lustre for lustre in storage.lustre}
    defaults = config.default_claims(lustre=[*file_systems], buckets=storage.bucket_names)
    for namespace in training_namespaces(cluster):
        for default in defaults:
            claim = ClaimPlan(namespace=namespace, name=default.name, mount_path=default.mount_path)
            if default.lustre is not None:
                lustre = file_systems[default.lustre]
                yield _Claimed(
                    claim=replace(claim, zone=lustre.zone, file_system=lustre.name), lustre=lustre
                )
            else:
                bucket = str(default.bucket)
                yield _Claimed(claim=_bucket_claim(claim, bucket, cluster), bucket=bucket)


def _stand_in(cluster: config.Cluster, claimed: _Claimed) -> _Claimed | None:
    """Return the claim that shows the same data in zones without it, if there are any.

    Lustre is reached from every zone of the VPC, but each byte between zones is paid for.
    """
    lustre, claim = claimed.lustre, claimed.claim
    if lustre is None or lustre.s3 is None or _zones(cluster, claim.namespace) <= {lustre.zone}:
        return None
    path = "" if lustre.s3.path == "/" else lustre.s3.path
    stand_in = ClaimPlan(
        namespace=claim.namespace,
        name=f"{claim.name}{config.STAND_IN_SUFFIX}",
        mount_path=f"{claim.mount_path}{path}",
        source="bucket",
        read_only=True,
        access_mode=_access_mode(read_only=True),
    )
    return _Claimed(claim=stand_in, bucket=lustre.s3.bucket, prefix=config.folder(lustre.s3.prefix))


def _zones(cluster: config.Cluster, namespace: str) -> set[str]:
    governed = namespace in team_namespaces(cluster)
    return {
        zone
        for pool in cluster.pools
        if pool.role != names.SYSTEM_ROLE and (not governed or pool.facts.are_shared)
        for zone in config.zones_of(pool, cluster.network)
    }


def _volume(
    claimed: _Claimed, cluster: config.Cluster, existing: Mapping[str, ExistingLustrePlan]
) -> VolumePlan:
    """Return the volume of a claim, which serves no other."""
    if claimed.lustre is not None:
        plan = existing.get(claimed.lustre.name) or plan_lustre(claimed.lustre)
        return _lustre_volume(plan, claimed.claim, own=claimed.own)
    return _bucket_volume(str(claimed.bucket), claimed.claim, cluster, prefix=claimed.prefix)


def _lustre_volume(
    plan: LustrePlan | ExistingLustrePlan, claim: ClaimPlan, *, own: bool
) -> VolumePlan:
    """Return a volume of a file system.

    The driver mounts the file system of the attributes. By the handle it only tells apart calls
    under way for one volume and path. An id with an ending serves as a handle by its code; its
    documents do not say so.

    Source: https://github.com/kubernetes-sigs/aws-fsx-csi-driver/blob/v1.9.0/pkg/driver/node.go
    """
    # A volume cannot change its handle: for a claim of the file it was always the id.
    ending = "" if own else f"-{claim.namespace}-{claim.name}"
    return VolumePlan(
        name=f"{plan.name}-{claim.namespace}-{claim.name}",
        component=plan.name,
        claim=claim,
        driver=_LUSTRE_DRIVER,
        handle=f"{plan.file_system_id}{ending}",
        attributes={"dnsname": plan.dns_name, "mountname": plan.mount_name},
        mount_options=_LUSTRE_OPTIONS,
        capacity_gib=plan.capacity_gib if isinstance(plan, LustrePlan) else _ANY_GIB,
    )


def _bucket_volume(
    bucket: str, claim: ClaimPlan, cluster: config.Cluster, *, prefix: str
) -> VolumePlan:
    """Return a volume of a bucket.

    Source: https://github.com/awslabs/mountpoint-s3/blob/main/doc/CONFIGURATION.md
    """
    gbps = bucket_gbps(cluster)
    # A file system may have the bucket's name.
    name = f"s3-{bucket}-{claim.namespace}-{claim.name}"
    return VolumePlan(
        name=name,
        component=bucket,
        claim=claim,
        driver=mountpoint.DRIVER,
        handle=name,
        attributes={"bucketName": bucket_name(bucket, cluster)},
        mount_options=(
            # Its default is the node's metadata service, which pods do not reach.
            f"region {cluster.region}",
            "allow-other",
            *(_READ_OPTIONS if claim.read_only else _WRITE_OPTIONS),
            *((f"prefix {prefix}",) if prefix else ()),
            *((f"maximum-throughput-gbps {gbps}",) if gbps > mountpoint.DEFAULT_GBPS else ()),
        ),
        capacity_gib=_ANY_GIB,
    )
