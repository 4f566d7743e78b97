"""Charts of the platform, and the registries of the images of their pods."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from typing import TypeAlias

import cdk8s
from constructs import Construct

from ultrascale.documents import Json, JsonObject, mapping, text
from ultrascale.frozen import Frozen
from ultrascale.plan.model import CopiesPlan, ImageCachePlan
from ultrascale_k8s.objects import name_of, named_by_template

Copies: TypeAlias = ImageCachePlan | CopiesPlan


class PlatformChart(Frozen, dict=True):
    """Objects that are applied together, and may outlive their stack."""

    name: str  # Its name, which is part of its file's name
    published: Sequence[JsonObject]  # Its objects, with images in the publishers' registries
    # Whether its objects outlive it. Their deletion would delete jobs or claims.
    retained: bool = False
    # Copies of images, used instead of their publishers' registries; None without any.
    copies: Copies | None = None

    @cached_property
    def manifests(self) -> Sequence[JsonObject]:
        """Objects of the chart, with copies of images if there are any."""
        copies, published = self.copies, self.published
        cast = [_with_copies(copies, manifest) for manifest in published] if copies else published
        return [named_by_template(manifest) for manifest in cast]

    @property
    def published_images(self) -> Iterator[str]:
        """Images of the chart's pods, in their publishers' registries."""
        for container in _containers(self.published):
            yield text(container, "image")


def plain_chart(
    name: str, objects: Iterable[JsonObject], *, retained: bool = False
) -> PlatformChart:
    """Return a chart of plain objects."""
    return PlatformChart(name=name, published=[*objects], retained=retained)


def built_chart(chart: cdk8s.Chart, *, retained: bool = False) -> PlatformChart:
    """Return the chart of a cdk8s chart's objects, called by the cdk8s chart's id."""
    return plain_chart(chart.node.id, chart.to_json(), retained=retained)


class Charts(Frozen):
    """All charts of a cluster, in the order of their application."""

    # NodePools of EKS Auto Mode for the nodes of controllers.
    system_node_pools: tuple[PlatformChart, ...]
    platform: tuple[PlatformChart, ...]  # Programs and policies of the cluster
    # Objects in the namespaces that HyperPod task governance creates.
    teams: tuple[PlatformChart, ...]
    node_pools: tuple[PlatformChart, ...]  # All other NodePools, of Karpenter and of EKS Auto Mode
    # Objects of parts with their own stacks, by the layer of the stack.
    of_layers: Mapping[str, tuple[PlatformChart, ...]]

    @property
    def all(self) -> tuple[PlatformChart, ...]:
        """All charts in one tuple."""
        return (
            *self.system_node_pools,
            *self.platform,
            *(chart for charts in self.of_layers.values() for chart in charts),
            *self.teams,
            *self.node_pools,
        )

    @property
    def published_images(self) -> Set[str]:
        """Images of all pods, in their publishers' registries."""
        return {image for chart in self.all for image in chart.published_images}


def _with_copies(copies: Copies, value: JsonObject) -> JsonObject:
    """Return ``value`` with each container's image replaced by its copy."""
    changed = {key: _recast_field(copies, field) for key, field in value.items()}
    if _is_container(value):
        changed["image"] = copies.reference(text(value, "image"))
    return changed


def _recast_field(copies: Copies, value: Json) -> Json:
    if isinstance(value, Mapping):
        return _with_copies(copies, value)
    if isinstance(value, list):
        return [_recast_field(copies, item) for item in value]
    return value


def _containers(value: Json) -> Iterator[JsonObject]:
    if isinstance(value, Mapping):
        if _is_container(value):
            yield value
        for field in value.values():
            yield from _containers(field)
    elif isinstance(value, list):
        for item in value:
            yield from _containers(item)


def _is_container(value: JsonObject) -> bool:
    return isinstance(value.get("image"), str) and isinstance(value.get("name"), str)


# --- Definition of plain documents as objects of cdk8s charts -------------------------------------


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
