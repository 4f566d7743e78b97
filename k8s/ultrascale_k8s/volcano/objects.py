"""Objects of kinds that `cdk8s_plus_27` has no class for."""

from collections.abc import Mapping
from typing import cast

import cdk8s
from constructs import Construct


def define_object(scope: Construct, id: str, manifest: Mapping[str, object]) -> cdk8s.ApiObject:
    """Define the object that ``manifest`` describes, field for field.

    Args:
        scope: The chart.
        id: Construct id.
        manifest: A whole object, with ``apiVersion``, ``kind`` and ``metadata``.
    """
    metadata = cast(Mapping[str, object], manifest["metadata"])
    resource = cdk8s.ApiObject(
        scope,
        id,
        api_version=str(manifest["apiVersion"]),
        kind=str(manifest["kind"]),
        metadata=cdk8s.ApiObjectMetadata(
            name=str(metadata["name"]),
            labels=cast(Mapping[str, str] | None, metadata.get("labels")),
            annotations=cast(Mapping[str, str] | None, metadata.get("annotations")),
        ),
    )
    for key, value in manifest.items():
        if key not in ("apiVersion", "kind", "metadata"):
            # The Python class takes no other fields than these three.
            resource.add_json_patch(cdk8s.JsonPatch.add(f"/{key}", value))
    return resource
