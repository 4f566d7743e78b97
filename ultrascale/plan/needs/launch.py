"""Time until all nodes of a cluster work on their first step."""

import math
from collections.abc import Iterator, Mapping, Sequence

from ultrascale.catalog import eks, quotas, scale
from ultrascale.documents import number
from ultrascale.plan.model import (
    ClusterNeeds,
    ControlPlanePlan,
    Figure,
    Figures,
    PoolPlan,
)
from ultrascale.plan.needs.tables import Content, Output, Row, number_at

PULL_TARGET_SECONDS = 300
"""Time within which every node asks for its image, so that none waits for a token."""

# Figures that AWS measured after raising an account's throttles.
MEASURED_NODES_PER_MINUTE = 2_000
_MEASURED = (
    "https://aws.amazon.com/blogs/containers/under-the-hood-amazon-eks-ultra-scale-clusters/"
)
_COREDNS = "https://docs.aws.amazon.com/eks/latest/userguide/coredns-autoscaling.html"
_AT = "launch"
# In the tables of `plan` a note names the measurement.
_LINES: tuple[tuple[str, str, Output | None], ...] = (
    ("run_instances_minutes", "RunInstances, as throttled by default", None),
    ("measured_minutes", "the same by the rate that AWS measured", "page"),
    ("binding_seconds", "a pod for each node is scheduled", None),
    ("image_pull_seconds", "ECR answers for one image on each node", None),
    ("minutes_to_first_step", "to the first step, one after the other", None),
)
# Source: https://github.com/aws/karpenter-provider-aws/tree/v1.14.1/pkg/batcher
_FLEETS = "; Karpenter launches by CreateFleet, whose own rate AWS does not publish"


def image_requests(nodes: float) -> Mapping[quotas.Quota, tuple[float, str]]:
    """Return the calls of ECR when each of ``nodes`` pulls one image, by the rate's quota."""
    layers = scale.LAYERS_OF_AN_IMAGE
    return {
        quotas.quota("image-tokens"): (nodes, f"{nodes:,.0f} nodes x 1 token"),
        quotas.quota("image-manifests"): (nodes, f"{nodes:,.0f} nodes x 1 image"),
        quotas.quota("image-layers"): (
            nodes * layers,
            f"{nodes:,.0f} nodes x {layers} layers of an image",
        ),
    }


def plan_launch(
    control_plane: ControlPlanePlan, pools: Sequence[PoolPlan], totals: Figures
) -> Figures:
    """Return the best times of a launch of all nodes at once, and their sum.

    Args:
        control_plane: Control plane of the cluster.
        pools: Pools of the cluster, those of the system first.
        totals: Sums over its pools.
    """
    nodes = totals["nodes"].value or 0
    times = [_run_instances(pools), _image_pull(nodes), _binding(control_plane, nodes)]
    figures = [
        *times,
        _first_step(times),
        _measured_launch(pools),
        *_coredns(control_plane, totals),
    ]
    return {figure.id.removeprefix(f"{_AT}."): figure for figure in figures}


def ec2_nodes(pools: Sequence[PoolPlan]) -> int:
    """Return the instances in the account; HyperPod's are in AWS's."""
    return sum(pool.max_nodes for pool in pools if pool.facts.in_account)


def _run_instances(pools: Sequence[PoolPlan]) -> Figure:
    """Return the time that RunInstances takes for all nodes under EC2's default throttles."""
    nodes = ec2_nodes(pools)
    fleets = any(pool.is_karpenter for pool in pools)
    at_once, each_second = quotas.RUN_INSTANCES_AT_ONCE, quotas.RUN_INSTANCES_PER_SECOND
    return _figure(
        "run_instances_minutes",
        max(nodes - at_once, 0) / each_second / 60,
        "minutes",
        f"({nodes:,} EC2 instances - {at_once:,} at once) / {each_second} a second, as "
        f"RunInstances is throttled by default{_FLEETS if fleets else ''}",
        quotas.RUN_INSTANCES_SOURCE,
    )


def _measured_launch(pools: Sequence[PoolPlan]) -> Figure:
    nodes = ec2_nodes(pools)
    return _figure(
        "measured_minutes",
        nodes / MEASURED_NODES_PER_MINUTE,
        "minutes",
        f"{nodes:,} EC2 instances / {MEASURED_NODES_PER_MINUTE:,} a minute, which AWS measured "
        "with the throttles of an account raised",
        _MEASURED,
    )


def _image_pull(nodes: float) -> Figure:
    """Return the time that ECR takes to answer for one image on each node, by its slowest rate."""
    seconds = {
        quota.name: (count / (quota.default or 1), words, quota)
        for quota, (count, words) in image_requests(nodes).items()
    }
    value, words, quota = max(seconds.values(), key=lambda time: time[0])
    return _figure(
        "image_pull_seconds",
        value,
        "seconds",
        f"{words} / {quota.default:,} a second ({quota.code}); an image of the account's own "
        "registry, its bytes not counted",
        quota.source,
    )


