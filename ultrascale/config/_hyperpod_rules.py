"""What HyperPod demands of its pools, its Region and the teams that share it."""

from collections.abc import Iterator, Mapping
from typing import cast

from ultrascale import catalog
from ultrascale.catalog import hyperpod, matrix, regions
from ultrascale.config._errors import Mistake, near, refuse
from ultrascale.config._job_nodes import most_nodes
from ultrascale.config._pool_rules import others_domain
from ultrascale.config._reader import Part
from ultrascale.config.hyperpod import HyperPod, Team
from ultrascale.config.pools import Nodes, Pool, Provisioner, Taint
from ultrascale.config.purchase import Purchase

Mistakes = Iterator[Mistake]

_HYPERPOD: Provisioner = "hyperpod"
# At most so many follow from a pool.
_OUR_LABELS = 10
# Of HyperPod's nodes, and of Spot nodes with accelerators.
_OWN_TAINTS = frozenset({"dedicated", "spot"})


def hyperpod_is_in_the_region(provisioner: Provisioner, cluster_region: str) -> Mistakes:
    if provisioner == _HYPERPOD and cluster_region not in hyperpod.REGIONS:
        wrong = f"CloudFormation makes no HyperPod clusters in {cluster_region}"
        yield refuse("provisioner", wrong, f"use a Region of {_listed(hyperpod.REGIONS)}")


def hyperpod_has_the_types(
    provisioner: Provisioner, instance_types: tuple[str, ...], cluster_region: str
) -> Mistakes:
    for number, name in enumerate(instance_types if provisioner == _HYPERPOD else ()):
        if not hyperpod.has(name):
            wrong = "a type that HyperPod does not have"
            like = near(name, _offered(cluster_region))
            yield refuse(f"instance_types.{number}", wrong, like)


def hyperpod_group_holds_the_nodes(
    provisioner: Provisioner, purchase: Purchase, instance_types: tuple[str, ...], nodes: Nodes
) -> Mistakes:
    if provisioner != _HYPERPOD or not matrix.cell(provisioner, purchase.option).works:
        return
    key, count = nodes.upper_count
    if nodes.static is None and count:
        wrong = "a count that scales: nothing scales HyperPod's instance groups"
        yield refuse(f"nodes.{key}", wrong, "write static for a fixed count")
    if count > hyperpod.INSTANCES_PER_GROUP:
        wrong = f"more than the {hyperpod.INSTANCES_PER_GROUP} instances of a HyperPod group"
        yield refuse(f"nodes.{key}", wrong, "write shards of fewer nodes")
    if len(instance_types) > hyperpod.TYPES_PER_GROUP:
        wrong = f"more than the {hyperpod.TYPES_PER_GROUP} types of a HyperPod group"
        yield refuse("instance_types", wrong, "leave some out", got=str(len(instance_types)))


def hyperpod_takes_the_labels(provisioner: Provisioner, labels: Mapping[str, str]) -> Mistakes:
    most = hyperpod.LABELS_PER_GROUP - _OUR_LABELS
    if provisioner == _HYPERPOD and len(labels) > most:
        wrong = f"more labels than the {most} that a HyperPod group has room for beside ours"
        yield refuse("labels", wrong, f"keep {most}", got=str(len(labels)))


def hyperpod_tags_nothing(provisioner: Provisioner, tags: Mapping[str, str]) -> Mistakes:
    if provisioner == _HYPERPOD and tags:
        wrong = "HyperPod's instances are in an account of AWS, where nothing of yours tags them"
        yield refuse("tags", wrong, "leave it out", got="")


def hyperpod_groups_fit(parts: tuple[Part, ...]) -> Mistakes:
    pools = [part for part in parts if _is_hyperpod(part)]
    shards = [part.fields.get("shards") for part in pools]
    groups = sum(each for each in shards if isinstance(each, int))
    most = hyperpod.GROUPS_PER_CLUSTER
    if groups > most:
        wrong = f"{groups} instance groups, and a HyperPod cluster has {most} at most"
        yield refuse("pools", wrong, "write fewer and larger shards", got="")


def taints_are_allowed(
    provisioner: Provisioner, deep_health_checks: bool, role: str, taints: tuple[Taint, ...]
) -> Mistakes:
    if not taints:
        return
    if provisioner == _HYPERPOD and deep_health_checks:
        wrong = "HyperPod takes no taints where it runs deep health checks"
        todo = "leave it out, or set deep_health_checks: false"
        yield refuse("taints", wrong, todo, got="")
    if role == "system":
        wrong = "taints on the nodes of controllers and add-ons, which do not tolerate them"
        yield refuse("taints", wrong, "leave it out", got="")
    for number, taint in enumerate(taints):
        domain, slash, _ = taint.key.rpartition("/")
        if taint.key in _OWN_TAINTS or (slash and others_domain(domain) is not None):
            wrong = "a taint that others set, or that follows from the pool"
            yield refuse(f"taints.{number}.key", wrong, "use a key of your own", got=taint.key)
        if any((taint.key, taint.effect) == (t.key, t.effect) for t in taints[:number]):
            yield refuse(f"taints.{number}.key", "twice with one effect", "keep one", got=taint.key)


