"""Definition of plain documents as objects of cdk8s charts."""

from collections.abc import Iterable, Mapping

import cdk8s
from constructs import Construct

from ultrascale.documents import JsonObject, mapping, text
from ultrascale_k8s.objects import name_of


def define_object(scope: Construct, id: str, manifest: JsonObject) -> cdk8s.ApiObject:
    """Define the object that ``manifest`` describes, with every field unchanged.

    Args:
        scope: The chart.
        id: Construct id.
        manifest: A whole object, with ``apiVersion``, ``kind`` and ``metadata``.
    """
    resource = cdk8s.ApiObject(
        scope,
        id,
        api_version=text(manifest, "apiVersion"),
        kind=text(manifest, "kind"),
        metadata=cdk8s.ApiObjectMetadata(
            name=name_of(manifest),
            namespace=text(manifest, "metadata", "namespace") or None,
            labels=_strings(manifest, "labels"),
            annotations=_strings(manifest, "annotations"),
        ),
    )
    for key, value in manifest.items():
        if key not in ("apiVersion", "kind", "metadata"):
            # cdk8s' Python class takes no other fields than these three.
            resource.add_json_patch(cdk8s.JsonPatch.add(f"/{key}", value))
    return resource


def define_objects(scope: Construct, manifests: Iterable[JsonObject]) -> None:
    """Define several objects, each under its kind and name."""
    for manifest in manifests:
        define_object(scope, f"{text(manifest, 'kind')}-{name_of(manifest)}", manifest)


def _strings(manifest: JsonObject, key: str) -> Mapping[str, str] | None:
    """Return labels or annotations; None if the manifest has none."""
    values = mapping(manifest, "metadata", key)
    return {name: str(value) for name, value in values.items()} or None
