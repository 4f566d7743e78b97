"""Models in a bucket: folders with a `config.json` and files of weights.

Sources:
    https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html
    https://huggingface.co/docs/safetensors/index
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from json import JSONDecodeError

import pydantic
from msgspec import field
from msgspec.structs import replace

from ultrascale import config
from ultrascale.account import Account, bucket_of_stack
from ultrascale.catalog.transformers import Transformer, UnreadableFiguresError, transformer_of
from ultrascale.documents import Json, mapping, parse_json
from ultrascale.errors import UnansweredError, UsageError
from ultrascale.frozen import Frozen
from ultrascale.parts.models import section
from ultrascale.parts.models.section import FIGURES
from ultrascale.plan.namespaces import serving_namespaces
from ultrascale.plan.stacks import stack_of

CONFIG = "config.json"
"""File of a folder that makes it a model of Hugging Face's libraries."""
_INDEX = "model.safetensors.index.json"
_RESULTS = "evaluation.json"
_SAFETENSORS, _PICKLED, _GGUF = ".safetensors", ".bin", ".gguf"
# A folder of weights has a few hundred objects: a bucket with more is one of something else.
MOST_OBJECTS = 200_000
# A description of a model has some kilobytes; an index of the largest some megabytes.
_MOST_BYTES = 32 * 2**20


class FoundModel(Frozen):
    """A model in a bucket."""

    path: str  # Its folder in the bucket, without a slash at its end; empty for all of the bucket
    weights_bytes: int  # Size of its weight files
    files: int  # Number of them
    # Figures that its memory follows from; None where they cannot be read.
    figures: Transformer | None
    problem: str  # Reason that it cannot be served, or its figures not be read; empty for none
    # Figures of its last evaluation by the recipe `evaluate`; empty without
    evaluation: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def keys(self) -> Mapping[str, object]:
        """The keys of `jobs.NAME.model` for it, in their order."""
        if self.figures is None:
            return {}
        figures = {key: getattr(self.figures, key) for key in FIGURES}
        keys = {"weights_gb": math.ceil(self.weights_bytes / 1e6) / 1000, **figures}
        return {key: value for key, value in keys.items() if value is not None}

    @property
    def shape(self) -> Transformer | None:
        """The figures that its memory follows from; None where a problem hides them."""
        if self.figures is None or self.problem:
            return None
        return section.transformer_of(section.ServedModel.model_validate(self.keys))


class Listing(Frozen):
    """The models below a prefix."""

    models: tuple[FoundModel, ...]  # The models, by path
    complete: bool  # Whether all objects were looked at


def find_models(account: Account, bucket: str, prefix: str) -> Listing:
    """Return the models of a bucket below a prefix.

    Args:
        account: The account of the user's credentials.
        bucket: S3's name of the bucket.
        prefix: Key prefix; empty for the whole bucket.

    Raises:
        UnansweredError: AWS refused to list the bucket.
    """
    s3 = account.client("s3")
    pages = account.ask_pages(s3.list_objects_v2, Bucket=bucket, Prefix=prefix)
    items = islice((item for page in pages for item in page["Contents"]), MOST_OBJECTS + 1)
    folders: dict[str, dict[str, int]] = {}
    count = 0
    for item in items:
        count += 1
        folder, _, name = item.get("Key", "").rpartition("/")
        folders.setdefault(folder, {})[name] = item.get("Size", 0)
    models = [
        model_of(folder, files, partial(_document, account, bucket))
        for folder, files in sorted(folders.items())
        if CONFIG in files
    ]
    return Listing(
        models=tuple(model for model in models if model.files or model.problem),
        complete=count <= MOST_OBJECTS,
    )


def model_of(
    folder: str, files: Mapping[str, int], document: Callable[[str], Mapping[str, Json]]
) -> FoundModel:
    """Return the model in a folder with a `CONFIG`; ``document`` reads JSON by its whole path."""

    def read(name: str) -> Mapping[str, Json]:
        return document(f"{folder}/{name}" if folder else name)

    figures, problems = None, list[str]()
    try:
        figures = transformer_of(read(CONFIG))
    except UnansweredError as error:
        problems.append(f"{CONFIG} cannot be read: {error.reason}")
    except UnreadableFiguresError as error:
        problems.append(str(error))
    except (JSONDecodeError, UnicodeDecodeError):
        problems.append(f"{CONFIG} is no JSON")
    weights = [*_weights(files)]
    if _INDEX in files:
        try:
            named = {str(name) for name in mapping(read(_INDEX).get("weight_map")).values()}
        except (UnansweredError, JSONDecodeError, UnicodeDecodeError):
            named = set[str]()
            problems.append(f"{_INDEX} cannot be read")
        if missing := sorted(named - files.keys()):
            problems.append(f"{len(missing)} of {len(named)} files are missing: {missing[0]}, …")
        weights = sorted(named & files.keys()) or weights
    evaluation: Mapping[str, float] = {}
    if _RESULTS in files:
        with suppress(UnansweredError, JSONDecodeError, UnicodeDecodeError):
            found = mapping(read(_RESULTS).get("results"))
            evaluation = {n: v for n, v in found.items() if isinstance(v, int | float)}
    if not weights:
        problems.append("no weights that vLLM reads, as *.safetensors, lie beside it")
    model = FoundModel(
        path=folder,
        weights_bytes=sum(files[name] for name in weights),
        files=len(weights),
        figures=figures,
        problem="; ".join(problems),
        evaluation=evaluation,
    )
    return model if model.problem else replace(model, problem=_impossible(model))


