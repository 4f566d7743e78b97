"""`storage`: file systems, buckets, and the claims through which jobs mount them."""

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, Tag

from ultrascale.catalog import integer_bounds, kubernetes
from ultrascale.catalog import lustre as fsx
from ultrascale.config._base import Model, Section, chosen_by_form
from ultrascale.config._values import (
    Distinct,
    DnsLabel,
    SubdomainName,
    WrongValueError,
    matching,
    one_of,
)
from ultrascale.config.identity import AccountId
from ultrascale.config.key_arn import KeyArn
from ultrascale.config.vpc import SecurityGroupId
from ultrascale.frozen import Frozen

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
    contents = kubernetes.holds(path)
    if contents is not None:
        wrong = f"the container has something else at this path: {contents}"
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
# Directory buckets and aliases of access points have other endings: their ARNs are no bucket's.
# Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
ExistingBucketName = Annotated[
    str,
    matching(
        r"(?!.*(?:-s3alias|--ol-s3|--x-s3|\.mrap|--table-s3)$)(?!.*\.\.)"
        r"(?!xn--|sthree-|amzn-s3-demo-)(?!(?:[0-9]+\.){3}[0-9]+$)"
        r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]",
        "not the name of a general purpose bucket",
        "write its name alone, without s3:// and without a prefix",
    ),
]
# The path of a data repository is the bucket's address and the prefix.
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

# Claims that programs of every job namespace may count on.
TRAINING_DATA_CLAIM = "training-data-pvc"
CHECKPOINTS_CLAIM = "model-checkpoints-pvc"
# Suffix of the S3 claim that shows the data of a Lustre claim.
STAND_IN_SUFFIX = "-s3"

_DATASETS_BUCKET = "datasets"
CHECKPOINTS_BUCKET = "checkpoints"


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

    read_only: bool | None = None
    """Let pods that mount it read only.

    Default: true where all of `jobs` in the claim's namespace are services, or people's pods beside
    them; else false.
    """

    claim: Claim | None = None
    """PersistentVolumeClaim through which pods mount it. Default: none."""


StatedBucket = Annotated[
    Annotated[BucketName, Tag("plain")] | Annotated[Bucket, Tag("mapping")],
    chosen_by_form(Bucket),
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
        return tuple(bucket if isinstance(bucket, str) else bucket.name for bucket in self.buckets)

    @property
    def existing_buckets(self) -> Mapping[str, Bucket]:
        """Buckets that exist, by their names in the file."""
        return {
            bucket.name: bucket
            for bucket in self.buckets
            if isinstance(bucket, Bucket) and bucket.existing is not None
        }

    @property
    def made_bucket_names(self) -> tuple[str, ...]:
        """Names of the buckets that the stacks make, in the order of the file."""
        return tuple(name for name in self.bucket_names if name not in self.existing_buckets)

    @property
    def read_only_buckets(self) -> Collection[str]:
        """Names of the buckets that the file makes read-only for pods."""
        return {
            bucket.name
            for bucket in self.buckets
            if isinstance(bucket, Bucket) and bucket.read_only
        }

    @property
    def writable_buckets(self) -> Collection[str]:
        """Names of the buckets that the file lets pods write to."""
        return {
            bucket.name
            for bucket in self.buckets
            if isinstance(bucket, Bucket) and bucket.read_only is False
        }

    @property
    def bucket_claims(self) -> Mapping[str, Claim]:
        """The claims of buckets, by the bucket's name."""
        return {
            bucket.name: bucket.claim
            for bucket in self.buckets
            if isinstance(bucket, Bucket) and bucket.claim is not None
        }


class DefaultClaim(Frozen):
    """A claim of every job namespace."""

    name: str  # Its name
    mount_path: str  # Where jobs mount it
    # The file system behind it, by its name in the cluster file; None with a bucket.
    lustre: str | None = None
    bucket: str | None = None  # The bucket behind it; None with a file system


def default_claims(*, lustre: Sequence[str], buckets: Sequence[str]) -> tuple[DefaultClaim, ...]:
    """Return the default claims that have a file system or bucket behind them.

    Datasets are on the first file system, which is faster than S3; checkpoints in the bucket of
    that name, which a fleet in any zone reads.

    Args:
        lustre: Names of the file systems, in the order of the file.
        buckets: Names of the buckets.
    """
    first = lustre[0] if lustre else None
    datasets = _DATASETS_BUCKET if first is None and _DATASETS_BUCKET in buckets else None
    bucket = CHECKPOINTS_BUCKET if CHECKPOINTS_BUCKET in buckets else None
    beside = (
        (CHECKPOINTS_BUCKET if CHECKPOINTS_BUCKET in lustre else first) if bucket is None else None
    )
    claims = (
        DefaultClaim(name=TRAINING_DATA_CLAIM, mount_path="/data", lustre=first, bucket=datasets),
        DefaultClaim(
            name=CHECKPOINTS_CLAIM, mount_path="/checkpoints", lustre=beside, bucket=bucket
        ),
    )
    return tuple(claim for claim in claims if claim.lustre or claim.bucket)


def folder(prefix: str) -> str:
    """Return an S3 prefix as FSx and Mountpoint take it: empty, or with a slash at its end."""
    return f"{prefix.rstrip('/')}/" if prefix.rstrip("/") else ""
