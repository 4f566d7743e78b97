"""The claims that every job namespace gets by itself, and what is behind them."""

from collections.abc import Sequence
from dataclasses import dataclass

from ultrascale.config.storage import (
    CHECKPOINTS_CLAIM,
    TRAINING_DATA_CLAIM,
)

_DATASETS_BUCKET = "datasets"
_CHECKPOINTS = "checkpoints"
_HYPERPOD = "hyperpod"


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


def has_default_claims(default_claims: bool | None, provisioners: frozenset[str]) -> bool:
    """Return whether job namespaces get the default claims.

    Args:
        default_claims: What the file says.
        provisioners: Of its pools.
    """
    return _HYPERPOD in provisioners if default_claims is None else default_claims


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
