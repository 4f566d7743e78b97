"""Report on an upgrade of Kubernetes: obstacles, changes and nodes that are replaced.

Sources:
    https://docs.aws.amazon.com/eks/latest/userguide/update-cluster.html
    https://docs.aws.amazon.com/eks/latest/userguide/managed-node-update-behavior.html
    https://karpenter.sh/docs/concepts/disruption/#drift
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date

from ultrascale import config
from ultrascale.catalog import upgrades
from ultrascale.documents import JsonObject, text
from ultrascale.errors import ConfigError, QuestionError, UsageError
from ultrascale.frozen import Frozen
from ultrascale.own_images import NO_IMAGES, OwnImages
from ultrascale.plan.cluster import plan_cluster
from ultrascale.plan.model import ClusterIdentity, ClusterPlan, ControlPlanePlan, PoolPlan
from ultrascale.plan.upgrade.pools import PoolUpgrade, pool_upgrades
from ultrascale.plan.upgrade.versions import VersionChange, version_changes

# --- The steps of an upgrade of Kubernetes in their order, and the way back -----------------------


def upgrade_steps(
    plan: ClusterPlan, pools: Sequence[PoolUpgrade], *, then: str, file: str
) -> tuple[str, ...]:
    """Return the steps of an upgrade without obstacles, one after the other.

    Args:
        plan: The cluster as it is.
        pools: Effects on its pools.
        then: The minor.
        file: Path of the cluster file.
    """
    sized = {pool.name: pool for pool in plan.all_pools}
    emptied = [sized[pool.pool] for pool in pools if pool.fate == "empty first"]
    return (
        *_first_steps(then, file),
        *(_empty(pool, file) for pool in emptied),
        f"`ultrascale deploy {file}`: the control plane is upgraded first, then add-ons, then the "
        "pools",
        *(step for pool in emptied for step in _fill(pool, file)),
        *(_roll(pool, sized, file) for pool in pools if pool.rolled_by_hand),
        *(step for part in plan.parts for step in part.renewals(plan.region)),
    )


def _first_steps(then: str, file: str) -> Iterator[str]:
    """Yield questions only the cluster and the account can answer, and the edit of the file."""
    oldest = f"1.{upgrades.minor(then) - upgrades.KUBELET_MINORS_BEHIND}"
    yield f"`kubectl get nodes`: none older than v{oldest}"
    yield (
        f'write `version: "{then}"` under `kubernetes` in {file}, and run `ultrascale preflight '
        f"{file}`: it asks for EKS's upgrade insights as well"
    )


def _empty(pool: PoolPlan, file: str) -> str:
    scale = f"`ultrascale scale {file} {pool.name} 0`"
    if pool.sized_by == "cluster-autoscaler":
        return f"suspend the jobs of {pool.name}, for which it would grow again, then {scale}"
    return f"once the jobs of {pool.name} are done: {scale}"


def _fill(pool: PoolPlan, file: str) -> Iterator[str]:
    """Yield how an emptied group gets its nodes again: the deploy leaves sizes alone."""
    match pool.sized_by:
        case "calendar":
            yield (
                f"`ultrascale status {file} --pools`: inside its block's window the deploy fills "
                f"{pool.name} again, before it its calendar does at the start"
            )
        case "cluster-autoscaler":
            if pool.min_nodes:
                yield f"`ultrascale scale {file} {pool.name} {pool.min_nodes}`: its minimum was 0"
            yield f"resume the jobs of {pool.name}: the Cluster Autoscaler adds nodes for them"
        case _:
            paid = "; its reservation is paid all the while" if pool.reservation is not None else ""
            yield (
                f"`ultrascale scale {file} {pool.name} {pool.initial_nodes}`: no deploy does it"
                f"{paid}"
            )


def _roll(pool: PoolUpgrade, plans: Mapping[str, PoolPlan], file: str) -> str:
    """Return how nodes are renewed by hand: at once where their capacity cannot be lost meanwhile.

    A job over all of them starts again with each batch.
    """
    command = f"ultrascale roll {file} {pool.pool} --batch"
    plan = plans.get(pool.pool)
    if plan is not None and plan.reservation is not None:
        return f"between two jobs: `{command} {pool.most}`"
    return (
        f"`{command} 1`: nothing reserves its capacity; each batch costs a job that runs there a "
        "restart"
    )


def way_back(*, cluster: str, region: str, version: str) -> str:
    """Return how a control plane comes back to the minor before its last upgrade.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/rollback-cluster.html

    Args:
        cluster: Name of the cluster.
        region: Its Region.
        version: The minor before.
    """
    return (
        f"within {upgrades.WAY_BACK_DAYS} days of an upgrade, and before another, EKS takes the "
        f"control plane back to {version}: first the nodes and add-ons that are newer, then `aws "
        f"eks update-cluster-version --region {region} --name {cluster} --kubernetes-version "
        f"{version}`; CloudFormation does it neither by a deploy nor when a stack rolls back"
    )


# --- Report on an upgrade of Kubernetes: obstacles, changes and nodes that are replaced -----------


Manifest = JsonObject


class Support(Frozen):
    """Dates until which EKS supports a minor."""

    version: str  # The minor
    # Day on which billing of extended support begins, or EKS upgrades the cluster by itself; None
    # where no page states it.
    standard_ends: date | None
    extended_ends: date | None  # Day on which extended support ends too; None as above
    # Extra cost of the cluster in between, in US dollars; None without extended support.
    extended_usd_per_hour: float | None


class UpgradePlan(Frozen):
    """An upgrade of a cluster to another minor."""

    cluster: str  # Name of the cluster
    now: str  # Its minor now
    then: str  # Its minor afterwards
    support: tuple[Support, ...]  # How long EKS supports both
    # Manifests that the new minor does not serve: file, kind and name, and what to do.
    removed: tuple[str, ...]
    versions: tuple[VersionChange, ...]  # Add-ons, charts and images
    # Effects on the nodes of each pool, or of each of its shards.
    pools: tuple[PoolUpgrade, ...]
    # Obstacles to remove first; empty where none is known.
    blockers: tuple[str, ...]
    unknown: tuple[str, ...]  # Unknown facts that may be obstacles as well
    steps: tuple[str, ...]  # Steps in order; empty where an obstacle comes first
    way_back: str  # Way back of the control plane to its minor now


def plan_upgrade(
    cluster: config.Cluster,
    then: str,
    manifests: Mapping[str, Iterable[Manifest]],
    *,
    file: str,
    own_images: OwnImages = NO_IMAGES,
) -> UpgradePlan:
    """Return an upgrade of ``cluster`` to the minor ``then``.

    Args:
        cluster: The cluster file as it is deployed.
        then: The minor, such as ``1.36``.
        manifests: The synthesized manifests, and any others, by the name of their file.
        file: Path of the cluster file, for commands.
        own_images: Folders beside the file that images are built from.

    Raises:
        QuestionError: EKS cannot upgrade from the one to the other.
        ConfigError: The file itself is wrong.
    """
    plan = plan_cluster(cluster, own_images)
    now = cluster.kubernetes.version
    _refuse_what_eks_cannot(plan, now, then)
    versions = version_changes(plan, frozenset(cluster.kubernetes.addons), then)
    removed = tuple(_unserved_manifests(then, manifests))
    blockers = (*_blockers(cluster, then, versions, own_images), *removed)
    pools = pool_upgrades(plan.nodes, plan.all_pools, then)
    return UpgradePlan(
        cluster=plan.name,
        now=now,
        then=then,
        support=tuple(_support(plan.control_plane, minor) for minor in (now, then)),
        removed=removed,
        versions=versions,
        pools=pools,
        blockers=blockers,
        unknown=tuple(_unknown_facts(versions, then)),
        steps=() if blockers else upgrade_steps(plan, pools, then=then, file=file),
        way_back=way_back(cluster=plan.name, region=plan.region, version=now),
    )


def _refuse_what_eks_cannot(cluster: ClusterIdentity, now: str, then: str) -> None:
    """Refuse anything but the next minor: EKS takes one at a time, and CloudFormation none back.

    Raises:
        QuestionError: ``then`` is no such minor.
    """
    if re.fullmatch(r"1\.[1-9][0-9]*", then) is None:
        raise UsageError([f"--to: got {then!r}; write a Kubernetes minor, such as 1.36"])
    behind, ahead = upgrades.minor(now), upgrades.minor(then)
    step = f"1.{behind + 1}"
    if ahead == behind:
        raise QuestionError([f"--to: the file has {then} already; write {step}"])
    if ahead < behind:
        wrong = f"--to: {then} is older than the file's {now}; write {step}"
        back = way_back(cluster=cluster.name, region=cluster.region, version=f"1.{behind - 1}")
        raise QuestionError([f"{wrong}; {back}"])
    if ahead > behind + 1:
        wrong = f"--to: {then} is {ahead - behind} minors from {now}, and EKS takes one at a time"
        raise QuestionError([f"{wrong}; write {step} first"])


def _support(control_plane: ControlPlanePlan, version: str) -> Support:
    paid = control_plane.support_type == "EXTENDED"
    return Support(
        version=version,
        standard_ends=control_plane.facts.support_ends.get(version),
        extended_ends=upgrades.extended_support_ends(version) if paid else None,
        extended_usd_per_hour=upgrades.EXTENDED_SUPPORT_USD_PER_HOUR if paid else None,
    )


def _unknown_facts(versions: Sequence[VersionChange], then: str) -> Iterator[str]:
    """Yield the facts that neither the file nor the catalog has."""
    if then not in upgrades.STANDARD_SUPPORT_ENDS:
        yield f"when EKS's standard support of {then} ends"
    for version in versions:
        if version.state == "unknown":
            yield f"whether {version.name} {version.now} works with {then}: {version.note}"
    yield (
        "EKS's upgrade insights, managed groups that an earlier upgrade left behind, and free "
        "addresses of the control plane: `ultrascale preflight` asks, once the file has the version"
    )
    yield (
        "disruption budgets and admission webhooks of your own, which may keep pods on their nodes "
        "and new ones from starting"
    )


def _blockers(
    cluster: config.Cluster,
    then: str,
    versions: Sequence[VersionChange],
    own_images: OwnImages,
) -> Iterator[str]:
    """Yield the mistakes of the file with the new minor, or else versions without a rule."""
    kubernetes = cluster.kubernetes.model_copy(update={"version": then})
    try:
        plan_cluster(cluster.model_copy(update={"kubernetes": kubernetes}), own_images)
    except ConfigError as error:
        yield from error.mistakes
        return
    yield from (
        f"{version.name} {version.now}: {version.note}"
        for version in versions
        if version.state == "blocks"
    )


def _unserved_manifests(then: str, manifests: Mapping[str, Iterable[Manifest]]) -> Iterator[str]:
    gone = {(api.api_version, kind): api for api in upgrades.removed_by(then) for kind in api.kinds}
    for file, documents in manifests.items():
        for document in documents:
            api = gone.get((str(document.get("apiVersion")), str(document.get("kind"))))
            if api is not None:
                name = text(document, "metadata", "name")
                yield (
                    f"{file}: {document['kind']} {name}: {api.api_version} is gone since "
                    f"{api.minor}; write {api.instead}"
                )
