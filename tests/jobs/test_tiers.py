"""A job of several nodes runs where it can start, as a whole, and `submit` says where and why."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import ultrascale
from tests.support.jobs import HYBRID, IMAGE, pod_spec
from tests.support.stub_api_http import kubeconfig, serve
from tests.support.stub_api_server import Object, Refusal, StubApiServer
from tests.support.verdicts import verdicts
from ultrascale.cluster_api.server import Cluster
from ultrascale.errors import ClusterError, ConfigError
from ultrascale.jobs import JobManifests, prepare, tiers
from ultrascale.jobs.preparation import JobCluster, read_cluster
from ultrascale.plan.jobs import tiers as job_tiers
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.jobs.tiers import Choice, Occupancy, Tier

HYPERPOD, ON_DEMAND, SPOT = "hyperpod", "eks-on-demand", "eks-spot"
PROGRAM: dict[str, Any] = {"image": IMAGE, "script": "train.py", "nodes": 2, "durable": False}
# The local file system of the cluster and its claims are in no stub.
JOB = {"name": "burst", **PROGRAM, "prefer": [HYPERPOD, ON_DEMAND, SPOT], "volumes": []}


@pytest.fixture(scope="module")
def llm() -> JobCluster:
    return read_cluster(HYBRID.with_name("llm-kueue.yaml"))


@pytest.fixture(scope="module")
def three(hybrid: JobCluster) -> dict[str, Tier]:
    pools = {pool.name: (pool,) for pool in hybrid.plan.pools}
    return {name: Tier(name=name, pools=pools[name]) for name in (HYPERPOD, ON_DEMAND, SPOT)}


@pytest.fixture
def stub() -> Iterator[StubApiServer]:
    server = StubApiServer()
    server.groups.add("/apis/kubeflow.org/v1")
    with serve(server) as running:
        yield running


def add_nodes(stub: StubApiServer, tier: str, count: int, *, pool: str | None = None) -> None:
    """Add nodes of a tier, whose pools are called as their tier is unless ``pool`` says else."""
    for number in range(count):
        name = f"{pool or tier}-{number}"
        labels = {"node-type": tier, "ultrascale.dev/pool": pool or tier}
        stub.put(
            f"/api/v1/nodes/{name}",
            {
                "kind": "Node",
                "metadata": {"name": name, "labels": labels},
                "spec": {},
                "status": {"conditions": [{"type": "Ready", "status": "True"}]},
            },
        )


def add_pod(stub: StubApiServer, name: str, node: str, *, gpus: int, **status: Any) -> None:
    requests = {"nvidia.com/gpu": str(gpus)} if gpus else {"cpu": "1"}
    found: Object = {
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"nodeName": node, "containers": [{"resources": {"requests": requests}}]},
        "status": {"phase": "Running", **status},
    }
    stub.put(f"/api/v1/namespaces/training/pods/{name}", found)


# --- which tier ---------------------------------------------------------------------------------


NONE_FREE = "no tier has 2 free nodes (hyperpod has 0, eks-on-demand has 0, eks-spot has 0), "
CHOICES: list[tuple[Sequence[str], Sequence[int], Sequence[int], str, str]] = [
    # tiers in their order, their free nodes, all their nodes, the tier, and why
    ((HYPERPOD, SPOT), (2, 9), (8, 9), HYPERPOD, "2 of its nodes are free, and it needs 2"),
    ((HYPERPOD, SPOT), (1, 2), (8, 2), SPOT, "2 of its nodes are free, and it needs 2"),
    # What is free counts towards what is launched.
    (
        (HYPERPOD, ON_DEMAND, SPOT),
        (1, 1, 0),
        (8, 1, 0),
        ON_DEMAND,
        "no tier has 2 free nodes (hyperpod has 1, eks-on-demand has 1, eks-spot has 0), "
        "and 1 can be launched there",
    ),
    (
        (HYPERPOD, ON_DEMAND, SPOT),
        (0, 0, 0),
        (8, 15, 0),
        SPOT,
        f"{NONE_FREE}and 2 can be launched there",
    ),
    # Nodes of a training plan are not launched.
    (
        (HYPERPOD, ON_DEMAND),
        (0, 0),
        (0, 16),
        HYPERPOD,
        "no tier has 2 free nodes (hyperpod has 0, eks-on-demand has 0), and none can launch "
        "what is missing: the job waits there",
    ),
]


def test_the_tier_is_the_first_that_can_take_the_whole_job(three: dict[str, Tier]) -> None:
    for order, free, there, tier, why in CHOICES:
        seen = {
            name: Occupancy(nodes=nodes, free=unused)
            for name, unused, nodes in zip(order, free, there, strict=True)
        }
        choice = job_tiers.choose([three[name] for name in order], 2, seen)
        assert choice == Choice(tier=tier, why=why)


def test_a_tier_that_can_never_hold_the_job_is_neither_asked_nor_waited_for(
    hybrid: JobCluster,
) -> None:
    asked: list[str] = []

    def choose(_request: JobRequest, found: Sequence[Tier]) -> Choice:
        asked.extend(tier.name for tier in found)
        return Choice(tier=found[0].name, why="it is")

    prepare(hybrid, JOB, changes={"nodes": 12}, choose=choose)
    assert asked == [ON_DEMAND, SPOT]
    # Its training plan has ended.
    (pool,) = (pool for pool in hybrid.plan.pools if pool.name == HYPERPOD)
    assert pool.window is not None
    sent = prepare(hybrid, JOB, now=pool.window.usable_until)
    assert sent.notes[0].startswith(f"It runs on {ON_DEMAND}: ")


# --- what is free -------------------------------------------------------------------------------


def test_a_node_counts_as_free_where_no_pod_holds_its_gpus(
    stub: StubApiServer, cluster: Cluster, three: dict[str, Tier]
) -> None:
    add_nodes(stub, HYPERPOD, 4)
    add_pod(stub, "trains", f"{HYPERPOD}-0", gpus=8)
    add_pod(stub, "notebook", f"{HYPERPOD}-1", gpus=1)
    add_pod(stub, "exporter", f"{HYPERPOD}-2", gpus=0)
    add_pod(stub, "ended", f"{HYPERPOD}-3", gpus=8, phase="Succeeded")
    stub.page = 2

    assert tiers.occupancy_of(cluster, three[HYPERPOD]) == Occupancy(nodes=4, free=2)


DOWN = {"conditions": [{"type": "Ready", "status": "False"}]}
UNWELL = {"labels": {"sagemaker.amazonaws.com/node-health-status": "Unschedulable"}}


def tainted(key: str, effect: str) -> dict[str, Any]:
    return {"spec": {"taints": [{"key": key, "value": "true", "effect": effect}]}}


NODES: list[tuple[dict[str, Any], int]] = [
    ({}, 1),
    ({"spec": {"unschedulable": True}}, 0),
    ({"status": DOWN}, 0),
    ({"metadata": UNWELL}, 0),
    (tainted("karpenter.sh/disrupted", "NoSchedule"), 0),
    (tainted("spot", "NoSchedule"), 1),
    (tainted("slow", "PreferNoSchedule"), 1),
]


@pytest.mark.parametrize(("change", "free"), NODES)
def test_a_node_that_takes_no_pods_is_not_free(
    stub: StubApiServer, cluster: Cluster, three: dict[str, Tier], change: dict[str, Any], free: int
) -> None:
    add_nodes(stub, SPOT, 1)
    stub.update(f"/api/v1/nodes/{SPOT}-0", **change)
    assert tiers.occupancy_of(cluster, three[SPOT]) == Occupancy(nodes=1, free=free)


def test_nodes_of_another_tier_or_that_the_job_does_not_fit_are_not_counted(
    stub: StubApiServer, cluster: Cluster, three: dict[str, Tier]
) -> None:
    """Counted, they would draw the job to a tier on which its pods wait for ever."""
    add_nodes(stub, ON_DEMAND, 3)
    assert tiers.occupancy_of(cluster, three[SPOT]) == Occupancy(nodes=0, free=0)
    add_nodes(stub, SPOT, 1)
    add_nodes(stub, SPOT, 3, pool="smaller-spot")
    assert tiers.occupancy_of(cluster, three[SPOT]) == Occupancy(nodes=1, free=1)


# --- submit -------------------------------------------------------------------------------------


def submit(stub: StubApiServer, folder: Path, **options: Any) -> ultrascale.SubmittedJob:
    known = kubeconfig(folder, stub.url, cluster="hybrid")
    return ultrascale.submit(HYBRID, JOB, kubeconfig=known, **options)


def tier_of(job: JobManifests) -> list[str]:
    affinity = pod_spec(job)["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return term["matchExpressions"][0]["values"]


def test_submit_asks_the_cluster_and_requires_the_tier_that_it_tells(
    stub: StubApiServer, tmp_path: Path
) -> None:
    add_nodes(stub, HYPERPOD, 1)
    add_nodes(stub, SPOT, 2)

    job = submit(stub, tmp_path)

    assert tier_of(job.manifests) == [SPOT]
    assert job.notes[0] == f"It runs on {SPOT}: 2 of its nodes are free, and it needs 2."


def test_submit_says_that_it_may_not_see_what_is_free(stub: StubApiServer, tmp_path: Path) -> None:
    stub.refuse("GET", "/api/v1/nodes$", Refusal(403, "nodes is forbidden"))
    job = submit(stub, tmp_path)
    assert tier_of(job.manifests) == [HYPERPOD]
    assert job.notes[0] == (
        "It runs on hyperpod: what is free may not be read (nodes is forbidden), and it comes "
        "first; --tier chooses another."
    )


def test_a_server_that_fails_is_an_error_and_no_choice(stub: StubApiServer, tmp_path: Path) -> None:
    stub.refuse("GET", "/api/v1/nodes$", Refusal(500, "etcd has no leader"))
    with pytest.raises(ClusterError, match="etcd has no leader"):
        submit(stub, tmp_path)


def test_a_tier_that_somebody_chose_is_taken_unasked(stub: StubApiServer, tmp_path: Path) -> None:
    add_nodes(stub, SPOT, 2)

    job = submit(stub, tmp_path, tier=ON_DEMAND)

    assert tier_of(job.manifests) == [ON_DEMAND]
    asked = [each.query["labelSelector"] for each in stub.asked("GET", "/api/v1/nodes")]
    # Whether it has room there, and nothing of the other tiers.
    assert all(f"ultrascale.dev/pool={ON_DEMAND}" in each for each in asked)


def test_without_a_cluster_the_first_tier_is_shown_and_said(hybrid: JobCluster) -> None:
    sent = prepare(hybrid, JOB)

    assert sent.notes[0] == (
        "It runs on hyperpod: the first that can hold it, as no cluster was asked what is free; "
        "--tier chooses another."
    )


def test_a_tier_that_is_none_of_the_jobs_is_refused(hybrid: JobCluster, llm: JobCluster) -> None:
    pinned = {**JOB, "pool": ON_DEMAND, "nodes": 1}
    del pinned["prefer"]
    roles = {"roles": {"a": COMMAND, "b": COMMAND}}
    alone = {key: value for key, value in QUEUED.items() if key not in ("script", "nodes")}
    several = "each role has its own pool, so a tier chooses nothing"
    of_pool = "a tier for a job that names pool"
    for cluster, job, tier, wrong in (
        (hybrid, JOB, "eks-spt", "a tier not in the job's prefer, got eks-spt; use hyperpod, "),
        (hybrid, pinned, SPOT, f"{of_pool} eks-on-demand, got eks-spot; keep pool or"),
        (llm, QUEUED, "cpu", "a tier that queue foundation does not have, got cpu; "),
        (llm, QUEUED | {"pool": "spot"}, "spot", f"{of_pool} spot, got spot; "),
        (llm, alone | roles, "spot", f"{several}, got spot; "),
    ):
        with pytest.raises(ConfigError) as error:
            prepare(cluster, job, tier=tier)
        assert str(error.value).startswith(f"job: prefer: {wrong}")


def test_a_tier_without_the_devices_is_refused_before_it_is_chosen(hybrid: JobCluster) -> None:
    with pytest.raises(ConfigError) as error:
        prepare(hybrid, JOB, changes={"prefer": [HYPERPOD, "system"], "resources": {"gpu": 8}})

    assert verdicts(error.value) == [
        "prefer: training_keeps_off_controllers",
        "resources.gpu: job_fits_its_nodes",
    ]


def test_one_pod_is_left_to_the_scheduler_with_the_order_of_its_tiers(hybrid: JobCluster) -> None:
    spec = pod_spec(prepare(hybrid, JOB, changes={"nodes": 1}))

    affinity = spec["affinity"]["nodeAffinity"]
    liked = [
        (term["weight"], term["preference"]["matchExpressions"][0]["values"])
        for term in affinity["preferredDuringSchedulingIgnoredDuringExecution"]
    ]
    assert liked == [(100, [HYPERPOD]), (50, [ON_DEMAND]), (10, [SPOT])]


def test_weights_fall_for_as_many_tiers_as_there_are() -> None:
    found = [*job_tiers.weights([str(number) for number in range(11)]).values()]

    assert found == sorted(set(found), reverse=True)
    assert (found[0], found[-1] >= 1) == (100, True)


QUEUED: dict[str, Any] = {"name": "burst", **PROGRAM, "queue": "foundation", "volumes": []}


@pytest.mark.parametrize(
    ("tier", "pools"), [(None, ["burst", "reserved", "spot"]), ("spot", ["spot"])]
)
def test_kueue_chooses_among_the_pools_of_its_queue_unless_a_tier_pins_the_job(
    llm: JobCluster, tier: str | None, pools: list[str]
) -> None:
    """Two submitters who look at once see the same free nodes; Kueue gives them to one."""

    def choose(*_: object) -> Choice:
        raise AssertionError("nobody looks at free nodes")

    assert tier_of(prepare(llm, QUEUED, choose=choose, tier=tier)) == pools


COMMAND = {"command": ["python3", "-m", "rl"]}
