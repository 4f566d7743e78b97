"""Under Kueue the queue says which pools a job gets, in which order, and how many nodes at most."""

from functools import cache
from typing import Any

import pytest
import yaml

from tests.support.folders import ROOT
from tests.support.jobs import IMAGE, KUEUE, make_job, pod_spec, prepared, refusals
from tests.support.pools import HYPERPOD_POOL, SYSTEM_POOL, make_document
from ultrascale.jobs import prepare

_IMAGE: dict[str, Any] = {"image": IMAGE, "volumes": []}
JOB = {**_IMAGE, "name": "tune", "queue": "foundation", "nodes": 4, "script": "train.py"}
SERVICE = {**_IMAGE, "name": "chat", "kind": "service", "pool": "serving", "namespace": "serving"}
_SWEEP = {"command": ["python3", "-m", "sweep"]}
SWEEP = {**_IMAGE, **_SWEEP, "name": "sweep", "kind": "batch", "queue": "applied"}
MIXED = (
    ("gpu", ["reserved", "serving-large"]),
    ("all", ["reserved", "neuron"]),
    ("some", ["reserved", "without-efa"]),
)


@cache
def llm() -> dict[str, Any]:
    document = yaml.safe_load((ROOT / "clusters" / "llm-kueue.yaml").read_text())
    (burst,) = (pool for pool in document["pools"] if pool["name"] == "burst")
    document["pools"].append(burst | {"name": "neuron", "instance_types": ["trn2.48xlarge"]})
    document["pools"].append(burst | {"name": "without-efa", "efa": "none"})
    document["scheduling"]["queues"] += [{"name": name, "prefer": pools} for name, pools in MIXED]
    return document


def pools_of(**changes: Any) -> list[str]:
    """Return the pools on which Kueue may place the job's pods."""
    manifests = prepared(llm(), JOB, **changes)
    affinity = pod_spec(manifests)["affinity"]["nodeAffinity"]
    assert [*affinity] == ["requiredDuringSchedulingIgnoredDuringExecution"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    (pool,) = (each for each in term["matchExpressions"] if each["key"] == "ultrascale.dev/pool")
    return pool["values"]


@pytest.mark.parametrize(
    ("changes", "pools"),
    [
        ({}, ["burst", "reserved", "spot"]),
        ({"pool": "burst"}, ["burst"]),
        ({"prefer": ["reserved", "spot"]}, ["reserved", "spot"]),
        ({"nodes": 1, "prefer": ["reserved", "spot"]}, ["reserved", "spot"]),
        # A queue of mixed pools, and a job that wants no EFA, with which they differ.
        ({"queue": "gpu", "pool": "serving-large"}, ["serving-large"]),
        ({"queue": "some", "resources": {"efa": 0}}, ["reserved", "without-efa"]),
    ],
)
def test_a_job_is_left_to_the_order_of_its_queue_among_the_pools_that_it_names(
    changes: dict[str, Any], pools: list[str]
) -> None:
    assert pools_of(**changes) == pools


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"prefer": ["spot", "reserved"]},
            "prefer: queue_gives_its_nodes",
        ),
        (
            {"prefer": ["reserved", "cpu"]},
            "prefer: queue_gives_its_nodes",
        ),
        (
            {"pool": "cpu"},
            "pool: queue_gives_its_nodes",
        ),
        (
            {"queue": "gpu"},
            "pool: pools_of_queue_are_alike",
        ),
        (
            {"queue": "some"},
            "pool: pools_of_queue_are_alike",
        ),
        (
            {"queue": "all", "nodes": 1},
            "pool: pools_of_queue_are_alike",
        ),
        (
            {"queue": "applied", "nodes": 8},
            "queue: queue_can_admit_the_pods",
        ),
    ],
)
def test_what_the_queue_never_gives_a_job_is_refused_before_it_waits_for_ever(
    changes: dict[str, Any], line: str
) -> None:
    assert refusals(llm(), JOB, **changes) == [line]


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({}, []),
        (
            {"pool": "burst"},
            ["pool: service_stays_beside_queues"],
        ),
        (
            {"namespace": "training"},
            ["namespace: service_stays_beside_queues"],
        ),
        ({"namespace": "training", "resources": {"gpu": 0, "cpu": "1", "memory": "1Gi"}}, []),
    ],
)
def test_a_service_takes_no_nodes_that_queues_promise_to_jobs(
    changes: dict[str, Any], lines: list[str]
) -> None:
    assert refusals(llm(), SERVICE, **changes) == lines


