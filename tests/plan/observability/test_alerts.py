"""Alerts: early enough, and only for resources that the cluster has."""

from datetime import UTC, datetime

import pytest

from tests.support.observability_plans import (
    CLUSTERS,
    EMAIL,
    HYBRID,
    HYBRID_PLAN,
    alerts,
    neuron,
    of,
    planned,
)
from tests.support.pools import (
    CAPACITY_BLOCK,
    NEURON_POOL,
    ODCR,
    SYSTEM_POOL,
    make_cluster,
    make_document,
)
from ultrascale.parts.observability.services import watch_services
from ultrascale.plan import ClusterPlan, assemble

TOPOLOGY = {"queueing": "volcano", "topology_aware": True}
SERVED = {"kind": "service", "pool": "train", "image": "docker.io/vllm/vllm-openai:v0.33.0"}
# The pool on a training plan in two shards.
SHARDED = [
    {**pool, "shards": 2, "nodes": {"static": 4}} if pool["name"] == "hyperpod" else pool
    for pool in HYBRID["pools"]
]


def alarm_names(cluster: ClusterPlan) -> list[str]:
    return [alarm.name for alarm in alerts(cluster).alarms]


def test_somebody_is_told_of_reserved_nodes_that_idle_beside_burst_nodes() -> None:
    found = {alarm.name: alarm for alarm in alerts(HYBRID_PLAN).alarms}
    idle, missing = found["reserved-idle"], found["reserved-missing"]
    # A whole node of it, for a quarter of an hour.
    assert (idle.threshold, idle.periods * idle.period_seconds) == (8, 15 * 60)
    assert idle.metrics["m"].name == "ReservedIdleBesideBurst"
    # Nodes of a training plan come within half an hour of the start, and after a fault.
    assert (missing.threshold, missing.periods * missing.period_seconds) == (1, 60 * 60)
    # A cluster without reserved or HyperPod nodes has no alarm about them.
    there = {*alarm_names(CLUSTERS["neuron"])}
    none = {"reserved-idle", "reserved-missing", "hyperpod-recovery", "free-capacity-training"}
    assert "fleet-metrics" in there
    assert not there & none
    assert alerts(CLUSTERS["neuron"]).events == ()


def test_somebody_is_told_of_reserved_nodes_that_never_came() -> None:
    # Karpenter passes over a reservation that is gone in silence, and the pool stays at none.
    launched = NEURON_POOL | {"provisioner": "karpenter", "purchase": ODCR}
    static = launched | {"name": "reserved", "role": "reserved", "nodes": {"static": 8}}
    other = launched | {"purchase": ODCR | {"reservation": "cr-0fedcba9876543210"}}
    pools = [SYSTEM_POOL, static | {"shards": 2}, other]
    cluster = neuron(karpenter={"version": "1.15.2"}, pools=pools)
    (missing,) = (a for a in alerts(cluster).alarms if a.name == "reserved-missing")
    assert missing.threshold == 1
    # How many nodes the other pool has to have, only its pods know.
    assert of(cluster).fleet_metrics.input["windows"] == [
        {"pool": "reserved", "starts": None, "until": None, "nodes": 16}
    ]
    # The shards of a training plan owe their nodes together, and remind of its end once.
    sharded = planned({**HYBRID, "pools": SHARDED})
    days = ("2026-12-01T11:30:00+00:00", "2027-01-05T10:30:00+00:00")
    starts, until = (datetime.fromisoformat(day).timestamp() for day in days)
    assert of(sharded).fleet_metrics.input["windows"] == [
        {"pool": "hyperpod", "starts": starts, "until": until, "nodes": 8}
    ]
    names = [reminder.name for reminder in alerts(sharded).reminders]
    assert names == ["hyperpod-a-day", "hyperpod-two-hours"]


