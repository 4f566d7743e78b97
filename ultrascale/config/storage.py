"""`storage`: file systems, buckets, and the claims through which jobs mount them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, Tag

from ultrascale import catalog
from ultrascale.catalog import integer_bounds, mount_paths, versions
from ultrascale.catalog import lustre as fsx
from ultrascale.config._base import Model, Section, told_apart_by_form
from ultrascale.config._errors import Mistake, Mistakes, near, refuse
from ultrascale.config._parts import Readable
from ultrascale.config._rules import rule
from ultrascale.config._values import (
    Distinct,
    DnsLabel,
    SubdomainName,
    WrongValueError,
    matching,
    one_of,
)
from ultrascale.config.identity import AccountId, Identity
from ultrascale.config.keys import KeyArn, misplaced_key
from ultrascale.config.kubernetes import Kubernetes
from ultrascale.config.network import Network
from ultrascale.config.pools import Pool, zones_of
from ultrascale.config.vpc import SecurityGroupId

BucketName = Annotated[
    str,
    matching(
        r"[a-z0-9](?:[a-z0-9-]{1,35}[a-z0-9])",
        "not a bucket name of 3 to 37 characters",
        "use lower-case letters, digits and '-'; S3 gives the bucket a name of its own",
    ),
]
# No part of it may lead upwards: `/data/../etc` is another path than it seems.
_ABSOLUTE = r"(?=.{1,1024}$)(?:/(?!\.{1,2}(?:/|$))[\w.-]{1,255})+"


def _free(path: str) -> str:
    contents = mount_paths.holds(path)
    if contents is not None:
        wrong = f"a path at which the container has something else: {contents}"
        raise WrongValueError(wrong, "choose another, such as /data")
    return path


MountPath = Annotated[
    str,
    # The root is absolute, and taken.
    matching(
        rf"/|{_ABSOLUTE}",
        "not an absolute path",
        "write it as /data, with no '/' at the end and no '.' or '..' in it",
    ),
    AfterValidator(_free),
]
# Source: https://docs.aws.amazon.com/fsx/latest/APIReference/API_FileSystem.html
FileSystemId = Annotated[
    str,
    matching(
        r"fs-[0-9a-f]{8,18}",
        "not the id of a file system",
        "write fs- and its digits of 0-9 and a-f, as the console shows it",
    ),
]
# Source: https://docs.aws.amazon.com/fsx/latest/APIReference/API_LustreFileSystemConfiguration.html
MountName = Annotated[
    str,
    matching(
        r"[A-Za-z0-9_-]{1,8}",
        "not the mount name of a Lustre file system",
        "write what `aws fsx describe-file-systems` shows as MountName, such as abcdefgh",
    ),
]
# Names of directory buckets and aliases of access points end otherwise: their ARNs are no bucket's.
# Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
ExistingBucketName = Annotated[
    str,
    matching(
        r"(?!.*(?:-s3alias|--ol-s3|--x-s3|\.mrap|--table-s3)$)(?!.*\.\.)"
        r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]",
        "not the name of a general purpose bucket",
        "write its name alone, without s3:// and without a prefix",
    ),
]
# A path of data repositories is the bucket's address and the prefix.
# Source: https://docs.aws.amazon.com/fsx/latest/APIReference/API_DataRepositoryAssociation.html
Prefix = Annotated[
    str,
    matching(
        r"(?:[!-.0-~][!-~]{0,899})?", "not an S3 prefix", "leave out '/' at its start, and spaces"
    ),
]
LinkedPath = Annotated[
    str,
    matching(
        rf"/|{_ABSOLUTE}", "not an absolute path", "write it as /datasets, or / for all of it"
    ),
]
Event = Literal["new", "changed", "deleted"]

# What programs of every job namespace may count on.
TRAINING_DATA_CLAIM = "training-data-pvc"
CHECKPOINTS_CLAIM = "model-checkpoints-pvc"
# Ends the name of the claim through which S3 shows what the claim of that name shows on Lustre.
STAND_IN_SUFFIX = "-s3"

_DATASETS_BUCKET = "datasets"
_CHECKPOINTS = "checkpoints"
# Kubernetes' own, those of controllers of queues, where the driver of Mountpoint for S3 runs its
# pods, and what the write canary writes to.
_TAKEN_NAMESPACES = frozenset(
    {
        "jobset-system",
        "kube-node-lease",
        "kube-public",
        "kube-system",
        "kueue-system",
        "mount-s3",
        "volcano-system",
        "write-canary",
    }
)


class Claim(Model):
    """The PersistentVolumeClaim by which pods of one namespace mount a file system or bucket."""

    namespace: DnsLabel
    """Namespace of the claim, in which jobs run."""

    name: SubdomainName
    """Name of the claim, unique in its namespace."""

    mount_path: MountPath
    """Path at which jobs mount it."""


class LustreS3(Model):
    """The S3 data that a file system shows as files."""

    bucket: str
    """One of `storage.buckets`."""

    prefix: Prefix = ""
    """Key prefix of the objects. Default: the whole bucket."""

    path: LinkedPath = "/"
    """Directory of the file system that shows them."""

    import_: Distinct[Event] = Field(alias="import", default=())
    """Changes in S3 that reach the file system by themselves. Default: none."""

    export: Distinct[Event] = ()
    """Changes in the file system that reach S3 by themselves. Default: none."""


class ExistingLustre(Model):
    """A file system that exists: it is mounted, and never made, changed or deleted."""

    id: FileSystemId
    """Id of the file system, such as `fs-0a1b2c3d4e5f60001`."""

    mount_name: MountName
    """Its mount name, which FSx chose."""

    security_group: SecurityGroupId
    """Security group of its network interfaces. Its owner opens Lustre's ports to our nodes there.
    """

    owner: AccountId | None = None
    """Account of the file system and of its security group. Default: the cluster's."""