def _binding(control_plane: ControlPlanePlan, nodes: float) -> Figure:
    """Return the best time in which a pod for each node is scheduled."""
    tier = control_plane.tier
    limits = control_plane.facts.tiers.get(tier)
    words = f"tier {tier} has no fixed limits"
    if limits is not None:
        words = f"{nodes:,.0f} nodes / {limits.pods_per_second} pods a second of {tier}"
    return _figure(
        "binding_seconds",
        None if limits is None else nodes / limits.pods_per_second,
        "seconds",
        words,
        control_plane.facts.source_of(tier),
    )


def _first_step(times: list[Figure]) -> Figure:
    """Return the sum of the times: a gang is scheduled after its last node, and then pulls."""
    known = [(time, time.value) for time in times if time.value is not None]
    without = tuple(time.id for time in times if time.value is None)
    value = sum(value / (60 if time.unit == "seconds" else 1) for time, value in known)
    words = " + ".join(time.id + (" / 60" if time.unit == "seconds" else "") for time, _ in known)
    left_out = f", without {', '.join(without)}" if without else ""
    return Figure(
        id=f"{_AT}.minutes_to_first_step",
        value=value,
        unit="minutes",
        formula=f"{words}{left_out}; one after the "
        "other, as a gang waits for its last node; boot, download and compilation come on top",
        without=without,
    )


def _coredns(control_plane: ControlPlanePlan, totals: Figures) -> Iterator[Figure]:
    """Yield the replicas of CoreDNS that EKS would take, and the most that it may take."""
    nodes, vcpus = totals["nodes"].value, totals["vcpus"].value
    by_nodes, by_vcpus = eks.NODES_PER_COREDNS_REPLICA, eks.VCPUS_PER_COREDNS_REPLICA
    value = None
    if nodes is not None and vcpus is not None and not totals["vcpus"].without:
        value = max(math.ceil(nodes / by_nodes), math.ceil(vcpus / by_vcpus))
    yield _figure(
        "coredns_replicas",
        value,
        "replicas",
        f"the more of {nodes or 0:,.0f} nodes / {by_nodes} and {vcpus or 0:,.0f} vCPUs / {by_vcpus}"
        if value is not None
        else totals["vcpus"].formula,
        _COREDNS,
    )
    most = _coredns_bound(control_plane)
    yield _figure(
        "coredns_replicas_most",
        most,
        "replicas",
        "the bound that the add-on is given"
        if most is not None
        else "EKS Auto Mode runs CoreDNS on each of its nodes",
        _COREDNS,
    )


def _coredns_bound(control_plane: ControlPlanePlan) -> int | None:
    for addon in control_plane.workload_addons:
        if addon.name == "coredns":
            return number(addon.configuration, "autoScaling", "maxReplicas")
    return None


def _figure(key: str, value: float | None, unit: str, formula: str, *sources: str) -> Figure:
    return Figure(id=f"{_AT}.{key}", value=value, unit=unit, formula=formula, sources=sources)


def launch_rows(needs: ClusterNeeds) -> Iterator[Row]:
    """Yield the best time of the launch of all nodes."""
    for key, words, output in _LINES:
        if key in needs.launch:
            yield Row(f"{_AT}.{key}", {"words": words}, output=output)


def queue_rows(needs: ClusterNeeds) -> Iterator[Row]:
    """Yield the queues' guaranteed nodes, and who may borrow them; nothing without queues."""
    if needs.queues is None:
        return
    for index, flavor in enumerate(needs.queues.flavors):
        at = f"queues.flavors.{index}"
        nodes = f"{flavor.pool}, by topology" if flavor.by_topology else flavor.pool
        own: Mapping[str, Content] = {"nodes": nodes, "resource": flavor.resource}
        for place in range(len(flavor.shares)):
            yield Row(f"{at}.shares.{place}", own)
        shared, whole = (
            number_at(f"{at}.{key}", count)
            for key, count in (("shared", flavor.shared), ("nodes", flavor.nodes))
        )
        yield Row("", {**own, "queue": "shared", "guaranteed": shared, "sum": whole})
    whole = number_at("queues.nodes", needs.queues.nodes)
    yield Row("", {"nodes": "all pools in queues", "sum": whole})
    for pool, count in needs.queues.unqueued.items():
        whole = number_at(f"queues.unqueued.{pool}", count)
        yield Row("", {"nodes": pool, "queue": "none", "sum": whole})


def placement_rows(needs: ClusterNeeds) -> Iterator[Row]:
    """Yield the time of placing each gang by network topology; nothing without such gangs."""
    for index, gang in enumerate(needs.placement.gangs if needs.placement else ()):
        measured = {"measured": f"{gang.measured}; placed without its topology"}
        yield Row(f"placement.gangs.{index}", {} if gang.aware else measured)
