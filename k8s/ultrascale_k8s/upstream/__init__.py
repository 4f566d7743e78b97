"""Objects from upstream's manifests at the pinned releases, written by `tools/upstream.py`."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import cast

import yaml

from ultrascale.documents import JsonObject, objects, text


@cache
def upstream_objects(file: str) -> Mapping[str, JsonObject]:
    """Return the objects of ``file`` by name, in the order of the file.

    Args:
        file: Name of a file in this folder, without the suffix.
    """
    stream = (Path(__file__).parent / f"{file}.yaml").read_text(encoding="utf-8")
    documents = cast("list[JsonObject]", list(yaml.load_all(stream, Loader=yaml.CSafeLoader)))
    return {text(document, "metadata", "name"): document for document in documents}


def upstream_rules(file: str, role: str) -> list[JsonObject]:
    """Return the rules of the ClusterRole ``role`` of ``file``."""
    return [*objects(upstream_objects(file)[role], "rules")]