def hyperpod_has_nodes(cluster_hyperpod: HyperPod, provisioners: frozenset[str]) -> Mistakes:
    if cluster_hyperpod != HyperPod() and _HYPERPOD not in provisioners:
        wrong = "no pool has provisioner: hyperpod"
        yield refuse("hyperpod", wrong, "add one, or remove hyperpod", got="")


def governance_is_in_the_region(cluster_region: str) -> Mistakes:
    """Yield a Region in which a part of task governance would be missing.

    Its quotas without its priorities, or the other way round, would share nodes by other rules
    than the file's.
    """
    if cluster_region in hyperpod.REGIONS - hyperpod.GOVERNANCE_REGIONS:
        wrong = f"CloudFormation has not all of HyperPod task governance in {cluster_region}"
        todo = f"leave it out, or use a Region of {_listed(hyperpod.GOVERNANCE_REGIONS)}"
        yield refuse("", wrong, todo, got="")


def governed_types_have_quotas(parts: tuple[Part, ...]) -> Mistakes:
    for part in parts:
        if _is_hyperpod(part) and len(_types_of(part)) > 1:
            pool = ".".join(str(key) for key in part.at)
            wrong = f"several types in {pool}, of which each team would need a quota of its own"
            yield refuse("", wrong, "keep one type there, or leave task_governance out", got="")
    pools = [part for part in parts if _is_hyperpod(part)]
    every = {name for part in pools for name in _types_of(part)}
    if len(every) > hyperpod.TYPES_PER_QUOTA:
        wrong = f"pools of {len(every)} types, and a quota has {hyperpod.TYPES_PER_QUOTA} at most"
        yield refuse("", wrong, "use fewer types, or leave task_governance out", got="")


def priorities_have_weights(scheduling_priority_classes: Mapping[str, int]) -> Mistakes:
    for name in scheduling_priority_classes:
        if "." in name:
            wrong = f"priority class {name}, and task governance takes no dots"
            yield refuse("", wrong, "rename it in scheduling.priority_classes", got="")
    count, most = len(scheduling_priority_classes), hyperpod.PRIORITY_CLASSES
    if count > most:
        wrong = f"{count} priority classes, and task governance has {most} at most"
        yield refuse("", wrong, "shorten scheduling.priority_classes", got="")


def teams_are_there(teams: tuple[Team, ...]) -> Mistakes:
    if not teams:
        yield refuse("teams", "no team to govern", "add one, or remove task_governance")


def teams_have_weights(teams: tuple[Team, ...], parts: tuple[Part, ...]) -> Mistakes:
    """Yield teams that share the nodes of a pool by weights that are all 0."""
    for name, count in _nodes(parts).items():
        sharing = [team for team in teams if name not in team.nodes]
        left = count - sum(team.nodes.get(name, 0) for team in teams)
        if sharing and left > 0 and not any(team.fair_share_weight for team in sharing):
            wrong = f"weights that are all 0, by which {left} nodes of {name} cannot be shared"
            yield refuse("teams", wrong, "give one a fair_share_weight above 0, or nodes", got="")


def teams_have_the_nodes(teams: tuple[Team, ...], parts: tuple[Part, ...]) -> Mistakes:
    for name, count in _nodes(parts).items():
        wanted = sum(team.nodes.get(name, 0) for team in teams)
        if wanted > count:
            wrong = f"teams of {wanted} nodes together, and pool {name} has {count}"
            yield refuse("teams", wrong, "give them fewer, or raise nodes of the pool", got="")


def team_pools_exist(nodes: Mapping[str, int], parts: tuple[Part, ...]) -> Mistakes:
    known = _nodes(parts)
    for name in nodes:
        if name not in known:
            wrong = "no pool with provisioner: hyperpod"
            yield Mistake(("nodes", name), wrong, near(name, known))


def team_lends_to_borrow(lend: bool, borrow_limit_percent: int | None) -> Mistakes:
    if borrow_limit_percent is not None and not lend:
        wrong = "a team that lends nothing cannot borrow"
        yield refuse("borrow_limit_percent", wrong, "set lend: true, or leave it out")


def _nodes(parts: tuple[Part, ...]) -> Mapping[str, int]:
    """Return the nodes of each HyperPod pool that can be read, by its name."""
    counts = {
        str(part.fields.get("name")): most_nodes(part) for part in parts if _is_hyperpod(part)
    }
    return {name: count for name, count in counts.items() if count is not None}


def _is_hyperpod(part: Part) -> bool:
    return part.kind is Pool and part.fields.get("provisioner") == _HYPERPOD


def _types_of(pool: Part) -> tuple[str, ...]:
    return cast("tuple[str, ...]", pool.fields.get("instance_types", ()))


def _offered(region: str) -> list[str]:
    return [
        name
        for name, spec in sorted(catalog.INSTANCE_TYPES.items())
        if spec.hyperpod and regions.offered(name, region, hyperpod=True) is not False
    ]


def _listed(found: frozenset[str]) -> str:
    return ", ".join(sorted(found))
