"""Charts of the platform, and the registries of the images of their pods."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from typing import TypeAlias

import cdk8s

from ultrascale.documents import Json, JsonObject, text
from ultrascale.frozen import Frozen
from ultrascale.plan.model import CopiesPlan, ImageCachePlan
from ultrascale_k8s.objects import named_by_template

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
