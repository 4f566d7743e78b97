"""`storage` and `images`: file systems, buckets and image repositories."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from ultrascale.catalog import registries
from ultrascale.config._base import DnsLabel, Model, SubdomainName, matching

BucketName = Annotated[
    str,
    AfterValidator(
        matching(
            r"[a-z0-9](?:[a-z0-9-]{1,35}[a-z0-9])",
            "not a bucket name of 3 to 37 characters",
            "use lower-case letters, digits and '-'; S3 gives the bucket a name of its own",
        )
    ),
]
RepositoryName = Annotated[
    str,
    AfterValidator(
        matching(
            r"(?=.{2,256}$)[a-z0-9]+(?:[._-][a-z0-9]+)*(?:/[a-z0-9]+(?:[._-][a-z0-9]+)*)*",
            "not the name of an ECR repository",
            "use lower-case letters and digits, with single '.', '_', '-' or '/' between them",
        )
    ),
]
Host = Annotated[
    str,
    AfterValidator(
        matching(
            r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])",
            "not the host of a registry",
            "write it without https:// and path, such as ACCOUNT.dkr.ecr.REGION.amazonaws.com",
        )
    ),
]
MountPath = Annotated[
    str,
    AfterValidator(
        matching(
            r"(?:/[\w.-]+)+", "not an absolute path", "write it as /data, with no '/' at the end"
        )
    ),
]
Prefix = Annotated[
    str,
    AfterValidator(
        matching(r"(?:[^/\s][^\s]*)?", "not an S3 prefix", "leave out the '/' at its start")
    ),
]
LinkedPath = Annotated[
    str,
    AfterValidator(
        matching(
            r"/|(?:/[\w.-]+)+", "not an absolute path", "write it as /datasets, or / for all of it"
        )
    ),
]
Event = Literal["new", "changed", "deleted"]
Dockerfile = Literal["neuron", "nvidia", "cpu", "tensorboard", "backend", "none"]

# What programs of every job namespace may count on.
TRAINING_DATA_CLAIM = "training-data-pvc"
CHECKPOINTS_CLAIM = "model-checkpoints-pvc"
# Ends the name of the claim through which S3 shows what the claim of that name shows on Lustre.
STAND_IN_SUFFIX = "-s3"


class Claim(Model):
    """The PersistentVolumeClaim through which pods of one namespace mount a file system."""

    namespace: DnsLabel
    name: SubdomainName
    mount_path: MountPath


class LustreS3(Model):
    """The S3 data that a file system shows as files.

    Attributes:
        bucket: One of ``storage.buckets``.
        prefix: Key prefix; empty for the whole bucket.
        path: Directory of the file system in which they are.
        import_: Changes in S3 that reach the file system, key ``import``.
        export: Changes in the file system that reach S3.
    """

    bucket: str
    prefix: Prefix = ""
    path: LinkedPath = "/"
    import_: tuple[Event, ...] = Field(alias="import", default=())
    export: tuple[Event, ...] = ()


class Lustre(Model):
    """An FSx for Lustre file system, persistent SSD.

    Attributes:
        name: Unique in the cluster.
        zone: Its one zone.
        capacity_gib: Storage capacity, in GiB.
        throughput_mbps_per_tib: Throughput tier, in MB/s per TiB.
        efa: Whether clients reach it over EFA; cannot change later.
        claim: How pods mount it.
        s3: S3 data that it shows as files.
    """

    name: DnsLabel
    zone: str
    capacity_gib: int
    throughput_mbps_per_tib: int
    efa: bool = False
    claim: Claim | None = None
    s3: LustreS3 | None = None


class Storage(Model):
    """What outlives every node.

    Attributes:
        lustre: FSx for Lustre file systems.
        buckets: S3 buckets, retained.
        default_claims: Whether every job namespace gets claims for datasets and checkpoints; None
            leaves it to the pools: with HyperPod it does.
    """

    lustre: tuple[Lustre, ...] = ()
    buckets: tuple[BucketName, ...] = ()
    default_claims: bool | None = None


class Images(Model):
    """Container images.

    Attributes:
        repositories: ECR repositories.
        builds: Folder in ``images`` whose Dockerfile makes the image of a repository, or ``none``;
            for the others it follows from their names and the pools.
        eks_registry: Host of the EKS add-on image registry, for a Region that the catalog lacks.
        pull_through: Public registries that the platform's images come from through a cache in the
            account's own registry; None: by the number of nodes.
    """

    repositories: tuple[RepositoryName, ...] = ()
    builds: Mapping[str, Dockerfile] = Field(default_factory=dict[str, Dockerfile])
    eks_registry: Host | None = None
    pull_through: tuple[registries.Upstream, ...] | None = None
