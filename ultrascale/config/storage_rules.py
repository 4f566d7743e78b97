"""Rules of storage: sizes, zones, names, and settings of existing storage."""

from ultrascale.catalog import lustre as fsx
from ultrascale.catalog import versions
from ultrascale.config._errors import Mistake, Mistakes, near, note, refuse
from ultrascale.config._parts import Placed, Readable
from ultrascale.config._rules import rule
from ultrascale.config.identity import Identity
from ultrascale.config.key_arn import misplaced_key
from ultrascale.config.kubernetes import Kubernetes
from ultrascale.config.network import Network
from ultrascale.config.pools import Pool, zones_of
from ultrascale.config.storage import (
    CHECKPOINTS_BUCKET,
    Bucket,
    Claim,
    Lustre,
    LustreS3,
    Storage,
    default_claims,
    folder,
)

# Kubernetes' namespaces, those of controllers of queues and services, of the pods of Mountpoint
# for S3's driver, and of the write canary.
_TAKEN_NAMESPACES = frozenset(
    {
        "envoy-gateway-system",
        "jobset-system",
        "keda",
        "kube-node-lease",
        "kube-public",
        "kube-system",
        "kueue-system",
        "lws-system",
        "mount-s3",
        "volcano-system",
        "write-canary",
    }
)


@rule
def claim_has_a_namespace_of_jobs(claim: Claim) -> Mistakes:
    if claim.namespace in _TAKEN_NAMESPACES:
        wrong = "a namespace in which no jobs run"
        yield refuse("namespace", wrong, "use training, or a name of your own")


@rule
def claims_are_unique(claims: Readable[Claim]) -> Mistakes:
    seen: set[tuple[str, str]] = set()
    for placed in claims.placed:
        claim = (placed.item.namespace, placed.item.name)
        if claim in seen:
            wrong = f"a second claim of that name in namespace {placed.item.namespace}"
            yield Mistake((*placed.at, "name"), wrong, "choose another")
        seen.add(claim)


@rule
def bucket_names_are_unique(storage: Storage) -> Mistakes:
    seen: set[str] = set()
    for number, name in enumerate(storage.bucket_names):
        if name in seen:
            yield refuse(f"buckets.{number}", "listed twice", "keep one", got=f"{name!r}")
        seen.add(name)


@rule
def default_claims_have_a_source(storage: Storage) -> Mistakes:
    names = [file_system.name for file_system in storage.lustre]
    if storage.default_claims and not default_claims(lustre=names, buckets=storage.bucket_names):
        wrong = "no file system and no bucket to claim"
        todo = "add a lustre file system or bucket datasets or checkpoints, or leave it out"
        yield refuse("default_claims", wrong, todo)


@rule
def exports_are_apart(links: Readable[LustreS3]) -> Mistakes:
    """Yield exports of two file systems to the same objects: each would undo the other's.

    Source: https://docs.aws.amazon.com/fsx/latest/LustreGuide/autoexport-data-repo-dra.html
    """
    seen: list[tuple[str, str, Placed[LustreS3]]] = []
    for placed in links.placed:
        link = placed.item
        if not link.export:
            continue
        prefix = folder(link.prefix)
        for other_bucket, other_prefix, other in seen:
            if link.bucket == other_bucket and (
                prefix.startswith(other_prefix) or other_prefix.startswith(prefix)
            ):
                wrong = f"{other.path} exports to these objects already"
                yield Mistake((*placed.at, "export"), wrong, "choose another prefix, or export: []")
                break
        seen.append((link.bucket, prefix, placed))


@rule
def lustre_is_made_or_exists(file_system: Lustre) -> Mistakes:
    """Yield the missing keys of a new file system, and keys that an existing one cannot have."""
    size = ("capacity_gib", file_system.capacity_gib)
    tier = ("throughput_mbps_per_tib", file_system.throughput_mbps_per_tib)
    if file_system.existing is None:
        for key, value in (size, tier):
            if value is None:
                yield refuse(key, "missing", "add it, or existing", got="")
        return
    given = (size, tier, ("s3", file_system.s3), ("efa", file_system.efa or None))
    for key, value in given:
        if value is not None:
            wrong = "this product changes no existing file system"
            yield refuse(key, wrong, "leave it out: its owner decides that")


@rule
def existing_file_systems_are_listed_once(systems: Readable[Lustre]) -> Mistakes:
    seen: dict[str, str] = {}
    for placed in systems.placed:
        existing = placed.item.existing
        if existing is None:
            continue
        if existing.id in seen:
            wrong = f"{seen[existing.id]} names this file system already"
            todo = "keep one; default_claims mounts it in further namespaces"
            yield Mistake((*placed.at, "existing", "id"), wrong, todo)
        seen.setdefault(existing.id, placed.path)


@rule
def foreign_keys_belong_to_existing_buckets(bucket: Bucket) -> Mistakes:
    if bucket.existing is not None:
        return
    if bucket.key is not None:
        todo = "leave it out, or name the bucket in existing; keys.storage encrypts new buckets"
        yield refuse("key", "the key of a bucket that we make", todo)
    if bucket.owner is not None:
        todo = "leave it out, or name the bucket in existing"
        yield refuse("owner", "the owner of a bucket that we make", todo)


@rule
def bucket_key_is_of_the_region(bucket: Bucket, identity: Identity) -> Mistakes:
    """Yield the key of a bucket in another Region, which S3 cannot use.

    Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html
    """
    for wrong in () if bucket.key is None else misplaced_key(bucket.key, identity):
        todo = "use a key of the Region of the cluster and its buckets"
        yield refuse("key", wrong, todo)


