"""Fleet metrics from nodes and pods; a wrong number costs money or sleep."""

import json
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.cases import rows
from tests.support.fleet import node, pod, pool
from tests.support.folders import ROOT
from tests.support.observability_plans import HYBRID_PLAN, of
from ultrascale import plan
from ultrascale.lambdas.fleet_metrics.measures import Key, Measures, log_events, whole
from ultrascale.lambdas.fleet_metrics.nodes import measure_missing, measure_nodes
from ultrascale.lambdas.fleet_metrics.pods import measure_pods, measure_queues
from ultrascale.lambdas.fleet_metrics.settings import Settings, Topology

PLAN = HYBRID_PLAN
# As the schedule hands it over.
EVENT = json.loads(json.dumps(of(PLAN).fleet_metrics.input))
SETTINGS = Settings.parse(EVENT)
NOW = datetime(2026, 12, 1, 12, tzinfo=UTC).timestamp()

reserved = partial(node, plan=pool(PLAN, "hyperpod"))
on_demand_node = partial(node, plan=pool(PLAN, "eks-on-demand"))
spot = partial(node, plan=pool(PLAN, "eks-spot"))
system = partial(node, plan=pool(PLAN, "system"))


def found_broken(name: str, condition: str, status: str = "False") -> dict[str, Any]:
    told = reserved(name)
    told["status"]["conditions"].append({"type": condition, "status": status})
    return told


RESERVED: Key = ("NodeType", "hyperpod")
BURST: Key = ("NodeType", "eks-on-demand")
SPOT: Key = ("NodeType", "eks-spot")
RESEARCH: Key = ("Team", "research")


def parsed(**changes: Any) -> Settings:
    event: Any = {**EVENT, **changes}
    return Settings.parse(event)


def measure(*nodes: Any, pods: list[Any] | None = None, settings: Settings = SETTINGS) -> Measures:
    measures = Measures()
    found = measure_nodes(iter(nodes), settings, measures, now=NOW)
    measure_pods(iter(pods or []), found, settings, measures)
    return measures


def unlabelled(name: str) -> Any:
    """Return a node that is none of the file's."""
    stranger = on_demand_node(name)
    del stranger["metadata"]["labels"]["node-type"]
    return stranger


def short(name: str) -> Any:
    """Return a reserved node with a failed device."""
    node = reserved(name)
    node["status"]["allocatable"]["nvidia.com/gpu"] = "7"
    return node


H1, H2, D1, S1 = reserved("h1"), reserved("h2"), on_demand_node("d1"), spot("s1")
OWN_NAMESPACE = "hyperpod-ns-research"


