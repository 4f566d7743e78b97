"""`karpenter`: self-managed Karpenter."""

from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import Field

from ultrascale.catalog import integer_bounds
from ultrascale.catalog import karpenter as facts
from ultrascale.config._base import Section
from ultrascale.config._errors import Mistakes, note, refuse
from ultrascale.config._parts import Readable
from ultrascale.config._rules import rule
from ultrascale.config._values import matching
from ultrascale.config.kubernetes import Kubernetes
from ultrascale.config.network import Network
from ultrascale.config.pools import TWO_OWNERS, Pool, has_efa, has_efa_cards
from ultrascale.config.purchase import CapacityBlock, Odcr

ChartVersion = Annotated[
    str,
    matching(
        r"[0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4}",
        "not a chart version",
        "write MAJOR.MINOR.PATCH, without a v",
    ),
]

_FEATURES: Mapping[facts.Feature, str] = {
    "odcr": "capacity reservations",
    "capacity-block": "Capacity Blocks",
    "static": "pools of a fixed size",
    "ip-prefixes": "nodes that launch with prefixes",
    "efa": "EFA interfaces",
    "placement-group": "placement groups",
    "repair": "repair within disruption budgets",
}


class Karpenter(Section):
    """Self-managed Karpenter."""

    version: ChartVersion
    """Version of Karpenter's charts: 1.15.2, or 1.14.3, which has long-term support."""

    vcpus: Annotated[int, Field(ge=1, le=integer_bounds.CONTROLLER_VCPUS)] | None = None
    """vCPUs that the controller requests.

    Default: 1 to 16, by the nodes that Karpenter may launch.
    """

    memory_gib: Annotated[int, Field(ge=1, le=integer_bounds.CONTROLLER_GIB)] | None = None
    """Memory of the controller, in GiB.

    Default: 1 to 64, by the nodes that Karpenter may launch.
    """


@rule
def karpenter_is_the_only_one(karpenter: Karpenter, pools: Readable[Pool]) -> Mistakes:
    if any(pool.is_auto_mode for pool in pools):
        own = any(pool.is_karpenter for pool in pools)
        todo = "remove it, with its pools" if own else "remove it"
        yield refuse("", TWO_OWNERS, f"{todo}, or use a cluster for each", got="")


@rule
def karpenter_is_sound(karpenter: Karpenter) -> Mistakes:
    todo = f"use {facts.NEWEST_VERSION}"
    if karpenter.version in facts.RETRACTED_VERSIONS:
        yield refuse("version", "a release of Karpenter with a regression", todo)
    elif facts.release(karpenter.version)[0] != facts.release(facts.NEWEST_VERSION)[0]:
        wrong = "a major version of Karpenter that this product does not know"
        yield refuse("version", wrong, todo)


@rule
def karpenter_suits_kubernetes(karpenter: Karpenter, kubernetes: Kubernetes) -> Mistakes:
    oldest = facts.OLDEST_VERSIONS.get(kubernetes.version)
    if oldest is not None and _older(karpenter.version, oldest):
        wrong = f"too old for Kubernetes {kubernetes.version}"
        yield refuse("version", wrong, f"use {oldest} or later")


@rule
def karpenter_suits_its_pools(
    karpenter: Karpenter, pools: Readable[Pool], network: Network
) -> Mistakes:
    """Yield the features of pools that the version lacks: the API server refuses unknown fields."""
    missing: list[tuple[facts.Feature, str]] = [
        (feature, placed.path)
        for placed in pools.placed
        if placed.item.is_karpenter
        for feature in _needs(placed.item, network)
        if _older(karpenter.version, facts.FEATURES[feature])
    ]
    if missing:
        feature, pool = max(missing, key=lambda m: facts.release(facts.FEATURES[m[0]]))
        wrong = f"too old for {_FEATURES[feature]}, as in {pool}"
        yield refuse("version", wrong, f"use {facts.FEATURES[feature]} or later")


def _needs(pool: Pool, network: Network) -> Iterator[facts.Feature]:
    specs = pool.specs
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
    # Without interfaces too: a list without EFA interfaces keeps Karpenter from offering any.
    if has_efa(pool, network) or any(map(has_efa_cards, pool.specs)):
        yield "efa"
    if pool.repair in ("reboot", "replace"):
        yield "repair"


def _older(version: str, than: str) -> bool:
    return facts.release(version) < facts.release(than)


@rule(severity="warning")
def karpenter_is_unread(section: Karpenter) -> Mistakes:
    if section.version not in facts.READ_VERSIONS:
        text = (
            f"this product was not checked with Karpenter {section.version}; write "
            f"{facts.NEWEST_VERSION}, or {facts.LONG_TERM_VERSION} for long-term support"
        )
        yield note("version", text)