@pytest.mark.parametrize(
    "other",
    [
        SERVICE | {"name": None, "pool": "reserved", "queue": "foundation"},
        SWEEP | {"name": None, "namespace": "serving"},
    ],
)
def test_a_service_learns_which_job_put_its_namespace_into_queues(other: dict[str, Any]) -> None:
    job = {key: value for key, value in other.items() if value is not None}
    document = llm()

    assert refusals(document | {"jobs": document["jobs"] | {"other": job}}, SERVICE) == [
        "namespace: service_stays_beside_queues"
    ]


def test_a_job_where_no_queue_takes_any_is_refused() -> None:
    assert refusals(llm(), JOB, namespace="serving") == ["namespace: queue_gives_its_nodes"]


@pytest.mark.parametrize(("parallelism", "refused"), [(7, False), (8, True)])
def test_an_array_needs_quota_for_what_runs_at_the_same_time(
    parallelism: int, refused: bool
) -> None:
    array = {"size": 64, "parallelism": parallelism}
    sweep = {**SWEEP, "array": array}

    assert bool(refusals(llm(), sweep)) == refused


def test_submit_bounds_what_half_of_a_gang_costs_and_tells_how_a_stock_out_ends() -> None:
    """Kueue admits by quota, and EC2 may have fewer nodes: those that came are paid for."""
    notes = prepared(llm(), JOB).notes

    # 4 nodes x $63.296 an hour x 20 minutes.
    assert notes[-3:] == (
        "Nodes of burst and spot are launched once Kueue has admitted it. Where they are not all "
        "ready after 20 minutes, it goes back into queue foundation and is tried again, 10 times "
        "at most; such a try costs at most $84 (4 nodes, $253.18 an hour).",
        "Once all of its pods have run, nothing ends its wait for nodes that it loses then, and "
        "the others are paid for meanwhile; deadline_hours bounds that.",
        "Kueue tries reserved, burst, spot in this order, at each try from the first: where EC2 "
        "has no nodes of a pool that has quota, the same pool comes again. To move the job, "
        "cancel it and submit it with --tier (reserved, burst, spot).",
    )


@pytest.mark.parametrize(
    ("job", "changes", "words"),
    [
        (JOB, {"min_nodes": 2}, "nothing ends"),
        (JOB, {"deadline_hours": 24}, "nothing ends"),
        (JOB, {"nodes": 1}, "nothing ends"),
        (SWEEP, {"array": {"size": 8, "parallelism": 4}, "pool": "spot"}, "nothing ends"),
        # No node is launched for these, and so none is paid for.
        (JOB, {"pool": "reserved"}, "launched"),
        (JOB, {"queue": "racks"}, "launched"),
        (JOB, {"nodes": 1}, "launched"),
    ],
)
def test_only_a_job_that_waits_on_paid_nodes_without_a_limit_is_told_so(
    job: dict[str, Any], changes: dict[str, Any], words: str
) -> None:
    assert [note for note in prepared(llm(), job, **changes).notes if words in note] == []


@pytest.mark.parametrize("job", [JOB, SWEEP, JOB | {"pool": "reserved", "nodes": 1}])
def test_init_is_told_of_the_time_in_which_kueue_wants_all_pods_ready(job: dict[str, Any]) -> None:
    """A pod is not ready before its init has ended: a long one would be cut off at each try."""
    (note,) = (note for note in prepared(llm(), job, init=["fetch"]).notes if "20 min" in note[:70])

    assert note == (
        "init has to end within 20 minutes, with the start of the nodes and the pull of the image: "
        "until then no pod is ready, and Kueue deletes pods that are not all ready by then. What "
        "takes longer belongs into the program, or into a batch job before it."
    )
    assert not any("init" in note for note in prepared(llm(), job).notes)


