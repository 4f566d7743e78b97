"""`storage`: file systems, buckets, and the claims through which jobs mount them."""

from collections.abc import Mapping, Sequence
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
from ultrascale.config.kubernetes import Kubernetes
from ultrascale.config.network import Network
from ultrascale.config.pools import Pool, zones_of

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


class Lustre(Model):
    """An FSx for Lustre file system, persistent SSD."""

    name: DnsLabel
    """Name of the file system, unique."""

    zone: str
    """Zone of the file system, one of `network.zones`."""

    capacity_gib: Annotated[int, Field(le=integer_bounds.LUSTRE_GIB)]
    """Storage in GiB: 1200, 2400, then steps of 2400; with EFA larger steps."""

    throughput_mbps_per_tib: Annotated[int, one_of(fsx.THROUGHPUT_TIERS_MBPS_PER_TIB)]
    """Throughput in MB/s per TiB."""

    efa: bool = False
    """Let clients reach it over EFA. Not supported yet."""

    claim: Claim | None = None
    """PersistentVolumeClaim through which pods mount it. Default: none."""

    s3: LustreS3 | None = None
    """Bucket whose objects it shows as files. Default: none."""


class Bucket(Model):
    """An S3 bucket, and the claim through which pods mount it by Mountpoint for S3."""

    name: BucketName
    """Name of the bucket in this file, unique."""

    claim: Claim | None = None
    """PersistentVolumeClaim through which pods mount it. Default: none."""


StatedBucket = Annotated[
    Annotated[BucketName, Tag("plain")] | Annotated[Bucket, Tag("mapping")],
    told_apart_by_form(Bucket),
]


class Storage(Section):
    """File systems and buckets."""

    lustre: tuple[Lustre, ...] = ()
    """FSx for Lustre file systems, persistent SSD. Default: none."""

    buckets: Annotated[
        tuple[StatedBucket, ...], Field(json_schema_extra={"uniqueItems": True})
    ] = ()
    """S3 buckets, retained, each a name or a mapping. S3 gives them names, which are outputs of the
    storage stack.

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
def lustre_tier_exists(file_system: Lustre) -> Mistakes:
    if file_system.throughput_mbps_per_tib not in fsx.THROUGHPUT_TIERS_MBPS_PER_TIB:
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
    known = tier in fsx.THROUGHPUT_TIERS_MBPS_PER_TIB
    if known and not fsx.is_capacity(size, tier=tier, efa=efa):
        nearest = fsx.nearest_capacities(size, tier=tier, efa=efa)
        wrong = f"not a size at {tier} MB/s per TiB{' with EFA' if efa else ''}"
        todo = f"nearest: {' or '.join(str(n) for n in nearest)}"
        yield Mistake(("capacity_gib",), wrong, todo, rests_on=("efa",))


@rule
def lustre_zone_has_a_subnet(file_system: Lustre, network: Network) -> Mistakes:
    if network.zone_names and file_system.zone not in network.zone_names:
        yield refuse("zone", *network.why_no_subnet())


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
