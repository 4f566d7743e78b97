"""What `karpenter` must be to Kubernetes and to the pools that it launches."""

from collections.abc import Iterator, Mapping

from ultrascale import catalog
from ultrascale.catalog import karpenter as facts
from ultrascale.config._efa import has_efa
from ultrascale.config._errors import Mistake, refuse
from ultrascale.config._pool_rules import TWO_OWNERS
from ultrascale.config.pools import Pool
from ultrascale.config.purchase import CapacityBlock, Odcr

Mistakes = Iterator[Mistake]

_FEATURES: Mapping[facts.Feature, str] = {
    "odcr": "capacity reservations",
    "capacity-block": "Capacity Blocks",
    "static": "pools of a fixed size",
    "ip-prefixes": "nodes that launch with prefixes",
    "efa": "EFA interfaces",
    "placement-group": "placement groups",
}


def karpenter_is_the_only_one(provisioners: frozenset[str]) -> Mistakes:
    if "auto-mode" in provisioners:
        todo = "remove it, with its pools" if "karpenter" in provisioners else "remove it"
        yield refuse("", TWO_OWNERS, f"{todo}, or use a cluster for each", got="")


def karpenter_is_sound(version: str) -> Mistakes:
    todo = f"use {facts.NEWEST_VERSION}"
    if version in facts.RETRACTED_VERSIONS:
        yield refuse("version", "a release of Karpenter with a regression", todo)
    elif facts.release(version)[0] != facts.release(facts.NEWEST_VERSION)[0]:
        wrong = "a major version of Karpenter that this product does not know"
        yield refuse("version", wrong, todo)


def karpenter_suits_kubernetes(version: str, kubernetes_version: str) -> Mistakes:
    oldest = facts.OLDEST_VERSIONS.get(kubernetes_version)
    if oldest is not None and _older(version, oldest):
        wrong = f"too old for Kubernetes {kubernetes_version}"
        yield refuse("version", wrong, f"use {oldest} or later")


def karpenter_suits_its_pools(version: str, cluster_pools: tuple[Pool, ...]) -> Mistakes:
    """Judge by the feature that came last: the API server refuses fields it does not know."""
    missing: list[tuple[facts.Feature, int]] = [
        (feature, number)
        for number, pool in _launched(cluster_pools)
        for feature in _needs(pool)
        if _older(version, facts.FEATURES[feature])
    ]
    if missing:
        feature, number = max(missing, key=lambda m: facts.release(facts.FEATURES[m[0]]))
        wrong = f"too old for {_FEATURES[feature]}, as in pools.{number}"
        yield refuse("version", wrong, f"use {facts.FEATURES[feature]} or later")


def _launched(pools: tuple[Pool, ...]) -> Iterator[tuple[int, Pool]]:
    for number, pool in enumerate(pools):
        if pool.provisioner == "karpenter":
            yield number, pool


def _needs(pool: Pool) -> Iterator[facts.Feature]:
    specs = [catalog.lookup(name) for name in pool.instance_types]
    if isinstance(pool.purchase, Odcr):
        yield "odcr"
    if isinstance(pool.purchase, CapacityBlock):
        yield "capacity-block"
    if pool.nodes.static is not None:
        yield "static"
    if pool.placement_group:
        yield "placement-group"
    if any(spec.accelerator for spec in specs):
        yield "ip-prefixes"
    if has_efa(pool):
        yield "efa"


def _older(version: str, than: str) -> bool:
    return facts.release(version) < facts.release(than)
