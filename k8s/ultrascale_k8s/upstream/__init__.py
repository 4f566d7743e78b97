"""Objects of upstream's manifests at the pinned releases, as `tools/upstream.py` writes them."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import cast

import yaml

from ultrascale.documents import JsonObject, objects, text


@cache
def upstream_objects(file: str) -> Mapping[str, JsonObject]:
    """Return the objects of ``file`` by their names, in its order.

    Args:
        file: Name of a file of this folder, without its ending.
    """
    stream = (Path(__file__).parent / f"{file}.yaml").read_text(encoding="utf-8")
    documents = cast("list[JsonObject]", list(yaml.load_all(stream, Loader=yaml.CSafeLoader)))
    return {text(document, "metadata", "name"): document for document in documents}


def upstream_rules(file: str, role: str) -> list[JsonObject]:
    """Return the rules of the ClusterRole ``role`` of ``file``."""
    return [*objects(upstream_objects(file)[role], "rules")]