def test_somebody_is_told_of_nodes_that_nobody_repairs() -> None:
    (broken,) = (a for a in alerts(HYBRID_PLAN).alarms if a.name == "broken-nodes")

    # EKS itself waits half an hour, for a node that may come back.
    assert broken.periods * broken.period_seconds == 40 * 60
    # Of a few nodes of one, of many of one in a thousand of those that run: ten that are reserved
    # and broken are no few because a file would let thousands burst.
    assert (broken.expression, broken.threshold) == ("1000 * found / nodes", 1)
    assert [each.name for each in broken.metrics.values()] == ["BrokenNodes", "Nodes"]


def test_somebody_is_told_of_nodes_whose_place_in_the_network_nobody_knows() -> None:
    # Volcano takes them for far away from each other: jobs are slower, and nothing says so.
    cluster = neuron(scheduling=TOPOLOGY)
    (unknown,) = (a for a in alerts(cluster).alarms if a.name == "topology-unknown")
    assert (unknown.expression, unknown.threshold) == ("1000 * found / nodes", 1)
    assert unknown.metrics["found"].name == "NodesWithoutTopology"
    assert of(cluster).fleet_metrics.input["topology"] == {
        "label": "topology.k8s.aws/network-node-layer-1",
        "pools": (NEURON_POOL["name"],),
        "labels": tuple(f"topology.k8s.aws/network-node-layer-{layer}" for layer in (3, 2, 1)),
        "hyper_nodes": "/apis/topology.volcano.sh/v1alpha1/hypernodes",
        "touched": "ultrascale-look-again",
    }
    assert "hyper-nodes-missing" in alarm_names(cluster)
    assert "hyper-nodes-missing" not in alarm_names(neuron(scheduling=None))
    assert "topology-unknown" not in alarm_names(neuron(scheduling={"queueing": "volcano"}))
    # Nobody waits for the place of types of which AWS tells none.
    pools = [SYSTEM_POOL, NEURON_POOL | {"instance_types": ["inf2.48xlarge"]}]
    assert "topology-unknown" not in alarm_names(neuron(scheduling=TOPOLOGY, pools=pools))


def test_under_kueue_waiting_jobs_are_counted_and_nodes_that_its_topology_misses_are_told() -> None:
    queues = [{"name": "racks", "prefer": ["train"], "topology": True}]
    pools = [SYSTEM_POOL, NEURON_POOL | {"nodes": {"static": 4}}]
    cluster = neuron(scheduling={"queueing": "kueue", "queues": queues}, pools=pools)
    plain = neuron(scheduling={"queueing": "kueue"}, pools=pools)
    told = of(cluster).fleet_metrics.input
    (unknown,) = (a for a in alerts(cluster).alarms if a.name == "topology-unknown")
    assert "Kueue admits no job" in unknown.description
    assert "hyper-nodes-missing" not in alarm_names(cluster)
    assert "topology-unknown" not in alarm_names(plain)
    assert told["queues"] == "/apis/kueue.x-k8s.io/v1beta2/workloads"
    assert told["queue_names"] == ("racks",)
    assert of(plain).fleet_metrics.input["queue_names"] == ("default",)


def test_a_function_that_says_nothing_is_a_fault() -> None:
    for cluster in CLUSTERS.values():
        (silent,) = (a for a in alerts(cluster).alarms if a.name == "fleet-metrics")
        assert silent.missing_is_wrong


def test_a_service_that_answers_too_little_or_not_at_all_is_told() -> None:
    found = {alarm.name: alarm for alarm in alerts(CLUSTERS["with a service"]).alarms}
    waiting, silent = found["service-waiting-chat"], found["service-silent-chat"]

    # Two replicas, of which each has somebody waiting.
    assert (waiting.comparison, waiting.threshold) == ("GreaterThanThreshold", 2)
    assert waiting.periods * waiting.period_seconds == 15 * 60
    assert (silent.comparison, silent.threshold) == ("LessThanThreshold", 1)
    # Its program may take 15 minutes to start, and its node as long.
    assert silent.periods * silent.period_seconds == 30 * 60
    # A service that nobody submitted is none that fails.
    assert not silent.missing_is_wrong