class Lustre(Model):
    """An FSx for Lustre file system: persistent SSD that is made, or one that exists."""

    name: DnsLabel
    """Name of the file system, unique."""

    zone: str
    """Zone of the file system, one of `network.zones`."""

    capacity_gib: Annotated[int, Field(le=integer_bounds.LUSTRE_GIB)] | None = None
    """Storage in GiB: 1200, 2400, then steps of 2400; EFA: larger. Default: none, of `existing`."""

    throughput_mbps_per_tib: Annotated[int, one_of(fsx.THROUGHPUT_TIERS_MBPS_PER_TIB)] | None = None
    """Throughput in MB/s per TiB. Default: none, of `existing`."""

    efa: bool = False
    """Let clients reach it over EFA. Not supported yet."""

    claim: Claim | None = None
    """PersistentVolumeClaim through which pods mount it. Default: none."""

    s3: LustreS3 | None = None
    """Bucket whose objects it shows as files. Default: none."""

    existing: ExistingLustre | None = None
    """The file system that is mounted instead of a new one. Default: a new one is made."""


class Bucket(Model):
    """An S3 bucket, and the claim through which pods mount it by Mountpoint for S3."""

    name: BucketName
    """Name of the bucket in this file, unique."""

    existing: ExistingBucketName | None = None
    """S3's name of a bucket that exists, which is used as it is. Default: a new one is made."""

    key: KeyArn | None = None
    """KMS key of an existing bucket: ARN of the key. Default: S3's own encryption."""

    owner: AccountId | None = None
    """Account of an existing bucket. Default: the cluster's."""

    read_only: bool = False
    """Let pods that mount it read only. Default: false."""

    claim: Claim | None = None
    """PersistentVolumeClaim through which pods mount it. Default: none."""


StatedBucket = Annotated[
    Annotated[BucketName, Tag("plain")] | Annotated[Bucket, Tag("mapping")],
    told_apart_by_form(Bucket),
]


