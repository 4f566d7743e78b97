"""A chart of the platform, and where the images of its pods come from."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

import cdk8s

from ultrascale.documents import Json, JsonObject
from ultrascale.plan.model import ImageCachePlan


@dataclass(frozen=True, kw_only=True)
class PlatformChart:
    """A chart and what becomes of its objects.

    Attributes:
        chart: The chart.
        retained: Its objects outlive it: deleting them would delete a user's jobs or claims.
        cache: Where its images come from instead of their publishers' registries, if there is one.
    """

    chart: cdk8s.Chart
    retained: bool
    cache: ImageCachePlan | None = None

    @cached_property
    def name(self) -> str:
        """Name of the chart, which is part of its file's name."""
        return self.chart.node.id

    @cached_property
    def manifests(self) -> Sequence[JsonObject]:
        """The objects."""
        cache = self.cache
        published = self._published
        return [_from(cache, each) for each in published] if cache else published

    @property
    def published_images(self) -> Iterator[str]:
        """The images of its pods, as their publishers have them."""
        for container in _containers(self._published):
            yield str(container["image"])

    @cached_property
    def _published(self) -> Sequence[JsonObject]:
        return self.chart.to_json()


@dataclass(frozen=True, kw_only=True)
class Charts:
    """Every chart of a cluster, each tuple in the order it is applied.

    Attributes:
        system_node_pools: What EKS Auto Mode launches the nodes of controllers from.
        platform: What runs in the cluster.
        teams: What the namespaces of HyperPod task governance hold, which makes them.
        node_pools: What Karpenter and EKS Auto Mode launch all other nodes from.
    """

    system_node_pools: tuple[PlatformChart, ...]
    platform: tuple[PlatformChart, ...]
    teams: tuple[PlatformChart, ...]
    node_pools: tuple[PlatformChart, ...]

    @property
    def all(self) -> tuple[PlatformChart, ...]:
        """Every chart."""
        return (*self.system_node_pools, *self.platform, *self.teams, *self.node_pools)

    @property
    def published_images(self) -> Set[str]:
        """The images of all pods, as their publishers have them."""
        return {image for chart in self.all for image in chart.published_images}


def _from(cache: ImageCachePlan, manifest: JsonObject) -> JsonObject:
    """Return ``manifest`` with every container's image from the cache."""
    changed = {key: _recast(cache, item) for key, item in manifest.items()}
    if _is_container(manifest):
        changed["image"] = cache.reference(str(manifest["image"]))
    return changed


def _recast(cache: ImageCachePlan, value: Json) -> Json:
    if isinstance(value, list):
        return [_recast(cache, item) for item in value]
    return _from(cache, value) if isinstance(value, Mapping) else value


def _containers(value: Json) -> Iterator[JsonObject]:
    if isinstance(value, list):
        for item in value:
            yield from _containers(item)
    elif isinstance(value, Mapping):
        if _is_container(value):
            yield value
        for item in value.values():
            yield from _containers(item)


def _is_container(value: JsonObject) -> bool:
    return isinstance(value.get("image"), str) and isinstance(value.get("name"), str)