@rows(
    "nodes, pods, expected",
    {
        "an empty fleet is nought and not unknown": (
            *([], []),
            {
                **{("nodes", key): 0 for key in (None, RESERVED, BURST, SPOT)},
                **{("reserved_idle", None): 0, ("reserved_idle_beside_burst", None): 0},
                ("waiting_jobs", RESEARCH): 0,
            },
        ),
        "nodes by side and by how they are paid": (
            *([H1, H2, D1, S1], []),
            {
                **{("nodes", None): 4, ("nodes", RESERVED): 2},
                **{("nodes", BURST): 1, ("nodes", SPOT): 1, ("burst_nodes", None): 2},
                **{("nodes", ("Capacity", "training-plan")): 2, ("nodes", ("Capacity", "spot")): 1},
                ("accelerators", RESERVED): 16,
            },
        ),
        "a node that is none of the file's": ([unlabelled("x")], [], {("nodes", None): 0}),
        "reserved accelerators that idle beside burst nodes": (
            [H1, H2, D1],
            [pod("a", "h1", asks="6")],
            {("reserved_idle", None): 10, ("reserved_idle_beside_burst", None): 10},
        ),
        "no waste of burst without burst nodes": (
            *([H1, system("s")], []),
            {("reserved_idle", None): 8, ("reserved_idle_beside_burst", None): 0},
        ),
        "accelerators that a pod of any namespace holds": (
            [H1, D1],
            [pod("a", "h1", namespace="somebodys-own")],
            {("reserved_idle", None): 0, ("accelerators_in_use", RESERVED): 8},
        ),
        "a device that failed does not idle": ([short("h1")], [], {("reserved_idle", None): 7}),
        **{
            f"a pod that {phase} holds nothing": (
                [H1],
                [pod("a", "h1", phase=phase)],
                {("reserved_idle", None): 8, ("running_jobs", None): 0},
            )
            for phase in ("Succeeded", "Failed")
        },
        "init containers take no more than the pod": (
            [H1],
            [pod("a", "h1", initContainers=[{"resources": {"limits": {"nvidia.com/gpu": "8"}}}])],
            {("accelerators_in_use", RESERVED): 8},
        ),
        "a job counts once however many pods it has": (
            [H1, H2],
            [
                pod(f"a-{number}", on, job="a", namespace=OWN_NAMESPACE)
                for number, on in enumerate(("h1", "h2", None))
            ],
            {
                **{("running_jobs", RESEARCH): 1, ("running_jobs", RESERVED): 1},
                **{("waiting_jobs", RESEARCH): 0, ("pending_pods", RESEARCH): 1},
                ("running_pods", RESEARCH): 2,
            },
        ),
        "a pod without accelerators is no job": (
            [system("s")],
            [pod("web", "s", resource="cpu", asks="2")],
            {("running_pods", None): 0},
        ),
    },
)
def test_a_fleet_is_counted_as_its_user_pays_for_it(
    nodes: list[Any], pods: list[Any], expected: dict[tuple[str, Key | None], float]
) -> None:
    measures = measure(*nodes, pods=pods)
    found = {
        (name, key): measures.get(name, key) if key else measures.get(name)
        for name, key in expected
    }
    assert found == expected


@pytest.mark.parametrize(
    ("day", "missing"), [("2026-11-30", 0), ("2026-12-02", 6), ("2027-01-06", 0)]
)
def test_nodes_that_a_training_plan_owes_are_missed_from_its_start_to_its_end(
    day: str, missing: int
) -> None:
    measures = Measures()
    nodes = [reserved("h1"), reserved("h2", ready=False), on_demand_node("d1")]
    found = measure_nodes(iter(nodes), SETTINGS, measures, now=NOW)
    now = datetime.fromisoformat(f"{day}T00:00+00:00").timestamp()
    measure_missing(found, SETTINGS, measures, now=now)
    assert measures.get("nodes_missing") == missing


def test_nodes_of_a_reservation_without_an_end_are_always_owed() -> None:
    window = {"pool": "hyperpod", "starts": None, "until": None, "nodes": 3}
    settings, measures = parsed(windows=[window]), Measures()
    measure_missing(measure_nodes([H1], settings, measures, now=NOW), settings, measures, now=0)
    assert measures.get("nodes_missing") == 2


@pytest.mark.parametrize(
    "broken",
    [
        reserved("h1", ready=False),
        reserved("h1", health="UnschedulablePendingReplacement"),
        reserved("h1", health="Unschedulable"),
        {**reserved("h1"), "spec": {"unschedulable": True}},
        found_broken("h1", "AcceleratedHardwareReady"),
    ],
    ids=["not ready", "to be replaced", "in checks", "cordoned", "found broken"],
)
def test_a_reserved_node_that_nobody_can_use_does_not_idle(broken: dict[str, Any]) -> None:
    # Else its repair would look like waste, and wake somebody for nothing.
    measures = measure(broken, on_demand_node("d1"))
    assert measures.get("reserved_idle_beside_burst") == 0


