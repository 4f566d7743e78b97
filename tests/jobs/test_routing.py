"""Jobs of the hybrid cluster land where the file says, on nodes as the plan makes them."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.support.jobs import HYBRID, IMAGE, pod_spec
from tests.support.models.planned_nodes import cluster_of, tier_of
from tests.support.models.scheduler import Node, Pod, Scheduler, admits, pods_of
from ultrascale.jobs import JobManifests, prepare
from ultrascale.jobs.preparation import JobCluster, read_cluster
from ultrascale.plan.jobs import tiers as job_tiers
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.jobs.tiers import Choice, Occupancy, Tier

PROGRAM: dict[str, Any] = {"image": IMAGE, "script": "train.py"}
BATCH: dict[str, Any] = {"kind": "batch", "image": IMAGE, "command": ["true"]}
TIERS = ("hyperpod", "eks-on-demand", "eks-spot")


class Hybrid:
    """The hybrid cluster with what runs in it."""

    def __init__(self, cluster: JobCluster, **launched: int) -> None:
        self.cluster = cluster
        by_name = {name.replace("_", "-"): count for name, count in launched.items()}
        self.scheduler: Scheduler = cluster_of(cluster.plan, launched=by_name)
        self._names = itertools.count()

    def submit(self, job: str | Mapping[str, Any], count: int = 1, **changes: Any) -> list[Pod]:
        """Send a job ``count`` times, and return its pods."""
        changes = (PROGRAM if isinstance(job, str) else {}) | changes
        sent = prepare(self.cluster, job, changes=changes, choose=self._choose)
        classes = {each.name: each for each in self.cluster.plan.priority_classes}
        found: list[Pod] = []
        for _ in range(count):
            name = f"{sent.name}-{next(self._names)}"
            found += pods_of(name, sent.pods, pod_spec(sent), classes)
        self.scheduler.run(*found)
        return found

    def _choose(self, request: JobRequest, tiers: Sequence[Tier]) -> Choice:
        seen = {tier.name: self._look_at(tier.name) for tier in tiers}
        return job_tiers.choose(tiers, request.pods, seen)

    def _look_at(self, tier: str) -> Occupancy:
        nodes = [node for node in self.scheduler.nodes if tier_of(node) == tier]
        return Occupancy(nodes=len(nodes), free=sum(not self.scheduler.on(n) for n in nodes))


def tiers(pods: list[Pod]) -> list[str | None]:
    """Return the tier of each pod; None for one that waits."""
    return [tier_of(pod.node) if pod.node is not None else None for pod in pods]


@pytest.mark.parametrize(
    ("job", "tier"),
    [("production", "hyperpod"), ("development", "eks-on-demand"), ("research", "eks-spot")],
)
def test_each_template_lands_on_nodes_of_its_own(hybrid: JobCluster, job: str, tier: str) -> None:
    assert tiers(Hybrid(hybrid).submit(job)) == [tier]
    # A strict selector never bursts.
    assert tiers(Hybrid(hybrid).submit("production", 9)) == ["hyperpod"] * 8 + [None]


def test_an_elastic_job_takes_reserved_nodes_first_then_on_demand_then_spot(
    hybrid: JobCluster,
) -> None:
    order = {"hyperpod": 8, "eks-on-demand": 16, "eks-spot": 16, None: 2}
    placed = tiers(Hybrid(hybrid).submit("elastic", 42))
    assert placed == [tier for tier, count in order.items() for _ in range(count)]
    # A reserved node comes before an idle one that was launched.
    idle = Hybrid(hybrid, eks_on_demand=2, eks_spot=2)
    assert tiers(idle.submit("elastic")) == ["hyperpod"]


def test_a_governed_job_takes_a_reserved_node_back_from_an_elastic_one_which_moves_on(
    hybrid: JobCluster,
) -> None:
    cluster = Hybrid(hybrid)
    elastic = cluster.submit("elastic", 8)
    assert set(tiers(elastic)) == {"hyperpod"}

    production = cluster.submit("production")

    assert tiers(production) == ["hyperpod"]
    assert sorted(tiers(elastic), key=str) == ["eks-on-demand"] + ["hyperpod"] * 7


def test_what_may_be_preempted_never_displaces_what_is_critical(hybrid: JobCluster) -> None:
    cluster = Hybrid(hybrid)
    critical = cluster.submit("production", 8)

    waiting = cluster.submit({"name": "late", **PROGRAM, "pool": "hyperpod"}, priority="low")

    assert tiers(waiting) == [None]
    assert tiers(critical) == ["hyperpod"] * 8


def test_a_critical_job_displaces_the_least_important_first(hybrid: JobCluster) -> None:
    cluster = Hybrid(hybrid)
    job = {"name": "own", **PROGRAM, "pool": "hyperpod"}
    high = cluster.submit(job, 4, priority="high")
    least = cluster.submit(job, 4, priority="preemptible")

    cluster.submit("production", 2)

    assert tiers(high) == ["hyperpod"] * 4
    assert tiers(least).count(None) == 2


def test_a_pod_without_the_toleration_of_spot_nodes_waits(hybrid: JobCluster) -> None:
    cluster = Hybrid(hybrid)
    (pod,) = cluster.submit("research")
    bare = [each for each in pod.spec["tolerations"] if each["key"] != "spot"]
    stranger = Pod("stranger", {**pod.spec, "tolerations": bare}, 0, preempts=True)

    cluster.scheduler.run(stranger)

    assert stranger.node is None


@pytest.mark.parametrize(("pool", "tier"), [("system", "system"), ("eks-spot", "eks-spot")])
def test_a_job_without_accelerators_lands_where_it_is_sent(
    hybrid: JobCluster, pool: str, tier: str
) -> None:
    resources = {"gpu": 0, "cpu": 1, "memory": "1Gi"}

    pods = Hybrid(hybrid).submit({"name": "copy", **BATCH, "pool": pool, "resources": resources})

    assert tiers(pods) == [tier]


def test_what_names_no_nodes_lands_on_none_with_a_taint(hybrid: JobCluster) -> None:
    cluster = Hybrid(hybrid, eks_on_demand=1, eks_spot=1)
    spec = {"containers": [{"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]}

    takes = {tier_of(n) for n in cluster.scheduler.nodes if admits(Pod("web", spec, 0, True), n)}

    # HyperPod allows no taints beside its deep health checks: an admission policy keeps this off.
    assert takes == {"system", "hyperpod"}


def test_no_job_lands_on_a_hyperpod_node_that_is_not_well(hybrid: JobCluster) -> None:
    tainted, labelled = Hybrid(hybrid), Hybrid(hybrid)
    key = "sagemaker.amazonaws.com/node-health-status"
    taint = {"key": key, "value": "Unschedulable", "effect": "NoSchedule"}
    for node in tainted.scheduler.nodes:
        if tier_of(node) == "hyperpod":
            node.taints = (*node.taints, taint)
    for node in labelled.scheduler.nodes:
        node.labels = {**node.labels, key: "Unschedulable"}
    assert tiers(tainted.submit("production")) == tiers(labelled.submit("production")) == [None]
    assert tiers(tainted.submit("elastic")) == ["eks-on-demand"]


def test_a_node_that_has_passed_its_checks_is_taken_before_one_that_has_not(
    hybrid: JobCluster,
) -> None:
    cluster = Hybrid(hybrid)
    key = "sagemaker.amazonaws.com/deep-health-check-status"
    reserved = [node for node in cluster.scheduler.nodes if tier_of(node) == "hyperpod"]
    for node in reserved[:-1]:
        node.labels = {**node.labels, key: "InProgress"}

    (pod,) = cluster.submit("production")

    assert pod.node is reserved[-1]


def test_reserved_nodes_with_a_taint_take_the_jobs_that_are_for_them_alone(tmp_path: Path) -> None:
    """Without deep health checks HyperPod's nodes have the taint of the file's own tolerations."""
    text = HYBRID.read_text().replace("deep_health_checks: true", "deep_health_checks: false")
    file = tmp_path / "tainted.yaml"
    file.write_text(text)
    cluster = Hybrid(read_cluster(file))
    spec = {"containers": [{"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]}

    takes = {tier_of(n) for n in cluster.scheduler.nodes if admits(Pod("web", spec, 0, True), n)}

    assert takes == {"system"}
    assert tiers(cluster.submit("production", 8)) == ["hyperpod"] * 8
    assert tiers(cluster.submit("elastic")) == ["eks-on-demand"]


# As many reserved nodes are free, one is too few, all of a tier can be launched, and free nodes are
# taken before others are launched.
@pytest.mark.parametrize(
    ("busy", "spot", "nodes", "tier"),
    [
        (0, 0, 8, "hyperpod"),
        (7, 0, 2, "eks-on-demand"),
        (8, 0, 16, "eks-on-demand"),
        (8, 2, 2, "eks-spot"),
    ],
)
def test_a_job_of_several_nodes_bursts_as_a_whole(
    hybrid: JobCluster, busy: int, spot: int, nodes: int, tier: str
) -> None:
    cluster = Hybrid(hybrid, eks_spot=spot)
    cluster.submit("production", busy)
    assert tiers(cluster.submit("elastic", nodes=nodes)) == [tier] * nodes


FREE = st.integers(min_value=0, max_value=4)
PREFERRED = st.permutations(TIERS).flatmap(
    lambda order: st.integers(min_value=1, max_value=3).map(lambda count: list(order[:count]))
)


def _seen(sent: JobManifests, nodes: list[Node]) -> set[str]:
    pod = Pod("any", pod_spec(sent), 0, preempts=False)
    return {tier_of(node) for node in nodes if admits(pod, node)}


@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(
    prefer=PREFERRED,
    nodes=st.integers(min_value=1, max_value=4),
    gpus=st.sampled_from([None, 8]),
    reserved=st.integers(min_value=4, max_value=8),
    on_demand=FREE,
    spot=FREE,
)
def test_whatever_is_free_a_job_lands_on_tiers_that_it_prefers_and_never_on_two(
    hybrid: JobCluster,
    prefer: list[str],
    nodes: int,
    gpus: int | None,
    reserved: int,
    on_demand: int,
    spot: int,
) -> None:
    cluster = Hybrid(hybrid, eks_on_demand=on_demand, eks_spot=spot)
    cluster.submit("production", reserved)
    resources = {} if gpus is None else {"gpu": gpus}
    job = {"name": "burst", **PROGRAM, "prefer": prefer, "resources": resources}

    sent = cluster.submit(job | {"priority": "low"}, nodes=nodes)

    placed = tiers(sent)
    # EC2 has room for all of them; without it they wait for the reserved nodes, or run there.
    if set(prefer) == {"hyperpod"}:
        assert set(placed) <= {"hyperpod", None}
    else:
        assert None not in placed
    assert len(set(placed)) == 1 or set(placed) == {"hyperpod", None}
    assert set(placed) - {None} <= set(prefer)


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("prefer", [list(order) for order in itertools.permutations(TIERS, 2)])
def test_the_pods_of_a_job_may_be_on_what_it_prefers_and_nowhere_else(
    hybrid: JobCluster, prefer: list[str], nodes: int
) -> None:
    every = Hybrid(hybrid, eks_on_demand=1, eks_spot=1).scheduler.nodes
    job = {"name": "burst", **PROGRAM, "prefer": prefer, "nodes": nodes}

    sent = prepare(hybrid, job)

    assert _seen(sent, every) == set(prefer if nodes == 1 else prefer[:1])
