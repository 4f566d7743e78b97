"""A bill of materials in the CycloneDX format.

It is written by hand: cyclonedx-python-lib 11 has no compositions, which say that AWS's own images
hold more than is listed. A test holds each bill against that library's schema.

Source: https://cyclonedx.org/docs/1.6/json/
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from uuid import NAMESPACE_URL, uuid5

from ultrascale.documents import Json, JsonObject
from ultrascale.release import PRODUCT, VERSION
from ultrascale.sbom.model import Component, Kind, merged

SPEC_VERSION = "1.6"
_TYPES: Mapping[Kind, str] = MappingProxyType(
    {
        "container image": "container",
        "own image": "container",
        "Python package": "library",
        "Helm chart": "application",
        "EKS add-on": "application",
        "machine image": "operating-system",
        "Lambda runtime": "platform",
        "Lambda layer": "application",
        "service": "platform",
        "CDK library": "library",
    }
)
# Kinds without hidden contents; an image or a chart holds what its publisher put into it.
_WHOLE: tuple[Kind, ...] = ("Python package", "CDK library")


def bill_of_materials(cluster: str, components: Sequence[Component]) -> JsonObject:
    """Return the bill of materials of a cluster.

    It has no timestamp, and its serial number follows from its content: the same cluster has the
    same bill of materials, byte for byte.

    Args:
        cluster: Name of the cluster.
        components: Its components.
    """
    everything = merged(_with_parts(components))
    root = f"cluster:{cluster}"
    body: JsonObject = {
        "version": 1,
        "metadata": {
            "tools": {"components": [{"type": "application", "name": PRODUCT, "version": VERSION}]},
            "component": {"type": "platform", "bom-ref": root, "name": cluster},
        },
        "components": [_component(component) for component in everything],
        "dependencies": [
            {"ref": root, "dependsOn": sorted({component.ref for component in components})},
            *(
                {"ref": component.ref, "dependsOn": sorted({part.ref for part in component.parts})}
                for component in everything
                if component.parts
            ),
        ],
        "compositions": [
            {
                "aggregate": "incomplete",
                "assemblies": sorted(
                    component.ref for component in everything if component.kind not in _WHOLE
                ),
            }
        ],
    }
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return {
        "$schema": f"http://cyclonedx.org/schema/bom-{SPEC_VERSION}.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": SPEC_VERSION,
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, text)}",
        **body,
    }


def _with_parts(components: Sequence[Component]) -> Iterator[Component]:
    for component in components:
        yield component
        yield from _with_parts(component.parts)


def _component(component: Component) -> JsonObject:
    entry: dict[str, Json] = {
        "type": _TYPES[component.kind],
        "bom-ref": component.ref,
        "name": component.name,
    }
    if component.version is not None:
        entry["version"] = component.version
    if component.purl is not None:
        entry["purl"] = component.purl
    hashes = [{"alg": "SHA-256", "content": digest} for digest in component.sha256]
    if component.source is not None:
        # A Python package has one wheel for each platform: the digests belong to the wheels.
        files = {"hashes": hashes} if hashes and component.kind == "Python package" else {}
        kind = "distribution" if component.kind == "Python package" else "website"
        entry["externalReferences"] = [{"type": kind, "url": component.source, **files}]
    if hashes and component.kind != "Python package":
        entry["hashes"] = hashes
    entry["properties"] = [
        {"name": "ultrascale:kind", "value": component.kind},
        *({"name": "ultrascale:used-by", "value": user} for user in component.used_by),
    ]
    return entry