@pytest.mark.parametrize(
    ("broken", "count"),
    [
        (found_broken("h1", "AcceleratedHardwareReady"), 1),
        (found_broken("h1", "AcceleratedHardwareReady", "True"), 0),
        # Pressure passes; and a node may report what nobody here knows.
        (found_broken("h1", "DiskPressure"), 0),
        (reserved("h1", ready=False), 1),
    ],
    ids=["GPU", "healthy", "another condition", "not ready"],
)
def test_a_node_that_is_broken_is_told_with_its_side(broken: dict[str, Any], count: int) -> None:
    # Reserved nodes are never repaired by a verdict: they are paid for until somebody hears of it.
    measures = measure(broken, on_demand_node("d1"))
    assert measures.get("broken_nodes") == count
    assert [measures.get("broken_nodes", key) for key in (RESERVED, BURST)] == [count, 0]


def joined(minutes: int, told: dict[str, Any]) -> Any:
    """Return the node as one that joined ``minutes`` ago."""
    then = datetime.fromtimestamp(NOW, UTC) - timedelta(minutes=minutes)
    told["metadata"]["creationTimestamp"] = then.strftime("%Y-%m-%dT%H:%M:%SZ")
    return told


def tainted(key: str) -> dict[str, Any]:
    return {**reserved("h1"), "spec": {"taints": [{"key": key, "effect": "NoExecute"}]}}


def without(resource: str) -> dict[str, Any]:
    told = reserved("h1")
    told["status"]["allocatable"].pop(resource, None)
    return told


def launched(**labels: str) -> dict[str, Any]:
    told = on_demand_node("d1")
    told["metadata"]["labels"] |= {"karpenter.sh/nodepool": "x"} | labels
    return told


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (tainted("fsx.csi.aws.com/agent-not-ready"), "fsx.csi.aws.com/agent-not-ready"),
        (tainted("s3.csi.aws.com/agent-not-ready"), "s3.csi.aws.com/agent-not-ready"),
        (tainted("node.cloudprovider.kubernetes.io/uninitialized"), "uninitialized"),
        (without("nvidia.com/gpu"), "no nvidia.com/gpu"),
        (without("vpc.amazonaws.com/efa"), "no vpc.amazonaws.com/efa"),
        (launched(), "karpenter.sh/initialized"),
        (launched(**{"karpenter.sh/initialized": "true"}), ""),
        (tainted("nvidia.com/gpu"), ""),
        (reserved("h1"), ""),
    ],
    ids=[
        "taint of Lustre",
        "taint of buckets",
        "taint of the kubelet",
        "no GPUs",
        "no EFA",
        "Karpenter waits",
        "Karpenter does not",
        "taint of the pool",
        "sound",
    ],
)
def test_a_paid_node_that_never_takes_work_is_named_after_fifteen_minutes(
    told: dict[str, Any], why: str
) -> None:
    early, late = Measures(), Measures()
    measure_nodes([joined(14, deepcopy(told))], SETTINGS, early, now=NOW)
    found = measure_nodes([joined(15, deepcopy(told))], SETTINGS, late, now=NOW)

    assert (early.get("nodes_not_initialized"), early.get("broken_nodes")) == (0, 0)
    count = 1 if why else 0
    assert (late.get("nodes_not_initialized"), late.get("broken_nodes")) == (count, count)
    assert all(why in named for named in found.uninitialized.values())
    assert len(found.uninitialized) == count


def test_a_node_whose_place_in_the_network_is_not_known_is_told() -> None:
    near = reserved("h1")
    near["metadata"]["labels"]["topology.k8s.aws/network-node-layer-1"] = "nn-1"
    aware = replace(
        SETTINGS,
        topology=Topology(
            label="topology.k8s.aws/network-node-layer-1", pools=frozenset({"hyperpod"})
        ),
    )
    nodes = (near, reserved("h2"), spot("s1"), system("m1"))

    told, silent = Measures(), Measures()
    measure_nodes(iter(nodes), aware, told, now=NOW)
    measure_nodes(iter(nodes), SETTINGS, silent, now=NOW)

    assert told.get("nodes_without_topology") == 1
    assert silent.get("nodes_without_topology") is None


