"""Control-plane tier that a cluster needs: scheduling, requests and stored bytes."""

import math
from collections.abc import Callable, Iterator, Mapping

from ultrascale.catalog import eks, kubernetes, scale
from ultrascale.catalog.recorded import VersionFacts
from ultrascale.plan.model import (
    ClusterNeeds,
    ClusterPlan,
    ControlPlaneNeeds,
    ControlPlanePlan,
    Figure,
    Figures,
    TierState,
)
from ultrascale.plan.needs.daemon_sets import daemon_sets, daemons_on
from ultrascale.plan.needs.tables import Datum, Row, figure_at, share_of

BINDING_TARGET_SECONDS = 300
"""Time in which a pod for each node is to be scheduled.

EKS's fastest tier does that for 100,000 nodes in 250 seconds. A job that starts in half an hour of
pulls and loads loses little by it.
"""

_AT = "control_plane"
_LINES = (
    ("pods_per_second", "tier_pods_per_second", "pods scheduled a second, one for each node"),
    ("write_seats", "tier_api_seats", "API seats, of writes alone"),
    ("database", "tier_database", "GB stored, one pod of a job on each node"),
    ("database_most", "tier_database", "GB stored, every node full of pods"),
)
_GIGABYTE = 1_000_000_000
# Names of a tier's limits whose figures divide among clusters.
_HELD: tuple[tuple[str, Callable[[eks.TierLimits], int]], ...] = (
    ("database", lambda limits: limits.database_gb),
    ("pods_per_second", lambda limits: limits.pods_per_second),
    ("write_seats", lambda limits: limits.api_seats),
)
_ULTRA = "https://aws.amazon.com/blogs/containers/under-the-hood-amazon-eks-ultra-scale-clusters/"


def plan_control_plane_needs(plan: ClusterPlan) -> ControlPlaneNeeds:
    """Return the load of ``plan`` on its control plane, and the smallest tier that holds it."""
    figures = {
        figure.id.removeprefix(f"{_AT}."): figure
        for figure in _figures(plan.control_plane, _counts(plan))
    }
    tier = plan.control_plane.tier
    facts = plan.control_plane.facts
    granted = next((limit.value for limit in plan.agreed_limits if limit.code == "database"), 0)
    tiers = tuple(eks.CONTROL_PLANE_TIERS.values())
    smallest = next((tier for tier in tiers if not lacks(tier, facts, figures, granted)), None)
    state: TierState = "within"
    if lacks(tier, facts, figures, granted):
        state = "beyond" if smallest is None else "ask"
    return ControlPlaneNeeds(
        tier=tier,
        smallest=smallest,
        state=state,
        advice=_advice(tier, smallest, facts, figures, granted) if state != "within" else None,
        figures=figures,
    )


def lacks(tier: str, facts: VersionFacts, figures: Figures, granted_gb: int = 0) -> str | None:
    """Return the limit of ``tier`` that ``figures`` exceed, None where it holds them.

    Args:
        tier: The tier.
        facts: Limits of the tiers.
        figures: Load of the cluster.
        granted_gb: Size of the database that AWS granted the cluster, in GB.
    """
    wanted = {key: figure.value or 0 for key, figure in figures.items()}
    limits = facts.tiers.get(tier)
    published = eks.STANDARD_DATABASE_GB if limits is None else limits.database_gb
    database = max(published, granted_gb)
    if wanted["database"] > database:
        return f"{wanted['database']:.1f} GB of objects do not fit in its database of {database} GB"
    if limits is None:
        if wanted["nodes"] > scale.MOST_NODES or wanted["pods"] > scale.MOST_PODS:
            return (
                f"Kubernetes by itself is built for {scale.MOST_NODES:,} nodes and "
                f"{scale.MOST_PODS:,} pods"
            )
        return None
    if wanted["pods_per_second"] > limits.pods_per_second:
        return f"it schedules {limits.pods_per_second} pods a second"
    if wanted["write_seats"] > limits.api_seats:
        return f"it works on {limits.api_seats:,} requests at a time"
    return None


