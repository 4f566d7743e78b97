"""A job starts as a whole or not at all, and is started again as often as it is worth."""

from typing import Any

import pytest

from tests.support.jobs import BATCH, VOLCANO, job_cluster, make_job, objects, prepared, refusals
from tests.support.pools import CAPACITY_BLOCK, ODCR, ON_DEMAND, SPOT, pool_document

G_TYPES = ["g6.12xlarge", "g6e.12xlarge", "g5.12xlarge"]


@pytest.mark.parametrize(
    ("purchase", "job", "restarts"),
    [
        (ON_DEMAND, make_job(nodes=1), 10),
        (SPOT, make_job(nodes=1), 100),
        (SPOT, make_job(nodes=1, restarts={"job": 2}), 2),
        # All pods fail with the first one, and each of them counts.
        (ON_DEMAND, make_job(nodes=4, min_nodes=2), 40),
        (SPOT, make_job(nodes=4, min_nodes=2), 400),
        (SPOT, make_job(nodes=1, restarts={"job": 0}), 0),
        (ON_DEMAND, BATCH, 3),
        (SPOT, BATCH, 100),
        (SPOT, BATCH | {"retries": 1}, 1),
    ],
)
def test_losing_spot_nodes_does_not_use_up_the_restarts(
    purchase: dict[str, str], job: dict[str, Any], restarts: int
) -> None:
    train = pool_document(instance_types=G_TYPES, purchase=purchase, zones=None, efa="none")
    (found,) = objects(prepared(job_cluster(train), job), "Job")
    # Volcano counts the first run too.
    assert found["spec"]["maxRetry"] == restarts + 1


def test_losing_a_node_is_no_failure_where_kubernetes_runs_the_job() -> None:
    train = pool_document(instance_types=G_TYPES, purchase=SPOT, zones=None)
    (found,) = objects(prepared(job_cluster(train, scheduling=None), BATCH), "Job")
    lost = {"type": "DisruptionTarget", "status": "True"}
    assert found["spec"]["backoffLimitPerIndex"] == 3
    assert found["spec"]["podFailurePolicy"]["rules"] == [
        {"action": "Ignore", "onPodConditions": [lost]}
    ]


def test_a_refusal_that_no_restart_cures_ends_the_job_at_once() -> None:
    """All nodes are paid for while a job that is refused for a cold cache is tried again."""
    for least in (None, 2):
        (job,) = objects(prepared(nodes=4, min_nodes=least), "Job")
        assert job["spec"]["policies"][0] == {"exitCode": 2, "action": "TerminateJob"}
    (job,) = objects(prepared(job_cluster(scheduling=None), nodes=1), "Job")
    fail = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [2]}}
    assert job["spec"]["podFailurePolicy"]["rules"][1:] == [fail]


def test_an_elastic_job_ends_though_a_node_never_came() -> None:
    """Volcano waits for every pod of a job unless it is told how many are enough."""
    (elastic,) = objects(prepared(nodes=4, min_nodes=2), "Job")
    (fixed,) = objects(prepared(nodes=4), "Job")
    program = make_job(nodes=4, min_nodes=2, script=None, command=["work"])
    (each,) = objects(prepared(job=program), "Job")

    assert (elastic["spec"]["minAvailable"], elastic["spec"]["minSuccess"]) == (2, 2)
    assert elastic["spec"]["policies"][-1]["action"] == "RestartPod"
    # Pods that do not end together may have work left when others are done.
    assert "minSuccess" not in each["spec"]
    assert fixed["spec"]["minAvailable"] == 4
    assert "minSuccess" not in fixed["spec"]
    assert fixed["spec"]["policies"][-1] == {
        "events": ["PodEvicted", "PodFailed"],
        "action": "RestartJob",
    }


@pytest.mark.parametrize("job", [BATCH, make_job(script=None, command=["work"])])
def test_what_a_program_of_the_user_means_by_its_exit_code_is_not_guessed(
    job: dict[str, Any],
) -> None:
    (found,) = objects(prepared(job=job), "Job")

    assert [policy for policy in found["spec"]["policies"] if "exitCode" in policy] == []


@pytest.mark.parametrize(
    ("pool", "refused"),
    [
        (pool_document(), True),
        (pool_document(nodes={"min": 2, "max": 4}), False),
        (pool_document(nodes={"static": 4}), False),
        (pool_document(provisioner="karpenter"), True),
        (pool_document(provisioner="auto-mode"), True),
        (pool_document(purchase=CAPACITY_BLOCK, role="reserved"), False),
        (pool_document(purchase=ODCR, role="reserved"), False),
    ],
)
def test_nodes_that_come_one_by_one_start_no_job_of_several_without_a_queueing_engine(
    pool: dict[str, Any], refused: bool
) -> None:
    """Two jobs would each hold half of the nodes, and wait for the other half."""
    lines = refusals(job_cluster(pool, scheduling=None))

    assert lines == (["nodes: pods_start_together"] if refused else [])


def test_a_part_of_each_of_several_nodes_is_refused() -> None:
    assert refusals(resources={"neuron": 1}) == ["nodes: pods_start_together"]


@pytest.mark.parametrize(("most", "refused"), [(31, True), (32, False)])
def test_a_queue_that_can_never_hold_the_job_is_refused(most: int, refused: bool) -> None:
    queue = {"name": "small", "capability": {"aws.amazon.com/neuron": str(most)}}
    cluster = job_cluster(scheduling=VOLCANO | {"queues": [queue]})

    lines = refusals(cluster)

    assert lines == (["queue: queue_holds_the_pods"] if refused else [])


@pytest.mark.parametrize(
    ("queues", "stated", "queue"),
    [
        ([], None, "default"),
        (["a"], None, "a"),
        (["a", "b"], None, "default"),
        (["a", "b"], "b", "b"),
        (["a"], "default", "default"),
    ],
)
def test_a_job_waits_in_the_queue_that_it_names_or_the_only_one(
    queues: list[str], stated: str | None, queue: str
) -> None:
    named = [{"name": name} for name in queues]
    job = prepared(job_cluster(scheduling=VOLCANO | {"queues": named}), make_job(queue=stated))

    assert (job.queue, objects(job, "Job")[0]["spec"]["queue"]) == (queue, queue)