def test_a_neuron_core_is_its_share_of_a_device() -> None:
    trainium = plan.load(ROOT / "clusters" / "trainium-bert.yaml")
    parts = {"aws.amazon.com/neuron": 1.0, "aws.amazon.com/neuroncore": 0.5}
    settings, measures = parsed(parts=parts, node_types={}), Measures()
    (own,) = (each for each in trainium.pools if each.accelerator)
    found = measure_nodes([node("t1", own)], settings, measures, now=NOW)
    cores = pod("a", "t1", asks="3", resource="aws.amazon.com/neuroncore")
    measure_pods([cores], found, settings, measures)
    assert measures.get("accelerators_in_use") == 1.5


def affinity(key: str, *values: str) -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": [*values]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": required}}


@pytest.mark.parametrize(
    ("spec", "side"),
    [
        ({"nodeSelector": {"node-type": "eks-spot"}}, SPOT),
        (affinity("node-type", "eks-spot"), SPOT),
        (affinity("ultrascale.dev/pool", "eks-spot"), SPOT),
        (affinity("node-type", "hyperpod", "eks-spot"), None),
        ({}, None),
    ],
    ids=["selector", "affinity", "pool", "two sides", "none"],
)
def test_a_job_waits_on_the_side_that_it_asks_for(spec: dict[str, Any], side: Key) -> None:
    measures = measure(pods=[pod("a", **spec)])
    waiting = {key: measures.get("waiting_jobs", key) for key in (RESERVED, BURST, SPOT)}
    assert measures.get("waiting_jobs") == 1
    assert waiting == {key: float(key == side) for key in (RESERVED, BURST, SPOT)}


def test_spend_is_the_sum_of_prices_as_bought() -> None:
    rates = {"hyperpod": 40.5, "eks-on-demand": 21.0, "eks-spot": 8.0}
    nodes = reserved("h1"), on_demand_node("d1"), spot("s1")
    measures = measure(*nodes, settings=parsed(rates=rates))
    assert measures.get("spend", RESERVED) == 40.5
    assert measures.get("spend") == 40.5 + 21.0 + 8.0


def test_a_node_without_a_price_is_counted_and_never_free() -> None:
    measures = measure(system("s1"), system("s2"), settings=parsed(rates={}))
    assert measures.get("unpriced_nodes") == 2
    assert measures.get("spend") is None
    assert measures.get("spend", ("NodeType", "system")) is None


@pytest.mark.parametrize(
    ("health", "recovery", "checks"),
    [
        ("Schedulable", 0, 0),
        ("Unschedulable", 0, 1),
        ("UnschedulablePendingReplacement", 1, 0),
        ("UnschedulablePendingReboot", 1, 0),
        (None, 0, 0),
    ],
)
def test_hyperpods_word_on_a_node_is_repeated(
    health: str | None, recovery: int, checks: int
) -> None:
    measures = measure(reserved("h1", health=health))
    assert measures.get("nodes_in_recovery") == recovery
    assert measures.get("nodes_in_checks") == checks


def workload(queue: str, **conditions: str) -> Any:
    found = [{"type": key, "status": value} for key, value in conditions.items()]
    return {"spec": {"queueName": queue}, "status": {"conditions": found}}


def test_kueues_workloads_wait_until_they_are_admitted_and_end_when_finished() -> None:
    queue = "hyperpod-ns-research-localqueue"
    new: Any = {"spec": {"queueName": queue}}
    measures = Measures()

    measure_queues(
        [
            new,
            workload(queue, QuotaReserved="False"),
            workload(queue, Admitted="True"),
            workload(queue, Admitted="True", Finished="True"),
        ],
        SETTINGS,
        measures,
    )

    assert measures.get("queue_waiting", ("Queue", queue)) == 2
    assert measures.get("queue_running", ("Queue", queue)) == 1
    other = ("Queue", "hyperpod-ns-production-localqueue")
    assert measures.get("queue_waiting", other) == 0
    assert measures.get("pods_held") == 0


