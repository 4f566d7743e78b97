"""Versions of the parts of a cluster, and the effect of another Kubernetes minor on each."""

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from ultrascale import config
from ultrascale.catalog import (
    addons,
    karpenter,
    upgrades,
    versions,
)
from ultrascale.errors import CatalogError
from ultrascale.frozen import Frozen
from ultrascale.plan.model import AddonPlan, ClusterPlan, ControllerVersion, PlannedPart
from ultrascale.plan.rules import rule

State = Literal["changes", "stays", "unknown", "blocks"]


class VersionChange(Frozen):
    """Effect of an upgrade on a part with a version of its own."""

    name: str  # Name of the part
    now: str  # Its version now
    then: str  # Its version after the upgrade; empty where none is known
    # Whether it changes, stays, stays without a known source, or keeps the cluster from being
    # upgraded.
    state: State
    # Note of the catalog on both versions; empty without one.
    note: str = ""


def version_changes(
    plan: ClusterPlan, chosen: frozenset[str], then: str
) -> tuple[VersionChange, ...]:
    """Return the effect of an upgrade of ``plan`` to the minor ``then`` on every version.

    Args:
        plan: The cluster.
        chosen: Add-ons with a version in the cluster file.
        then: The minor.
    """
    return (
        *(_addon(addon, chosen, then) for addon in plan.addons),
        *_controllers(plan, then),
        *_independent_parts(plan),
    )


def _addon(addon: AddonPlan, chosen: frozenset[str], then: str) -> VersionChange:
    name, now = addon.name, addon.version
    if name in chosen:
        note = (
            f"kubernetes.addons keeps it; `aws eks describe-addon-versions --addon-name {name} "
            f"--kubernetes-version {then}` says whether EKS takes it"
        )
        return VersionChange(name=name, now=now, then=now, state="unknown", note=note)
    try:
        pinned = addons.version(name, then).version
    except CatalogError:
        note = f"no version for {then} is pinned"
        return VersionChange(name=name, now=now, then="", state="blocks", note=note)
    state = "stays" if pinned == now else "changes"
    return VersionChange(name=name, now=now, then=pinned, state=state)


def _controllers(plan: ClusterPlan, then: str) -> Iterator[VersionChange]:
    """Yield parts that are built for certain minors, as far as a page says so."""
    if plan.nodes.karpenter is not None:
        yield _karpenter(plan.nodes.karpenter.version, plan.control_plane.version, then)
    yield from _optional(plan.parts, then)
    if plan.nodes.autoscaler is not None:
        now = _tag(plan.nodes.autoscaler.image)
        yield _pinned_by_minor("Cluster Autoscaler", now, versions.cluster_autoscaler, then)
    if plan.devices.neuron_scheduler is not None:
        now = _tag(plan.devices.neuron_scheduler.scheduler_image)
        yield _pinned_by_minor("scheduler of Neuron devices", now, versions.kube_scheduler, then)
    yield _kubectl(then)
    own = (plan.nodes.karpenter,)
    if any(own) or any(part.installs_charts for part in plan.parts):
        yield _helm(then)


def _optional(parts: Sequence[PlannedPart], then: str) -> Iterator[VersionChange]:
    yield from (_controller(version, then) for part in parts for version in part.versions)


def _karpenter(version: str, now: str, then: str) -> VersionChange:
    oldest = karpenter.OLDEST_VERSIONS.get(then)
    if oldest is None:
        state: State = "blocks"
        note = f"Karpenter's compatibility matrix has no {then}"
    elif karpenter.release(version) < karpenter.release(oldest):
        state = "blocks"
        note = f"{then} needs {oldest} or later: deploy that with {now} first"
    else:
        state, note = "stays", f"{then} needs {oldest} or later"
    if karpenter.release(version)[:2] < karpenter.release(karpenter.NEWEST_VERSION)[:2]:
        note += f"; {karpenter.NEWEST_VERSION} is newer: docs/upgrades.md has the way"
    return VersionChange(name="Karpenter", now=version, then=version, state=state, note=note)


def _within_range(name: str, version: str, latest: str, then: str) -> VersionChange:
    late = upgrades.minor(then) > upgrades.minor(latest)
    return VersionChange(
        name=name,
        now=version,
        then=version,
        state="blocks" if late else "stays",
        note=f"up to Kubernetes {latest}",
    )


def _controller(controller: ControllerVersion, then: str) -> VersionChange:
    if controller.is_limit:
        return _within_range(controller.name, controller.version, controller.latest, then)
    late = upgrades.minor(then) > upgrades.minor(controller.latest)
    return VersionChange(
        name=controller.name,
        now=controller.version,
        then=controller.version,
        state="unknown" if late else "stays",
        note=f"tested up to {controller.latest}",
    )


def _pinned_by_minor(
    name: str, now: str, pinned: Callable[[str], versions.Image], then: str
) -> VersionChange:
    try:
        tag = pinned(then).tag
    except CatalogError:
        note = f"no release for {then} is pinned"
        return VersionChange(name=name, now=now, then="", state="blocks", note=note)
    note = "built for each minor"
    return VersionChange(name=name, now=now, then=tag, state="changes", note=note)


def _kubectl(then: str) -> VersionChange:
    version = upgrades.KUBECTL_VERSION
    far = abs(upgrades.minor(then) - upgrades.minor(version)) > 1
    return VersionChange(
        name="kubectl of the deploy",
        now=version,
        then=version,
        state="blocks" if far else "stays",
        note="may be one minor away from the cluster's",
    )


def _helm(then: str) -> VersionChange:
    version, latest = upgrades.HELM_VERSION, upgrades.LATEST_HELM_VERSION
    late = upgrades.minor(then) > upgrades.minor(latest)
    return VersionChange(
        name="Helm of the deploy",
        now=version,
        then=version,
        state="unknown" if late else "stays",
        note=f"promises to work up to {latest}",
    )


def _independent_parts(plan: ClusterPlan) -> Iterator[VersionChange]:
    note = "no page ties it to a minor of Kubernetes"
    for name, tag in (
        ("Neuron device plugin", plan.devices.neuron),
        ("Neuron monitor", plan.devices.neuron_monitor),
        ("EFA device plugin", plan.devices.efa),
        ("NVIDIA device plugin", plan.devices.nvidia),
        ("DCGM exporter", plan.devices.dcgm),
        ("Node Termination Handler", plan.nodes.termination_handler),
        ("DNS cache of nodes", plan.network.node_local_dns),
    ):
        if tag is not None:
            version = _tag(tag.image)
            yield VersionChange(name=name, now=version, then=version, state="stays", note=note)
    for name, image in (item for part in plan.parts for item in part.untied.items()):
        version = _tag(image)
        yield VersionChange(name=name, now=version, then=version, state="stays", note=note)


def _tag(image: str) -> str:
    return image.partition("@")[0].rpartition(":")[2]


@rule(severity="note")
def standard_support_ends(plan: ClusterPlan) -> Iterator[config.Mistake]:
    """Yield until when EKS supports the cluster's minor, and the cost from then on."""
    version = plan.control_plane.version
    ends = plan.control_plane.facts.support_ends[version]
    usd = upgrades.EXTENDED_SUPPORT_USD_PER_HOUR
    text = (
        f"EKS's standard support of Kubernetes {version} ends on {ends}; "
        f"from then on the cluster costs USD {usd:.2f} an hour more, until it is upgraded"
    )
    yield config.Mistake((), text, got="")