def rl(**nodes: int) -> dict[str, Any]:
    """Return a job of three roles, of which `rollout` runs on nodes that are launched."""
    command = ["python3", "-m", "rl"]
    roles = {
        "trainer": {"pool": "reserved", "script": "train.py"},
        "rollout": {"pool": "burst", "command": command},
        "reward": {"pool": "reserved", "command": command},
    }
    return {
        "name": "rl",
        "queue": "foundation",
        "image": IMAGE,
        "volumes": [],
        "roles": {name: role | {"nodes": nodes.get(name, 1)} for name, role in roles.items()},
    }


def test_roles_that_share_a_pool_need_quota_for_all_of_them() -> None:
    assert refusals(llm(), rl(trainer=6)) == []
    assert refusals(llm(), rl(trainer=6, reward=2)) == ["queue: queue_can_admit_the_roles"]


@pytest.mark.parametrize(
    ("pools", "refused"),
    [
        ({}, True),
        ({"reward": "reserved"}, True),
        ({"trainer": "spot", "reward": "spot"}, True),
        ({"trainer": "reserved", "rollout": "spot", "reward": "burst"}, False),
        ({"trainer": "burst", "rollout": "burst", "reward": "burst"}, False),
    ],
    ids=["all free", "one named", "one free", "one each", "one for all"],
)
def test_no_job_of_roles_holds_up_a_queue_for_ever(pools: dict[str, str], refused: bool) -> None:
    """While two roles choose among pools, Kueue tries the job without end, and none behind it."""
    job = rl()
    for name, role in job["roles"].items():
        role["pool"] = pools.get(name)

    assert refusals(llm(), job) == (["roles: roles_have_a_pool_each"] if refused else [])


def test_roles_of_one_pool_or_a_queue_of_one_pool_leave_kueue_no_choice() -> None:
    job = rl()
    for role in job["roles"].values():
        role["pool"] = None

    assert refusals(llm(), job | {"pool": "reserved"}) == []
    assert refusals(llm(), job | {"queue": "racks"}) == []


def test_a_role_that_the_queue_cannot_count_is_refused() -> None:
    """Kueue would admit the roles before it alone, and the job could never start."""
    job = rl()
    job["roles"]["reward"]["resources"] = {"gpu": 0, "cpu": 8}

    assert refusals(llm(), job) == ["roles.reward.resources: queue_counts_the_pods"]


@pytest.mark.parametrize("job", [JOB | {"nodes": 1}, SWEEP, SWEEP | {"array": {"size": 9}}])
def test_a_job_takes_no_node_of_a_queue_without_being_counted(job: dict[str, Any]) -> None:
    """Kueue would admit any number of them, and place jobs that it counts on the same nodes."""
    changed = job | {"pool": "reserved", "resources": {"gpu": 0, "cpu": 8, "memory": "9Gi"}}

    assert refusals(llm(), changed) == ["resources: queue_counts_the_pods"]


def test_a_try_of_several_roles_costs_what_is_launched_for_them() -> None:
    (note,) = (note for note in prepared(llm(), rl(trainer=4, rollout=2)).notes if "$" in note)

    assert note.startswith("Nodes of burst are launched once Kueue has admitted it.")
    assert note.endswith("such a try costs at most $42 (2 nodes, $126.59 an hour).")


def test_a_try_costs_no_more_nodes_than_the_pool_ever_has() -> None:
    """Two pods of an array share a node of the larger type."""
    file = ROOT / "clusters" / "llm-kueue.yaml"
    jobs = yaml.safe_load(file.read_text())["jobs"]
    job = {"name": "tokenize", **jobs["tokenize"], "image": IMAGE}

    notes = prepare(file, job).notes

    assert any("paid for up to 20 nodes" in note for note in notes)


def test_kueues_jobs_on_hyperpod_are_told_who_restarts_them() -> None:
    cluster = make_document(pools=[SYSTEM_POOL, HYPERPOD_POOL], scheduling=KUEUE)
    manifests = prepared(cluster, make_job(pool="hp"))

    assert [each["kind"] for each in manifests.objects] == ["JobSet"]
    assert manifests.notes[0] == (
        "JobSet restarts it when a node fails; HyperPod resumes its own kinds alone."
    )
