"""Bill of materials in the CycloneDX format, written by CycloneDX's own library.

cyclonedx-python-lib 11 has no compositions, which state that AWS's own images hold more than is
listed: this module adds them to the library's output.

Source: https://cyclonedx.org/docs/1.6/json/
"""

# py-serializable's decorators hide the types of the library's classes.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false

import json
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashType, Property, XsUri
from cyclonedx.model import HashAlgorithm as Algorithm
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component as Entry
from cyclonedx.model.component import ComponentType as Type
from cyclonedx.model.tool import ToolRepository
from cyclonedx.output.json import JsonV1Dot6

from ultrascale.documents import JsonObject, mapping, parse_json
from ultrascale.release import PRODUCT, VERSION
from ultrascale.sbom.model import Component, Kind, merged

_TYPES: Mapping[Kind, Type] = MappingProxyType(
    {
        "container image": Type.CONTAINER,
        "own image": Type.CONTAINER,
        "Python package": Type.LIBRARY,
        "Helm chart": Type.APPLICATION,
        "EKS add-on": Type.APPLICATION,
        "machine image": Type.OPERATING_SYSTEM,
        "Lambda runtime": Type.PLATFORM,
        "Lambda layer": Type.APPLICATION,
        "service": Type.PLATFORM,
        "CDK library": Type.LIBRARY,
    }
)
# Kinds of components without hidden contents; images and charts hold parts that their publishers do
# not list.
_WHOLE: tuple[Kind, ...] = ("Python package", "CDK library")


def bill_of_materials(cluster: str, components: Sequence[Component]) -> JsonObject:
    """Return the bill of materials of a cluster.

    The bill has no timestamp, and its serial number follows from its content: the same cluster has
    the same bill of materials, byte for byte.

    Args:
        cluster: Name of the cluster.
        components: Its components.
    """
    everything = merged(_components_with_parts(components))
    entries = {component.ref: _entry(component) for component in everything}
    root = Entry(type=Type.PLATFORM, name=cluster, bom_ref=f"cluster:{cluster}")
    tool = Entry(type=Type.APPLICATION, name=PRODUCT, version=VERSION)
    bom = Bom(
        components=entries.values(),
        metadata=BomMetaData(component=root, tools=ToolRepository(components=[tool])),
    )
    bom.register_dependency(root, [entries[component.ref] for component in components])
    for component in everything:
        parts = [entries[part.ref] for part in component.parts]
        bom.register_dependency(entries[component.ref], parts)
    document: JsonObject = parse_json(JsonV1Dot6(bom).output_as_string())
    own = sorted(component.ref for component in everything if component.kind not in _WHOLE)
    # The library's timestamp and serial number differ from run to run.
    metadata = {k: v for k, v in mapping(document["metadata"]).items() if k != "timestamp"}
    composition = {"aggregate": "incomplete", "assemblies": own}
    body = {k: v for k, v in document.items() if k != "serialNumber"}
    body |= {"metadata": metadata, "compositions": [composition]}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return {**body, "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, text)}"}


def _components_with_parts(components: Sequence[Component]) -> Iterator[Component]:
    for component in components:
        yield component
        yield from _components_with_parts(component.parts)


def _entry(component: Component) -> Entry:
    hashes = [HashType(alg=Algorithm.SHA_256, content=digest) for digest in component.sha256]
    # A Python package has one wheel for each platform: the digests belong to the wheels.
    is_package = component.kind == "Python package"
    kind = ExternalReferenceType.DISTRIBUTION if is_package else ExternalReferenceType.WEBSITE
    references: list[ExternalReference] = []
    if component.source is not None:
        uri = XsUri(component.source)
        references.append(
            ExternalReference(type=kind, url=uri, hashes=hashes if is_package else [])
        )
    return Entry(
        type=_TYPES[component.kind],
        bom_ref=component.ref,
        name=component.name,
        version=component.version,
        purl=component.purl,
        hashes=[] if is_package else hashes,
        external_references=references,
        properties=[
            Property(name="ultrascale:kind", value=component.kind),
            *(Property(name="ultrascale:used-by", value=user) for user in component.used_by),
        ],
    )