def _figures(control_plane: ControlPlanePlan, counts: Mapping[str, int]) -> Iterator[Figure]:
    for key, words in (
        ("nodes", "total.nodes"),
        (
            "pods",
            f"{counts['daemons']:,} of DaemonSets + {counts['jobs']:,} of jobs, one on each node "
            "outside system pools",
        ),
        ("pods_most", "as many on each of them as its kubelet takes"),
    ):
        yield _figure(key, counts[key], key.partition("_")[0], words)
    terms = [*_database_terms(control_plane, counts)]
    yield from terms
    yield from _databases(counts, terms)
    leases = counts["nodes"] / kubernetes.LEASE_RENEWAL_SECONDS
    yield _figure(
        "leases_per_second",
        leases,
        "writes per second",
        f"{counts['nodes']:,} nodes / {kubernetes.LEASE_RENEWAL_SECONDS} seconds",
        kubernetes.LEASE_RENEWAL_SOURCE,
    )
    wanted = counts["nodes"] / BINDING_TARGET_SECONDS
    yield _figure(
        "pods_per_second",
        wanted,
        "pods per second",
        f"{counts['nodes']:,} nodes / {BINDING_TARGET_SECONDS} seconds, in which a pod is to be "
        "scheduled on each",
    )
    yield _seats(counts["nodes"], leases, wanted)
    yield from _tier_limits(control_plane)


def _counts(plan: ClusterPlan) -> Mapping[str, int]:
    pools, sets = plan.all_pools, daemon_sets(plan)
    daemons = sum(daemon.pods(pools) for daemon in sets)
    jobs = sum(pool.max_nodes for pool in plan.pools)
    most = sum(pool.max_nodes * max(pool.max_pods, daemons_on(pool, sets) + 1) for pool in pools)
    return {
        "nodes": sum(pool.max_nodes for pool in pools),
        "daemons": daemons,
        "jobs": jobs,
        "pods": daemons + jobs,
        "pods_most": most,
        "claims": sum(pool.max_nodes for pool in pools if pool.is_node_pool),
    }


def _database_terms(control_plane: ControlPlanePlan, counts: Mapping[str, int]) -> Iterator[Figure]:
    """Yield the parts of the stored data, in GB, with one pod of a job on each node."""
    revisions = scale.COMPACTION_SECONDS // kubernetes.LEASE_RENEWAL_SECONDS
    leases = counts["nodes"] * revisions
    events, how = _events(control_plane, counts)
    for key, count, what, size, measured in (
        ("nodes", counts["nodes"], "Nodes", scale.NODE_BYTES, True),
        ("leases", leases, f"Leases, {revisions} revisions of each", scale.LEASE_BYTES, False),
        ("csi_nodes", counts["nodes"], "CSINodes", scale.CSI_NODE_BYTES, False),
        ("node_claims", counts["claims"], "NodeClaims", scale.NODE_CLAIM_BYTES, False),
        ("daemon_pods", counts["daemons"], "DaemonSets' pods", scale.DAEMON_POD_BYTES, True),
        ("job_pods", counts["jobs"], "jobs' pods", scale.JOB_POD_BYTES, True),
        ("endpoints", counts["jobs"], "EndpointSlices' endpoints", scale.ENDPOINT_BYTES, False),
        ("events", events, f"Events, {how}", scale.EVENT_BYTES, False),
    ):
        yield _figure(
            f"database.{key}",
            count * size / _GIGABYTE,
            "GB",
            f"{count:,} {what} x {size:,} bytes{'' if measured else ', assumed'}",
            *((scale.SIZES_SOURCE,) if measured else ()),
        )


def _events(control_plane: ControlPlanePlan, counts: Mapping[str, int]) -> tuple[int, str]:
    """Return the Events of a launch that exist at a time, and words on the pods behind them."""
    ttl = control_plane.event_ttl
    limits = control_plane.facts.tiers.get(control_plane.tier)
    pods = counts["pods"]
    if limits is not None:
        pods = min(pods, limits.pods_per_second * int(ttl.removesuffix("m")) * 60)
    words = f"{scale.EVENTS_PER_POD} of each of {pods:,} pods that are scheduled within {ttl}"
    return pods * scale.EVENTS_PER_POD, words


