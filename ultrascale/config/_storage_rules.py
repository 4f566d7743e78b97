"""What file systems, buckets and claims must be to each other."""

from collections.abc import Iterator

from ultrascale.config._default_claims import default_claims as claims_of
from ultrascale.config._errors import Mistake, refuse
from ultrascale.config._reader import Part
from ultrascale.config.storage import Lustre, LustreS3

Mistakes = Iterator[Mistake]

# Kubernetes' and Volcano's own, where the driver of Mountpoint for S3 runs its pods, and what the
# write canary writes to.
_TAKEN_NAMESPACES = frozenset(
    {"kube-node-lease", "kube-public", "kube-system", "mount-s3", "volcano-system", "write-canary"}
)


def claim_has_a_namespace_of_jobs(namespace: str) -> Mistakes:
    if namespace in _TAKEN_NAMESPACES:
        wrong = "a namespace in which no jobs run"
        yield refuse("namespace", wrong, "use training, or a name of your own")


def default_claims_have_a_source(
    default_claims: bool | None, lustre: tuple[Lustre, ...], buckets: tuple[str, ...]
) -> Mistakes:
    if default_claims and not claims_of(lustre=[each.name for each in lustre], buckets=buckets):
        wrong = "no file system and no bucket to claim"
        todo = "add one to lustre, or a bucket named datasets or checkpoints, or leave it out"
        yield refuse("default_claims", wrong, todo)


def exports_are_apart(parts: tuple[Part, ...]) -> Mistakes:
    """Yield exports of two file systems to the same objects: each would undo the other's.

    Source: https://docs.aws.amazon.com/fsx/latest/LustreGuide/autoexport-data-repo-dra.html
    """
    seen: list[tuple[str, str, str]] = []
    for part in parts:
        fields = part.fields
        if part.kind is not LustreS3 or not {"bucket", "prefix", "export"} <= fields.keys():
            continue
        if not fields["export"]:
            continue
        bucket, prefix = str(fields["bucket"]), folder(str(fields["prefix"]))
        for other_bucket, other_prefix, other in seen:
            if bucket == other_bucket and (
                prefix.startswith(other_prefix) or other_prefix.startswith(prefix)
            ):
                wrong = f"objects that {other} exports to too"
                yield Mistake((*part.at, "export"), wrong, "choose another prefix, or export: []")
                break
        seen.append((bucket, prefix, ".".join(str(key) for key in part.at)))


def folder(prefix: str) -> str:
    """Return an S3 prefix as FSx and Mountpoint take it: empty, or with a slash at its end."""
    return f"{prefix.rstrip('/')}/" if prefix.rstrip("/") else ""