class Storage(Section):
    """File systems and buckets."""

    lustre: tuple[Lustre, ...] = ()
    """FSx for Lustre file systems, persistent SSD or existing. Default: none."""

    buckets: Annotated[
        tuple[StatedBucket, ...], Field(json_schema_extra={"uniqueItems": True})
    ] = ()
    """S3 buckets, each a name or a mapping. Those that are made are retained; S3 gives them names,
    which are outputs of the storage stack.

    Default: none.
    """

    default_claims: bool | None = None
    """Give every job namespace the claims `training-data-pvc` (`/data`) and `model-checkpoints-pvc`
    (`/checkpoints`).

    Default: true with HyperPod, else false.
    """

    @property
    def bucket_names(self) -> tuple[str, ...]:
        """Names of the buckets, in the order of the file."""
        return tuple(each if isinstance(each, str) else each.name for each in self.buckets)

    @property
    def existing_buckets(self) -> Mapping[str, Bucket]:
        """Buckets that exist, by their names in the file."""
        return {
            each.name: each
            for each in self.buckets
            if isinstance(each, Bucket) and each.existing is not None
        }

    @property
    def made_bucket_names(self) -> tuple[str, ...]:
        """Names of the buckets that are made, in the order of the file."""
        return tuple(name for name in self.bucket_names if name not in self.existing_buckets)

    @property
    def read_only_buckets(self) -> Collection[str]:
        """Names of the buckets that pods only read."""
        return {each.name for each in self.buckets if isinstance(each, Bucket) and each.read_only}

    @property
    def bucket_claims(self) -> Mapping[str, Claim]:
        """The claims of buckets, by the bucket's name."""
        return {
            each.name: each.claim
            for each in self.buckets
            if isinstance(each, Bucket) and each.claim is not None
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultClaim:
    """A claim of every job namespace.

    Attributes:
        name: Its name.
        mount_path: Where jobs mount it.
        lustre: The file system behind it, by its name in the cluster file; None with a bucket.
        bucket: The bucket behind it; None with a file system.
    """

    name: str
    mount_path: str
    lustre: str | None = None
    bucket: str | None = None


def has_default_claims(default_claims: bool | None, *, hyperpod: bool) -> bool:
    """Return whether job namespaces get the default claims.

    Args:
        default_claims: What the file says.
        hyperpod: Whether it has pools of HyperPod.
    """
    return hyperpod if default_claims is None else default_claims


def default_claims(*, lustre: Sequence[str], buckets: Sequence[str]) -> tuple[DefaultClaim, ...]:
    """Return the default claims that something is behind.

    Datasets are on the first file system, which is faster than S3, and checkpoints in the bucket of
    that name, which a fleet in any zone reads.

    Args:
        lustre: Names of the file systems, in the order of the file.
        buckets: Names of the buckets.
    """
    first = lustre[0] if lustre else None
    datasets = _DATASETS_BUCKET if first is None and _DATASETS_BUCKET in buckets else None
    bucket = _CHECKPOINTS if _CHECKPOINTS in buckets else None
    beside = (_CHECKPOINTS if _CHECKPOINTS in lustre else first) if bucket is None else None
    claims = (
        DefaultClaim(name=TRAINING_DATA_CLAIM, mount_path="/data", lustre=first, bucket=datasets),
        DefaultClaim(
            name=CHECKPOINTS_CLAIM, mount_path="/checkpoints", lustre=beside, bucket=bucket
        ),
    )
    return tuple(claim for claim in claims if claim.lustre or claim.bucket)


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
            yield refuse(
                f"buckets.{number}", "stands in the list twice", "keep one", got=f"{name!r}"
            )
        seen.add(name)


@rule
def default_claims_have_a_source(storage: Storage) -> Mistakes:
    names = [file_system.name for file_system in storage.lustre]
    if storage.default_claims and not default_claims(lustre=names, buckets=storage.bucket_names):
        wrong = "no file system and no bucket to claim"
        todo = "add one to lustre, or a bucket named datasets or checkpoints, or leave it out"
        yield refuse("default_claims", wrong, todo)


@rule
def exports_are_apart(links: Readable[LustreS3]) -> Mistakes:
    """Yield exports of two file systems to the same objects: each would undo the other's.

    Source: https://docs.aws.amazon.com/fsx/latest/LustreGuide/autoexport-data-repo-dra.html
    """
    seen: list[tuple[str, str, str]] = []
    for placed in links.placed:
        link = placed.item
        if not link.export:
            continue
        prefix = folder(link.prefix)
        for other_bucket, other_prefix, other in seen:
            if link.bucket == other_bucket and (
                prefix.startswith(other_prefix) or other_prefix.startswith(prefix)
            ):
                wrong = f"objects that {other} exports to too"
                yield Mistake((*placed.at, "export"), wrong, "choose another prefix, or export: []")
                break
        seen.append((link.bucket, prefix, placed.path))


@rule
def lustre_is_made_or_exists(file_system: Lustre) -> Mistakes:
    """Yield what a new file system lacks, and what an existing one cannot be given."""
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
            wrong = "nothing of an existing file system is set"
            yield refuse(key, wrong, "leave it out: its owner decides that")


@rule
def existing_file_systems_are_listed_once(systems: Readable[Lustre]) -> Mistakes:
    seen: dict[str, str] = {}
    for placed in systems.placed:
        existing = placed.item.existing
        if existing is None:
            continue
        if existing.id in seen:
            wrong = f"the file system of {seen[existing.id]} too"
            todo = "keep one; default_claims mounts it in further namespaces"
            yield Mistake((*placed.at, "existing", "id"), wrong, todo)
        seen.setdefault(existing.id, placed.path)


@rule
def foreign_keys_belong_to_existing_buckets(bucket: Bucket) -> Mistakes:
    if bucket.existing is not None:
        return
    if bucket.key is not None:
        todo = "leave it out, or name the bucket in existing; keys.storage is for what is made"
        yield refuse("key", "the key of a bucket that does not exist yet", todo)
    if bucket.owner is not None:
        todo = "leave it out, or name the bucket in existing"
        yield refuse("owner", "the owner of a bucket that does not exist yet", todo)


@rule
def bucket_key_is_of_the_region(bucket: Bucket, identity: Identity) -> Mistakes:
    """Yield the key of a bucket in another Region, which S3 cannot use.

    Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html
    """
    for wrong in () if bucket.key is None else misplaced_key(bucket.key, identity):
        todo = "bucket and cluster lie in one Region, and the key of a bucket in the bucket's"
        yield refuse("key", wrong, todo)


@rule
def existing_buckets_are_listed_once(storage: Storage) -> Mistakes:
    seen: dict[str, str] = {}
    for number, bucket in enumerate(storage.buckets):
        if isinstance(bucket, str) or bucket.existing is None:
            continue
        if bucket.existing in seen:
            wrong = f"the bucket of {seen[bucket.existing]} too"
            yield refuse(f"buckets.{number}.existing", wrong, "keep one")
        seen.setdefault(bucket.existing, bucket.name)


@rule
def checkpoints_can_be_written(storage: Storage) -> Mistakes:
    for number, bucket in enumerate(storage.buckets):
        if isinstance(bucket, Bucket) and bucket.read_only and bucket.name == _CHECKPOINTS:
            wrong = "the bucket that jobs write their checkpoints to"
            yield refuse(f"buckets.{number}.read_only", wrong, "use false, or another name")


@rule
def existing_buckets_tell_nobody(link: LustreS3, storage: Storage) -> Mistakes:
    """Yield imports from an existing bucket, into which FSx would write event notifications.

    Source: https://docs.aws.amazon.com/fsx/latest/LustreGuide/autoimport-data-repo-dra.html
    """
    if link.import_ and link.bucket in storage.existing_buckets:
        wrong = "FSx writes event notifications into the bucket for it, and this one is not ours"
        todo = "use import: []; objects that are there when the link is made are shown"
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
    kernel = versions.AMI_KERNELS.get(kubernetes.version)
    if (
        kernel is not None
        and kernel not in fsx.CLIENT_KERNELS
        and any(pool.runs_pinned_image for pool in pools)
    ):
        wrong = (
            f"nodes of Kubernetes {kubernetes.version} run Linux {kernel}, of which no source says "
            "that it mounts FSx for Lustre"
        )
        known = (v for v, line in versions.AMI_KERNELS.items() if line in fsx.CLIENT_KERNELS)
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
            wrong = "no subnet of network.subnets there has nodes in its use"
            yield refuse("zone", wrong, f"use {' or '.join(zones)}, or add a subnet")


@rule
def lustre_efa_has_clients(
    file_system: Lustre, pools: Readable[Pool], network: Network
) -> Mistakes:
    for placed in pools.placed if file_system.efa else ():
        pool = placed.item
        specs = [catalog.lookup(name) for name in pool.instance_types]
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


def folder(prefix: str) -> str:
    """Return an S3 prefix as FSx and Mountpoint take it: empty, or with a slash at its end."""
    return f"{prefix.rstrip('/')}/" if prefix.rstrip("/") else ""
