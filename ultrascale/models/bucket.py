"""Models in a bucket: folders with a `config.json` and files of weights.

Sources:
    https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html
    https://huggingface.co/docs/safetensors/index
"""

import json
import math
from collections.abc import Iterator, Mapping
from itertools import islice
from json import JSONDecodeError
from typing import TYPE_CHECKING

import pydantic
from msgspec.structs import replace

from ultrascale import config
from ultrascale.account import Account
from ultrascale.catalog.transformers import Transformer, UnreadableFiguresError, transformer_of
from ultrascale.documents import Json, mapping
from ultrascale.errors import UnansweredError
from ultrascale.frozen import Frozen

if TYPE_CHECKING:
    from mypy_boto3_s3.type_defs import ObjectTypeDef

_CONFIG = "config.json"
_INDEX = "model.safetensors.index.json"
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
    found = islice((each for page in pages for each in page["Contents"]), MOST_OBJECTS + 1)
    folders: dict[str, dict[str, int]] = {}
    count = 0
    for each in found:
        count += 1
        folder, _, name = _key(each).rpartition("/")
        folders.setdefault(folder, {})[name] = each.get("Size", 0)
    models = [
        _model(account, bucket, folder, files)
        for folder, files in sorted(folders.items())
        if _CONFIG in files
    ]
    return Listing(
        models=tuple(each for each in models if each.files or each.problem),
        complete=count <= MOST_OBJECTS,
    )


def _key(each: "ObjectTypeDef") -> str:
    return each.get("Key", "")


def _model(account: Account, bucket: str, folder: str, files: Mapping[str, int]) -> FoundModel:
    def read(name: str) -> Mapping[str, Json]:
        return _document(account, bucket, f"{folder}/{name}" if folder else name)

    figures, problems = None, list[str]()
    try:
        figures = transformer_of(read(_CONFIG))
    except UnansweredError as error:
        problems.append(f"{_CONFIG} cannot be read: {error.reason}")
    except UnreadableFiguresError as error:
        problems.append(str(error))
    except (JSONDecodeError, UnicodeDecodeError):
        problems.append(f"{_CONFIG} is no JSON")
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
    if not weights:
        problems.append("no weights that vLLM reads, as *.safetensors, lie beside it")
    found = FoundModel(
        path=folder,
        weights_bytes=sum(files[name] for name in weights),
        files=len(weights),
        figures=figures,
        problem="; ".join(problems),
    )
    return found if found.problem else replace(found, problem=_impossible(found))


def _impossible(found: FoundModel) -> str:
    """Return which figures no model has: whoever may write to the bucket wrote its files."""
    try:
        config.ServedModel.model_validate(figures_as_keys(found))
    except pydantic.ValidationError as error:
        keys = sorted({str(each["loc"][0]) for each in error.errors()})
        return f"no model has such figures: {', '.join(keys)}"
    return ""


def _weights(files: Mapping[str, int]) -> Iterator[str]:
    """Yield the files of weights that a server reads: of several formats the first."""
    for ending in (_SAFETENSORS, _PICKLED, _GGUF):
        found = [name for name in files if name.endswith(ending)]
        sharded = [name for name in found if not name.startswith("consolidated")]
        if found:
            # Both are the same weights, in two vendors' formats.
            yield from sharded or found
            return


def _document(account: Account, bucket: str, key: str) -> Mapping[str, Json]:
    s3 = account.client("s3")
    answer = account.ask(s3.get_object, Bucket=bucket, Key=key)
    return mapping(json.loads(answer["Body"].read(_MOST_BYTES)))


def figures_as_keys(found: FoundModel) -> Mapping[str, object]:
    """Return the keys of `jobs.NAME.model` for a model, in their order."""
    if found.figures is None:
        return {}
    figures = {key: getattr(found.figures, key) for key in config.FIGURES}
    keys = {"weights_gb": math.ceil(found.weights_bytes / 1e6) / 1000, **figures}
    return {key: value for key, value in keys.items() if value is not None}
