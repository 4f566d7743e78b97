"""What an upgrade of Kubernetes takes: what stands in its way, what changes, which nodes go.

Sources:
    https://docs.aws.amazon.com/eks/latest/userguide/update-cluster.html
    https://docs.aws.amazon.com/eks/latest/userguide/managed-node-update-behavior.html
    https://karpenter.sh/docs/concepts/disruption/#drift
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Literal, cast

from ultrascale import config
from ultrascale.catalog import addons, eks, karpenter, upgrades, versions
from ultrascale.errors import CatalogError, ConfigError, QuestionError
from ultrascale.plan.cluster import plan_cluster
from ultrascale.plan.model import AddonPlan, ClusterPlan
from ultrascale.plan.upgrade_pools import PoolUpgrade, pool_upgrades

Manifest = Mapping[str, object]
State = Literal["changes", "stays", "blocks"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionChange:
    """What an upgrade does to something that has a version of its own.

    Attributes:
        name: What it is.
        now: Its version now.
        then: Its version after the upgrade; empty where none is known.
        state: Whether it changes, stays, or keeps the cluster from being upgraded.
        note: What the catalog knows of the two together; empty where that is the version alone.
    """

    name: str
    now: str
    then: str
    state: State
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradePlan:
    """An upgrade of a cluster to another minor.

    Attributes:
        cluster: Name of the cluster.
        now: Its minor now.
        then: Its minor afterwards.
        support_ends: Last day of EKS's standard support, by minor; None where no page says it.
        upgraded_by_eks: Whether EKS upgrades the cluster by itself after that day.
        removed: Manifests that the new minor does not serve: file, kind and name, and what to do.
        versions: Add-ons, charts and images.
        pools: What happens to the nodes of each pool, or of each of its shards.
        blockers: What must be done first; empty where nothing stands in the way.
    """

    cluster: str
    now: str
    then: str
    support_ends: Mapping[str, date | None]
    upgraded_by_eks: bool
    removed: tuple[str, ...]
    versions: tuple[VersionChange, ...]
    pools: tuple[PoolUpgrade, ...]
    blockers: tuple[str, ...]


def plan_upgrade(
    cluster: config.Cluster, then: str, manifests: Mapping[str, Iterable[Manifest]]
) -> UpgradePlan:
    """Return what an upgrade of ``cluster`` to the minor ``then`` takes.

    Args:
        cluster: The cluster file as it is deployed.
        then: The minor, such as ``1.36``.
        manifests: The synthesized manifests, by the name of their file.

    Raises:
        QuestionError: EKS cannot upgrade from the one to the other.
        ConfigError: The file itself is wrong.
    """
    now = cluster.kubernetes.version
    _refuse_what_eks_cannot(now, then)
    plan = plan_cluster(cluster)
    changes = (*_addon_changes(cluster, plan, then), *_chart_changes(plan, then))
    removed = tuple(_removed(then, manifests))
    return UpgradePlan(
        cluster=plan.name,
        now=now,
        then=then,
        support_ends={each: upgrades.STANDARD_SUPPORT_ENDS.get(each) for each in (now, then)},
        upgraded_by_eks=plan.control_plane.support_type == "STANDARD",
        removed=removed,
        versions=changes,
        pools=pool_upgrades(plan, then),
        blockers=(*_blockers(cluster, then), *removed),
    )


def _refuse_what_eks_cannot(now: str, then: str) -> None:
    """Refuse anything but the next minor: EKS takes one at a time, and none back.

    Raises:
        QuestionError: ``then`` is no such minor.
    """
    major, dot, number = then.partition(".")
    if (major, dot) != ("1", ".") or not number.isdigit():
        raise QuestionError([f"--to: got {then!r}; write a Kubernetes minor, such as 1.36"])
    behind, ahead = upgrades.minor(now), upgrades.minor(then)
    step = f"1.{behind + 1}"
    if ahead == behind:
        raise QuestionError([f"--to: the file has {then} already; write {step}"])
    if ahead < behind:
        wrong = f"--to: {then} is older than the file's {now}, and EKS goes to no older minor"
        raise QuestionError([f"{wrong}; write {step}"])
    if ahead > behind + 1:
        wrong = f"--to: {then} is {ahead - behind} minors from {now}, and EKS takes one at a time"
        raise QuestionError([f"{wrong}; write {step} first"])


def _blockers(cluster: config.Cluster, then: str) -> Iterator[str]:
    """Yield what `check` has against the same file with the new minor."""
    kubernetes = cluster.kubernetes.model_copy(update={"version": then})
    try:
        plan_cluster(cluster.model_copy(update={"kubernetes": kubernetes}))
    except ConfigError as error:
        yield from error.mistakes


def _removed(then: str, manifests: Mapping[str, Iterable[Manifest]]) -> Iterator[str]:
    gone = {
        (each.api_version, kind): each for each in upgrades.removed_by(then) for kind in each.kinds
    }
    for file, documents in manifests.items():
        for document in documents:
            api = gone.get((str(document.get("apiVersion")), str(document.get("kind"))))
            if api is not None:
                name = cast("Manifest", document.get("metadata", {})).get("name")
                yield (
                    f"{file}: {document['kind']} {name}: {api.api_version} is gone since "
                    f"{api.minor}; write {api.instead}"
                )


def _addon_changes(
    cluster: config.Cluster, plan: ClusterPlan, then: str
) -> Iterator[VersionChange]:
    chosen = cluster.kubernetes.addons
    for addon in _addons(plan):
        if addon.name in chosen:
            note = (
                f"kubernetes.addons keeps it; `aws eks describe-addon-versions --addon-name "
                f"{addon.name} --kubernetes-version {then}` says whether EKS takes it"
            )
            yield VersionChange(
                name=addon.name, now=addon.version, then=addon.version, state="stays", note=note
            )
            continue
        try:
            pinned = addons.version(addon.name, then).version
        except CatalogError:
            note = f"no version for {then} is pinned"
            yield VersionChange(
                name=addon.name, now=addon.version, then="", state="blocks", note=note
            )
            continue
        state = "stays" if pinned == addon.version else "changes"
        yield VersionChange(name=addon.name, now=addon.version, then=pinned, state=state)


def _addons(plan: ClusterPlan) -> Iterator[AddonPlan]:
    yield from plan.control_plane.node_addons
    yield from plan.control_plane.workload_addons
    if plan.hyperpod is not None and plan.hyperpod.governance is not None:
        yield plan.hyperpod.governance.addon
    if plan.observability is not None:
        yield plan.observability.addon
        if plan.observability.hyperpod_addon is not None:
            yield plan.observability.hyperpod_addon


def _chart_changes(plan: ClusterPlan, then: str) -> Iterator[VersionChange]:
    """Yield what runs in the cluster and is built for certain minors, as far as a page says so."""
    if plan.karpenter is not None:
        yield _karpenter(plan.karpenter.version, then)
    if plan.volcano is not None:
        yield _up_to("Volcano", plan.volcano.version, eks.LATEST_VOLCANO_VERSION, then)
    if plan.hyperpod is not None:
        yield _up_to("HyperPod", "of AWS", eks.LATEST_HYPERPOD_VERSION, then)
    if plan.cluster_autoscaler is not None:
        yield _image("Cluster Autoscaler", plan.control_plane.version, then)
    for name, found in (
        ("Neuron device plugin", plan.neuron),
        ("EFA device plugin", plan.efa),
        ("NVIDIA device plugin", plan.nvidia),
        ("DCGM exporter", plan.dcgm),
    ):
        if found is not None:
            version = found.image.partition("@")[0].rpartition(":")[2]
            note = "no page ties it to a minor of Kubernetes"
            yield VersionChange(name=name, now=version, then=version, state="stays", note=note)


def _karpenter(version: str, then: str) -> VersionChange:
    oldest = karpenter.OLDEST_VERSIONS.get(then)
    if oldest is None:
        state: State = "blocks"
        note = f"Karpenter's compatibility matrix has no {then}"
    elif karpenter.release(version) < karpenter.release(oldest):
        state, note = "blocks", f"{then} needs {oldest} or later: upgrade Karpenter first"
    else:
        state, note = "stays", f"{then} needs {oldest} or later"
    return VersionChange(name="Karpenter", now=version, then=version, state=state, note=note)


def _up_to(name: str, version: str, latest: str, then: str) -> VersionChange:
    late = upgrades.minor(then) > upgrades.minor(latest)
    return VersionChange(
        name=name,
        now=version,
        then=version,
        state="blocks" if late else "stays",
        note=f"up to Kubernetes {latest}",
    )


def _image(name: str, now: str, then: str) -> VersionChange:
    tag = versions.cluster_autoscaler(now).tag
    try:
        found = versions.cluster_autoscaler(then).tag
    except CatalogError:
        note = f"no release for {then} is pinned"
        return VersionChange(name=name, now=tag, then="", state="blocks", note=note)
    note = "built for each minor"
    return VersionChange(name=name, now=tag, then=found, state="changes", note=note)