def _impossible(model: FoundModel) -> str:
    """Return the figures that no model has: every writer of the bucket can write its files."""
    try:
        section.ServedModel.model_validate(model.keys)
    except pydantic.ValidationError as error:
        keys = sorted({str(item["loc"][0]) for item in error.errors()})
        return f"no model has such figures: {', '.join(keys)}"
    return ""


def _weights(files: Mapping[str, int]) -> Iterator[str]:
    """Yield the files of weights that a server reads: of several formats the first."""
    for ending in (_SAFETENSORS, _PICKLED, _GGUF):
        named = [name for name in files if name.endswith(ending)]
        sharded = [name for name in named if not name.startswith("consolidated")]
        if named:
            # Both are the same weights, in two vendors' formats.
            yield from sharded or named
            return


def _document(account: Account, bucket: str, key: str) -> Mapping[str, Json]:
    s3 = account.client("s3")
    answer = account.ask(s3.get_object, Bucket=bucket, Key=key)
    return mapping(parse_json(answer["Body"].read(_MOST_BYTES)))


# Buckets of a cluster file by S3's names, and the paths of their mounts in services.
_REMOTE = "s3://"


class Place(Frozen):
    """A prefix of a bucket."""

    bucket: str  # The bucket, by its name in the cluster file or S3's own
    prefix: str  # Key prefix; empty for the whole bucket
    s3_name: str  # S3's name of the bucket
    # Path at which a claim of the file shows the bucket; empty without a claim.
    mount_path: str = ""
    namespace: str = ""  # Namespace of that claim; empty without

    def path_of(self, folder: str) -> str:
        """Return the path at which a server finds a folder of the bucket."""
        if self.mount_path:
            return f"{self.mount_path}/{folder}" if folder else self.mount_path
        return f"{_REMOTE}{self.s3_name}/{folder}".rstrip("/")


def buckets_of_services(cluster: config.Cluster) -> tuple[str, ...]:
    """Return the buckets with a claim in a namespace of services, else all buckets with one."""
    claims, services = cluster.storage.bucket_claims, serving_namespaces(cluster)
    served = tuple(name for name, claim in claims.items() if claim.namespace in services)
    return served or tuple(claims)


def place_of(account: Account, cluster: config.Cluster, stated: str) -> Place:
    """Return the bucket and prefix that ``stated`` names.

    Args:
        account: The account of the user's credentials.
        cluster: The cluster file.
        stated: `BUCKET/PREFIX`; BUCKET is one of the file, or S3's own name of one.

    Raises:
        UsageError: A bucket of the file does not exist yet.
        UnansweredError: AWS does not tell its name.
    """
    bucket, _, prefix = stated.removeprefix(_REMOTE).partition("/")
    if stated.startswith(_REMOTE) or bucket not in cluster.storage.bucket_names:
        return Place(bucket=bucket, prefix=prefix, s3_name=bucket)
    claim = cluster.storage.bucket_claims.get(bucket)
    existing = cluster.storage.existing_buckets.get(bucket)
    return Place(
        bucket=bucket,
        prefix=prefix,
        s3_name=_stack_bucket(account, cluster, bucket)
        if existing is None or existing.existing is None
        else existing.existing,
        mount_path="" if claim is None else claim.mount_path,
        namespace="" if claim is None else claim.namespace,
    )


def _stack_bucket(account: Account, cluster: config.Cluster, bucket: str) -> str:
    """Return S3's name of a bucket that the storage stack makes."""
    stack = stack_of(cluster.name, "storage")
    name = bucket_of_stack(account, stack, bucket)
    if not name:
        raise UsageError(
            [
                f"BUCKET: {bucket} of the file does not exist yet: stack {stack} makes it; "
                "`ultrascale deploy FILE` first, or name another bucket as s3://NAME/PREFIX"
            ]
        )
    return name