@rule
def existing_buckets_are_listed_once(storage: Storage) -> Mistakes:
    seen: dict[str, str] = {}
    for number, bucket in enumerate(storage.buckets):
        if isinstance(bucket, str) or bucket.existing is None:
            continue
        if bucket.existing in seen:
            wrong = f"{seen[bucket.existing]} names this bucket already"
            yield refuse(f"buckets.{number}.existing", wrong, "keep one")
        seen.setdefault(bucket.existing, bucket.name)


@rule
def checkpoints_can_be_written(storage: Storage) -> Mistakes:
    for number, bucket in enumerate(storage.buckets):
        if isinstance(bucket, Bucket) and bucket.read_only and bucket.name == CHECKPOINTS_BUCKET:
            wrong = "the bucket that jobs write their checkpoints to"
            yield refuse(f"buckets.{number}.read_only", wrong, "use false, or another name")


@rule
def existing_buckets_tell_nobody(link: LustreS3, storage: Storage) -> Mistakes:
    """Yield imports from an existing bucket, into which FSx would write event notifications.

    Source: https://docs.aws.amazon.com/fsx/latest/LustreGuide/autoimport-data-repo-dra.html
    """
    if link.import_ and link.bucket in storage.existing_buckets:
        wrong = "import lets FSx change the bucket's notifications, and the bucket is not ours"
        todo = "use import: []; objects that exist before the link are shown"
        yield refuse("import", wrong, todo)


@rule
def lustre_tier_exists(file_system: Lustre) -> Mistakes:
    tier = file_system.throughput_mbps_per_tib
    if tier is not None and tier not in fsx.THROUGHPUT_TIERS_MBPS_PER_TIB:
        todo = f"use {', '.join(str(tier) for tier in fsx.THROUGHPUT_TIERS_MBPS_PER_TIB)}"
        yield refuse("throughput_mbps_per_tib", "not a throughput tier of FSx for Lustre", todo)


@rule
def lustre_has_a_client(
    file_system: Lustre, kubernetes: Kubernetes, pools: Readable[Pool]
) -> Mistakes:
    """Refuse a kernel that no source says to mount Lustre: each pod with a claim would wait."""
    # Another rule refuses a version without images.
    release = versions.ami_releases().get(kubernetes.version)
    if (
        release is not None
        and release.kernel not in fsx.CLIENT_KERNELS
        and any(pool.facts.runs_pinned_image for pool in pools)
    ):
        wrong = (
            f"nodes of Kubernetes {kubernetes.version} run Linux {release.kernel}, and no "
            "source says that it mounts FSx for Lustre"
        )
        releases = versions.ami_releases().values()
        known = (release.minor for release in releases if release.kernel in fsx.CLIENT_KERNELS)
        todo = f"use kubernetes.version {max(known)}, or storage.buckets"
        yield refuse("", wrong, todo, got="")


@rule
def lustre_size_exists(file_system: Lustre) -> Mistakes:
    tier, size, efa = (
        file_system.throughput_mbps_per_tib,
        file_system.capacity_gib,
        file_system.efa,
    )
    if size is None or tier not in fsx.THROUGHPUT_TIERS_MBPS_PER_TIB:
        return
    if not fsx.is_capacity(size, tier=tier, efa=efa):
        nearest = fsx.nearest_capacities(size, tier=tier, efa=efa)
        wrong = f"not a size at {tier} MB/s per TiB{' with EFA' if efa else ''}"
        todo = f"nearest: {' or '.join(str(n) for n in nearest)}"
        yield Mistake(("capacity_gib",), wrong, todo, rests_on=("efa",))


@rule
def lustre_zone_has_a_subnet(file_system: Lustre, network: Network) -> Mistakes:
    if network.zone_names and file_system.zone not in network.zone_names:
        yield refuse("zone", *network.why_no_subnet())
    elif file_system.existing is None and network.vpc is not None:
        # It lies beside nodes without accelerators.
        zones = network.zones_for(accelerated=False)
        if zones and file_system.zone not in zones:
            wrong = "no subnet of this zone has use: nodes"
            yield refuse("zone", wrong, f"use {' or '.join(zones)}, or add a subnet")


@rule
def lustre_efa_has_clients(
    file_system: Lustre, pools: Readable[Pool], network: Network
) -> Mistakes:
    for placed in pools.placed if file_system.efa else ():
        pool = placed.item
        specs = pool.specs
        barred = sorted({spec.family for spec in specs if not fsx.is_efa_client(spec)})
        # EKS Auto Mode runs Bottlerocket, which is no EFA client of FSx for Lustre.
        # Source: https://docs.aws.amazon.com/fsx/latest/LustreGuide/efa-file-systems.html
        if pool.is_auto_mode and any(spec.accelerator for spec in specs):
            barred = ["EKS Auto Mode"]
        if barred and file_system.zone in zones_of(pool, network):
            wrong = f"{barred[0]} nodes of {placed.path} cannot reach it over EFA"
            yield refuse("efa", wrong, "set efa: false, or put the pool into another zone")


@rule
def lustre_bucket_exists(link: LustreS3, storage: Storage) -> Mistakes:
    if link.bucket not in storage.bucket_names:
        todo = near(link.bucket, storage.bucket_names)
        yield refuse("bucket", "not one of storage.buckets", todo)


@rule(severity="warning")
def file_system_is_far(file_system: Lustre, pools: Readable[Pool], network: Network) -> Mistakes:
    if not any(file_system.zone in zones_of(pool, network) for pool in pools):
        yield note("zone", f"no pool has nodes in {file_system.zone}; choose a zone with nodes")


@rule(severity="warning")
def file_system_is_of_another_vpc(file_system: Lustre, network: Network) -> Mistakes:
    if file_system.existing is not None and network.vpc is None:
        text = (
            "this cluster makes a new VPC, so the file system is in another one; name the file "
            "system's VPC in network.vpc"
        )
        yield note("existing.id", text)