def test_a_service_whose_requests_run_without_tokens_is_told() -> None:
    """Its nodes are paid for, and its server says that it is well."""
    found = {alarm.name: alarm for alarm in alerts(CLUSTERS["with a service"]).alarms}
    stalled = found["service-stalled-chat"]

    assert {metric.name for metric in stalled.metrics.values()} == {
        "ServiceRequestsRunning",
        "ServiceGeneratedTokens",
        "ServicePromptTokens",
    }
    assert stalled.expression == "IF(requests > 0 AND answers + prompts == 0, 1, 0)"
    # The probe starts a pod anew before anybody is woken.
    assert stalled.periods * stalled.period_seconds == 10 * 60


def test_more_requests_wait_than_further_replicas_are_added_for() -> None:
    scaled = {"metric": "waiting", "target": 5, "max": 6}
    chat = SERVED | {"autoscale": scaled, "startup_seconds": 604_800}
    cluster = make_cluster(jobs={"chat": chat}, observability={"alarms": EMAIL})
    plan = assemble(cluster)
    waiting, _, silent = watch_services(cluster, plan.all_pools, plan.services, 60).alarms
    assert waiting.threshold == 30
    # CloudWatch looks back for a day at most.
    assert silent.periods * silent.period_seconds == 86_400
    # A server that tells no metrics is not taken for silent.
    dumb = make_cluster(jobs={"chat": SERVED | {"args": ["--model=/m", "--disable-log-stats"]}})
    assert watch_services(dumb, (), (), 60).alarms == ()


def test_a_file_system_is_full_before_checkpoints_fail() -> None:
    (free,) = (a for a in alerts(HYBRID_PLAN).alarms if a.name == "free-capacity-training")

    assert free.threshold == 960 * 1024**3
    # Each storage target sends its share once a minute: a longer period would add them up.
    assert (free.metrics["m"].statistic, free.period_seconds) == ("Sum", 60)


def test_the_end_of_a_training_plan_is_told_a_day_and_two_hours_before() -> None:
    reminders = alerts(HYBRID_PLAN).reminders

    assert [reminder.at for reminder in reminders] == [
        datetime(2027, 1, 4, 11, 30, tzinfo=UTC),
        datetime(2027, 1, 5, 9, 30, tzinfo=UTC),
    ]
    assert "can be used until 2027-01-05 10:30 UTC" in reminders[0].message


def test_the_end_of_a_capacity_block_is_told_too() -> None:
    block = NEURON_POOL | {"instance_types": ["p5.48xlarge"], "purchase": CAPACITY_BLOCK}
    block |= {"nodes": {"static": 2}}
    reminders = alerts(neuron(pools=[SYSTEM_POOL, block])).reminders
    assert [reminder.at.day for reminder in reminders] == [7, 8]
    assert reminders[0].subject == "research: capacity block ends in 24 hours"
    assert "The capacity block of pool train of research ends at" in reminders[0].message
    # SNS refuses a longer subject when the plan is about to end, and nobody is told.
    long = neuron(name="c" * 40, pools=[SYSTEM_POOL, block | {"name": "p" * 50}])
    subjects = [each.subject for each in alerts(long).reminders]
    assert len(subjects) == 2
    assert all(len(each) < 100 and each.isascii() for each in subjects)


@pytest.mark.parametrize(("nodes", "minutes"), [(1_000, 1), (6_000, 5)])
def test_a_large_fleet_is_measured_less_often(nodes: int, minutes: int) -> None:
    pool = {**NEURON_POOL, "provisioner": "karpenter", "nodes": {"max": nodes}}
    network = {**make_document()["network"], "pod_cidrs": {"count": 16, "from": "100.64.0.0/10"}}
    cluster = neuron(
        pools=[{**SYSTEM_POOL, "instance_types": ["m7g.8xlarge"]}, pool],
        karpenter={"version": "1.15.2"},
        network=network,
    )
    function = of(cluster).fleet_metrics

    assert function.interval_minutes == minutes
    assert function.timeout_seconds <= minutes * 60
    (silent,) = (alarm for alarm in alerts(cluster).alarms if alarm.name == "fleet-metrics")
    assert silent.period_seconds == minutes * 60
    assert silent.period_seconds * silent.periods == 15 * 60