@pytest.mark.parametrize(
    ("admitted", "ready", "reason", "held"),
    [
        ("True", "False", "WaitForRecovery", 9),
        ("True", "False", "WaitForStart", 0),
        ("True", "True", "Recovered", 0),
        ("False", "False", "WaitForRecovery", 0),
    ],
)
def test_nodes_that_wait_for_a_lost_one_are_counted(
    admitted: str, ready: str, reason: str, held: int
) -> None:
    """Kueue ends that wait by no limit, and its nodes are paid for."""
    waiting = workload("q", Admitted=admitted)
    waiting["spec"]["podSets"] = [{"name": "trainer", "count": 8}, {"name": "judge"}]
    waiting["status"]["conditions"].append({"type": "PodsReady", "status": ready, "reason": reason})
    measures = Measures()
    measure_queues([waiting], SETTINGS, measures)
    assert measures.get("pods_held") == held


@pytest.mark.parametrize(
    ("phase", "waiting", "running"),
    [("Pending", 1, 0), ("Inqueue", 1, 0), ("Running", 0, 1), ("Completed", None, None)],
)
def test_volcanos_groups_wait_until_they_run(
    phase: str, waiting: int | None, running: int | None
) -> None:
    group: Any = {"spec": {"queue": "q"}, "status": {"phase": phase}}
    measures = Measures()
    measure_queues([group], SETTINGS, measures)
    assert (measures.get("queue_waiting", ("Queue", "q")) or 0) == (waiting or 0)
    assert (measures.get("queue_running", ("Queue", "q")) or 0) == (running or 0)


@pytest.mark.parametrize(("text", "number"), [("8", 8), ("16k", 16_000), ("1Ki", 1024)])
def test_amounts_are_read_however_the_api_server_writes_them(text: str, number: int) -> None:
    assert whole(text) == number


@given(
    idle=st.integers(0, 6),
    busy=st.integers(0, 6),
    burst=st.integers(0, 3),
    waiting=st.integers(0, 3),
)
def test_every_reserved_accelerator_is_in_use_or_idle(
    idle: int, busy: int, burst: int, waiting: int
) -> None:
    nodes = [reserved(f"h{index}") for index in range(idle + busy)]
    nodes += [spot(f"s{index}") for index in range(burst)]
    pods = [pod(f"p{index}", f"h{index}") for index in range(busy)]
    pods += [pod(f"w{index}") for index in range(waiting)]
    measures = measure(*nodes, pods=pods)
    in_use = measures.get("accelerators_in_use", RESERVED) or 0
    assert in_use + (measures.get("reserved_idle") or 0) == 8 * (idle + busy)
    assert measures.get("reserved_idle_beside_burst") == (8 * idle if burst else 0)


def test_each_log_event_is_a_document_that_cloudwatch_reads() -> None:
    measures = measure(reserved("h1"), spot("s1"), pods=[pod("a", "h1")])

    events: Any = log_events(measures, SETTINGS, now=1_796_000_000.25)
    for event in events:
        (directive,) = event["_aws"]["CloudWatchMetrics"]
        (dimensions,) = directive["Dimensions"]
        named = {each["Name"] for each in directive["Metrics"]}
        assert event["_aws"]["Timestamp"] == 1_796_000_000_250
        assert directive["Namespace"] == "Ultrascale"
        assert all(isinstance(event[key], str) for key in dimensions)
        assert all(isinstance(event[name], int | float) for name in named)
        # Nothing else, and within the format's limits.
        assert event.keys() == {"_aws", *dimensions, *named}
        assert len(named) <= 100
        assert {each["Unit"] for each in directive["Metrics"]} <= {"Count", "None", "Percent"}