def _databases(counts: Mapping[str, int], terms: list[Figure]) -> Iterator[Figure]:
    stored = sum(term.value or 0 for term in terms)
    yield _figure(
        "database", stored, "GB", " + ".join(term.id for term in terms), scale.SIZES_SOURCE
    )
    more = counts["pods_most"] - counts["pods"]
    yield _figure(
        "database_most",
        stored + more * (scale.JOB_POD_BYTES + scale.ENDPOINT_BYTES) / _GIGABYTE,
        "GB",
        f"{_AT}.database + {more:,} more pods x {scale.JOB_POD_BYTES + scale.ENDPOINT_BYTES:,} "
        "bytes, with as many on each node as its kubelet takes",
        scale.SIZES_SOURCE,
    )


def _seats(nodes: int, leases: float, pods: float) -> Figure:
    """Return the concurrent requests to the API server, counting writes alone."""
    statuses = nodes / scale.NODE_STATUS_SECONDS
    writes = leases + statuses + pods * scale.WRITES_PER_POD
    return _figure(
        "write_seats",
        writes * scale.WRITE_SECONDS,
        "seats",
        f"({leases:,.1f} leases + {statuses:,.1f} node statuses + {pods:,.1f} pods x "
        f"{scale.WRITES_PER_POD} writes) a second x {scale.WRITE_SECONDS} seconds; lists, "
        "watches and what jobs ask come on top",
    )


def _tier_limits(control_plane: ControlPlanePlan) -> Iterator[Figure]:
    tier, facts = control_plane.tier, control_plane.facts
    limits, source = facts.tiers.get(tier), facts.source_of(tier)
    words = f"of {tier}" if limits else f"{tier} has no fixed one: EKS scales it by itself"
    database = eks.STANDARD_DATABASE_GB if limits is None else limits.database_gb
    for key, value, unit in (
        ("tier_pods_per_second", limits and limits.pods_per_second, "pods per second"),
        ("tier_api_seats", limits and limits.api_seats, "seats"),
    ):
        yield _figure(key, value, unit, words, source)
    yield _figure("tier_database", database, "GB", f"of {tier}", source)


def _figure(key: str, value: float | None, unit: str, formula: str, *sources: str) -> Figure:
    return Figure(id=f"{_AT}.{key}", value=value, unit=unit, formula=formula, sources=sources)


def _advice(
    tier: str, smallest: str | None, facts: VersionFacts, figures: Figures, granted_gb: int
) -> str:
    why = f"{tier}: {lacks(tier, facts, figures, granted_gb)}"
    if smallest is not None:
        (key,) = (word for word, name in eks.CONTROL_PLANE_TIERS.items() if name == smallest)
        return (
            f"{why}; write kubernetes.control_plane_tier: {key} or larger, load-test on 8xl and "
            "size down from there"
        )
    clusters = max(
        math.ceil((figures[key].value or 0) / max(label(limits) for limits in facts.tiers.values()))
        for key, label in _HELD
    )
    return (
        f"{why}, and no tier that EKS publishes is larger; ask your account team for tier-ultra, "
        f"which is for new clusters ({_ULTRA}), or divide the nodes among {clusters} clusters"
    )


def tier_rows(needs: ClusterNeeds) -> Iterator[Row]:
    """Yield the load of the control plane beside the limits of its tier."""
    at, figures = f"{_AT}.figures", needs.control_plane.figures
    for key, limit, words in _LINES:
        needed, most = figures[key], figures[limit]
        has = figure_at(f"{at}.{limit}", most)
        if most.value is None:
            has = Datum(f"{at}.{limit}.value", None, "not fixed", "not fixed")
        share = share_of(needed, most.value)
        tone = "plain" if share is None else "bad" if share > 1 else "good"
        cells = {"words": words, "needed": figure_at(f"{at}.{key}", needed, places=2), "most": has}
        yield Row(at, cells, tone, share)
