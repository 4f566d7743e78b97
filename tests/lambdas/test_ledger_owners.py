"""Owners and reasons that one measurement gives the accelerators of nodes."""

import json
from datetime import UTC, datetime
from typing import Any

from tests.support.cases import rows
from tests.support.fleet import Object, node, pod, pool
from tests.support.ledger_life import EVENT, PLAN
from tests.support.ledgers import BLOCK, POOL, next_state, reservation
from ultrascale.lambdas.fleet_metrics.ledger import idle_spend
from ultrascale.lambdas.fleet_metrics.measures import Measures
from ultrascale.lambdas.fleet_metrics.nodes import measure_nodes
from ultrascale.lambdas.fleet_metrics.paid import Paid
from ultrascale.lambdas.fleet_metrics.pods import measure_pods
from ultrascale.lambdas.fleet_metrics.settings import Settings
from ultrascale.lambdas.ledger import DRAIN, HELD, NO_JOB
from ultrascale.plan.model import PoolPlan

SETTINGS = Settings.parse(EVENT)
NOW = datetime(2026, 12, 4, 12, tzinfo=UTC).timestamp()
GPUS, CHIPS = pool(PLAN, "gpu-block-mng"), pool(PLAN, "trn-block-asg")
CORE, DEVICE = "aws.amazon.com/neuroncore", "aws.amazon.com/neuron"


def node_after(minutes: int, *, on: PoolPlan = GPUS, **changes: Any) -> Object:
    """Return a node that joined ``minutes`` ago."""
    told = node("n", on, ready=changes.get("ready", True), health=changes.get("health"))
    then = datetime.fromtimestamp(NOW - minutes * 60, UTC)
    told["metadata"]["creationTimestamp"] = then.strftime("%Y-%m-%dT%H:%M:%SZ")
    told["status"]["allocatable"] |= changes.get("offers", {})
    told["spec"] = changes.get("spec", {})
    return told


def add_deletion(told: Object) -> Object:
    told["metadata"]["deletionTimestamp"] = "2026-12-04T11:00:00Z"
    return told


BAD, CHECKED = "UnschedulablePendingReplacement", "Unschedulable"
TAINTED = {"taints": [{"key": "fsx.csi.aws.com/agent-not-ready"}]}
CORDONED = {"unschedulable": True}
NO_EFA, NO_GPUS, LOST_GPU = (
    {"vpc.amazonaws.com/efa": "0"},
    {"nvidia.com/gpu": "0"},
    {"nvidia.com/gpu": "7"},
)
WAITING = pod("w", asks="8")


@rows(
    "there, others, expected",
    {
        "sound": (node_after(60), [], [(8, "no job")]),
        "wanted": (node_after(60), [WAITING], [(8, "job waits")]),
        "cordoned and wanted": (node_after(60, spec=CORDONED), [WAITING], [(8, "cordoned")]),
        "starts": (node_after(5, ready=False), [WAITING], [(8, "joining")]),
        "starts and cordoned": (node_after(5, ready=False, spec=CORDONED), [], [(8, "joining")]),
        "start-up taint": (node_after(5, spec=TAINTED), [], [(8, "joining")]),
        "no devices yet": (node_after(5, offers=NO_GPUS), [], [(8, "joining")]),
        "never started": (node_after(60, spec=TAINTED), [WAITING], [(8, "unhealthy")]),
        "never had EFA": (node_after(60, offers=NO_EFA), [], [(8, "unhealthy")]),
        "not ready": (node_after(60, ready=False, spec=CORDONED), [], [(8, "unhealthy")]),
        "HyperPod replaces it": (node_after(60, health=BAD), [], [(8, "unhealthy")]),
        "HyperPod replaces it at its start": (
            node_after(5, ready=False, health=BAD),
            [],
            [(8, "unhealthy")],
        ),
        "HyperPod checks it": (node_after(60, ready=False, health=CHECKED), [], [(8, "joining")]),
        "a lost device": (node_after(60, offers=LOST_GPU), [], [(1, "unhealthy"), (7, "no job")]),
        "a lost device and a pod": (
            node_after(60, offers=LOST_GPU, spec=CORDONED),
            [pod("a", "n", asks="4")],
            [(4, "a"), (1, "unhealthy"), (3, "cordoned")],
        ),
        "more pods than devices": (
            node_after(60),
            [pod("a", "n", asks="6"), pod("b", "n", asks="6")],
            [(6, "a"), (2, "b")],
        ),
        "pods that ended": (
            node_after(60),
            [pod("a", "n", phase="Succeeded"), pod("b", "n", phase="Failed")],
            [(8, "no job")],
        ),
        "a pod that ends": (node_after(60), [add_deletion(pod("a", "n"))], [(8, "a")]),
        "a pod that was taken from a lost node": (
            node_after(60, ready=False),
            [add_deletion(pod("a", "n"))],
            [(8, "unhealthy")],
        ),
        "a pod on a node that is not heard of": (
            node_after(60, ready=False),
            [pod("a", "n")],
            [(8, "a")],
        ),
        "a pod that starts": (node_after(60), [pod("a", "n", phase="Pending")], [(8, "a")]),
        "cores of Neuron": (
            node_after(60, on=CHIPS),
            [pod("a", "n", asks="6", resource=CORE), pod("b", "n", asks="2", resource=DEVICE)],
            [(1.5, "a"), (2, "b"), (12.5, "no job")],
        ),
        "cores of Neuron are wanted": (
            node_after(60, on=CHIPS),
            [pod("w", asks="6", resource=CORE)],
            [(16, "job waits")],
        ),
        "cores of Neuron are wanted, and it has GPUs": (
            node_after(60),
            [pod("w", asks="6", resource=CORE)],
            [(8, "no job")],
        ),
        "GPUs are wanted, and it has none": (node_after(60, on=CHIPS), [WAITING], [(16, "no job")]),
        "another pool is wanted": (
            node_after(60),
            [pod("w", nodeSelector={"ultrascale.dev/pool": "gpu-burst"})],
            [(8, "no job")],
        ),
    },
)
def test_an_accelerator_has_its_owner_or_the_first_reason_that_applies(
    there: Object, others: list[Object], expected: list[tuple[float, str]]
) -> None:
    assert SETTINGS.ledger is not None
    paid, measures = Paid(SETTINGS.ledger), Measures()
    places = measure_nodes([there], SETTINGS, measures, now=NOW, paid=paid)
    measure_pods(others, places, SETTINGS, measures, paid)

    row = json.loads(dict(paid.values())["n"])

    found = [(part["n"], part.get("job") or part["reason"]) for part in row["parts"]]
    assert found == expected
    assert sum(n for n, _ in found) == row["accelerators"]


def test_what_a_job_holds_without_use_does_not_drain() -> None:
    assert SETTINGS.ledger is not None
    paid, now = Paid(SETTINGS.ledger), int(NOW)
    paid.unused |= {(BLOCK, POOL, HELD): 1, (BLOCK, POOL, NO_JOB): 1}
    paid.joined[BLOCK] = 2
    state = next_state(None, [reservation(0, 0, (now - 3_600, now + 60))], now, 60, {})
    assert dict(idle_spend(paid, state, {POOL: 90.0})) == {HELD: 90, DRAIN: 90}
