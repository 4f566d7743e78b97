"""Metrics, graphs and alarms: metrics that exist, and one exporter on a node."""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any
from unittest.mock import Mock

import pytest

from tests.support.fleet import exporter, labels, node, pod
from tests.support.hyperpod import hyperpod_of
from tests.support.model_servers import BUSY, IDLE
from tests.support.observability_plans import (
    CLUSTERS,
    HYBRID,
    HYBRID_PLAN,
    alerts,
    hybrid,
    neuron,
    of,
    planned,
)
from tests.support.pools import SYSTEM_POOL, make_document, pool_document
from ultrascale.catalog import addons, cloudwatch
from ultrascale.errors import ConfigError
from ultrascale.lambdas.fleet_metrics.handler import measure_gpus
from ultrascale.lambdas.fleet_metrics.measures import Measures, log_events
from ultrascale.lambdas.fleet_metrics.nodes import measure_missing, measure_nodes
from ultrascale.lambdas.fleet_metrics.pods import (
    Readings,
    ServicePod,
    measure_pods,
    measure_queues,
    measure_services,
)
from ultrascale.lambdas.fleet_metrics.settings import Settings
from ultrascale.lambdas.write_canary.handler import Counts
from ultrascale.lambdas.write_canary.handler import Settings as CanarySettings
from ultrascale.parts.observability import fleet_metrics
from ultrascale.parts.observability.model import Plan
from ultrascale.plan import ClusterPlan
from ultrascale.plan.metrics import NAMESPACE
from ultrascale.plan.model import MetricPlan, PoolPlan
from ultrascale.plan.needs.pools import PerNode
from ultrascale.plan.needs.services import plan_service_needs

each_cluster = pytest.mark.parametrize("cluster", CLUSTERS.values(), ids=CLUSTERS)


def named_metrics(cluster: ClusterPlan) -> Iterator[MetricPlan]:
    for section in of(cluster).dashboard:
        for graph in section.graphs:
            for line in graph.lines:
                yield from line.metrics.values()
    latency = of(cluster).write_latency
    for alarm in (*alerts(cluster).alarms, *(latency.alarms if latency else ())):
        yield from alarm.metrics.values()
    if latency is not None:
        yield from (latency.objective.good, latency.objective.total)


def published(cluster: ClusterPlan) -> set[tuple[str, tuple[tuple[str, str], ...]]]:
    """Return name and dimensions of what the functions publish of one node of each pool."""
    settings = Settings.parse(json.loads(json.dumps(of(cluster).fleet_metrics.input)))
    measures = Measures()
    nodes = [node(each.name, each) for each in cluster.all_pools]
    found = measure_nodes(nodes, settings, measures, now=0)
    measure_missing(found, settings, measures, now=0)
    accelerated = [each for each in cluster.all_pools if each.accelerator]
    pods = [
        pod(f"{namespace}-{each.name}", each.name, namespace=namespace, resource=each.accelerator)
        for namespace in settings.teams
        for each in accelerated
        if each.accelerator
    ]
    measure_pods(pods, found, settings, measures)
    measure_queues([], settings, measures)
    if settings.exporters is not None:
        exporters = [exporter(each.name, each.name, "10.0.0.1") for each in accelerated]
        text = "".join(
            f'{metric}{{namespace="{namespace}"}} 1\n'
            for metric in settings.exporters.metrics
            for namespace in settings.teams
        )
        measure_gpus(exporters, found, settings, measures, lambda _: text)
    if settings.services is not None:
        served = [
            ServicePod(f"{each.namespace}/{each.name}", "a", "/") for each in cluster.services
        ]
        readings: Readings = {}
        for at, text in enumerate((IDLE, BUSY)):
            readings = measure_services(
                served,
                settings.services,
                measures,
                fetch=partial(answer, text),
                earlier=readings,
                now=partial(float, at),
            )
    events: list[Any] = [*log_events(measures, settings, now=0), *canary_events(cluster)]
    return {
        (metric["Name"], tuple(sorted((key, event[key]) for key in dimensions)))
        for event in events
        for directive in event["_aws"]["CloudWatchMetrics"]
        for dimensions in directive["Dimensions"]
        for metric in directive["Metrics"]
    }


def answer(text: str, _path: str) -> str:
    return text


def canary_events(cluster: ClusterPlan) -> Iterator[Any]:
    latency = of(cluster).write_latency
    if latency is not None:
        counts = Counts(CanarySettings.parse(json.loads(json.dumps(latency.function.input))))
        counts.add(0, 0.001)
        yield from counts.events()


@each_cluster
def test_every_metric_of_ours_that_is_shown_or_watched_is_published(cluster: ClusterPlan) -> None:
    there = published(cluster)

    own = [metric for metric in named_metrics(cluster) if metric.namespace == NAMESPACE]
    missing = [m for m in own if (m.name, tuple(sorted(m.dimensions.items()))) not in there]
    assert own
    assert missing == []


@each_cluster
def test_every_metric_of_aws_that_is_shown_or_watched_exists(cluster: ClusterPlan) -> None:
    others = [metric for metric in named_metrics(cluster) if metric.namespace != NAMESPACE]

    assert others
    for metric in others:
        vended = cloudwatch.VENDED[metric.namespace, metric.name]
        assert tuple(sorted(metric.dimensions)) in {tuple(sorted(d)) for d in vended.dimensions}


def test_a_service_shows_its_requests_tokens_and_the_time_that_clients_wait() -> None:
    (section,) = (s for s in of(CLUSTERS["with a service"]).dashboard if s.text == "## Services")
    labels = {line.label for graph in section.graphs for line in graph.lines}
    assert {graph.title for graph in section.graphs} >= {
        *("Requests that wait", "Tokens a second", "Time to first token"),
        "KV cache in use, average replica",
    }
    assert labels >= {"chat", "chat: answers", "chat: 95 %"}


def test_the_dashboard_and_the_plan_agree_on_the_cost_of_tokens() -> None:
    cluster = CLUSTERS["with a service"]
    (needs,) = plan_service_needs(cluster)
    (line,) = (
        line
        for section in of(cluster).dashboard
        for graph in section.graphs
        for line in graph.lines
        if graph.title == "Cost of a million generated tokens"
    )

    # Both of its replicas, at the 800 tokens a second that the file states.
    assert line.expression is not None
    shown = eval(line.expression, {"replicas": 2, "tokens": 1600})
    assert shown == pytest.approx(needs.figures["usd_per_million_tokens_share"].value, rel=1e-4)


def test_both_sides_and_every_team_are_on_the_dashboard() -> None:
    introduction = of(HYBRID_PLAN).dashboard[0].text
    titles = {graph.title for section in of(HYBRID_PLAN).dashboard for graph in section.graphs}
    assert titles >= {
        *("GPU utilization by side", "GPU utilization by team", "Jobs by side", "Jobs by team"),
        *("Queues", "Reserved accelerators that idle, and burst nodes"),
        "Hours of reserved accelerators lost",
        "Spend rate by node type, as bought",
        *("HyperPod node health", "EFA, average node", "Throughput of training"),
        "Free capacity of training",
    }
    # It says when the plan ends, and what spend assumes.
    assert "| hyperpod | 2026-12-01 11:30 | 2027-01-05 10:30 | 2027-01-05 11:30 |" in introduction
    assert "at the price list of 2026-07-20" in introduction
    assert "No price of hyperpod is known" in introduction


def test_a_region_without_prices_shows_no_spend_of_nought(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = Mock(return_value=PerNode(value=None, words="no price is known"))
    monkeypatch.setattr(fleet_metrics, "price_as_bought", nothing)
    cluster = neuron()

    titles = [graph.title for section in of(cluster).dashboard for graph in section.graphs]
    assert not [title for title in titles if "pend" in title.split()[0]]
    assert "No price of system, train is known" in of(cluster).dashboard[0].text


def test_a_fee_is_spread_over_all_nodes_and_the_whole_window() -> None:
    purchase = {
        "option": "capacity-block",
        "reservation": "cr-0123456789abcdef0",
        "starts": "2026-12-01T11:30:00Z",
        "ends": "2026-12-15T11:30:00Z",
        "fee": [{"until": "2026-12-08T11:30:00Z", "usd": 300_000.5}, {"usd": 100_000}],
    }
    block = pool_document(purchase=purchase, nodes={"max": 8})
    cluster = planned(make_document(pools=[SYSTEM_POOL, block], observability={}))
    rates: Any = of(cluster).fleet_metrics.input["rates"]
    assert rates["train"] == 400_000.5 / (8 * 14 * 24)


def matches(term: Mapping[str, Any], node_labels: Mapping[str, str]) -> bool:
    return all(
        node_labels.get(each["key"]) in each["values"]
        for each in term["matchExpressions"]
        if each["operator"] == "In"
    )


def runs_on(settings: Any, pool: PoolPlan) -> bool:
    """Return whether an exporter of CloudWatch's add-on runs on a pool's nodes."""
    if not settings["enabled"]:
        return False
    affinity = settings["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return matches(term, labels(pool))


def ours_runs_on(cluster: ClusterPlan, pool: PoolPlan) -> bool:
    dcgm = cluster.devices.dcgm
    hyperpods = pool.provisioner == "hyperpod"
    return (
        dcgm is not None and not hyperpods and pool.labels.get("nvidia.com/gpu.present") == "true"
    )


GPU_POOLS = [pool for pool in HYBRID_PLAN.pools if pool.accelerator == "nvidia.com/gpu"]


@pytest.mark.parametrize("pool", GPU_POOLS, ids=[pool.name for pool in GPU_POOLS])
def test_one_exporter_reads_the_gpus_of_a_node(pool: PoolPlan) -> None:
    # Beside a second DCGM the node monitoring agent finds the GPUs broken: the node is replaced.
    theirs = runs_on(of(HYBRID_PLAN).addon.configuration["dcgmExporter"], pool)

    assert [theirs, ours_runs_on(HYBRID_PLAN, pool)].count(True) == 1
    assert theirs == (pool.provisioner == "hyperpod")


def test_hyperpods_own_addon_brings_the_only_exporter_of_its_nodes() -> None:
    cluster = CLUSTERS["with HyperPod's add-on"]

    assert of(cluster).addon.configuration["dcgmExporter"] == {"enabled": False}
    assert "where HyperPod's own add-on writes it" in of(cluster).dashboard[0].text


def test_the_addons_neuron_monitor_takes_the_place_of_ours() -> None:
    cluster, without = CLUSTERS["neuron"], planned(make_document())
    (pool,) = cluster.pools
    assert runs_on(of(cluster).addon.configuration["neuronMonitor"], pool)
    assert cluster.devices.neuron_monitor is None
    assert cluster.devices.neuron is not None
    # Without the section nothing changes.
    assert without.part(Plan) is None
    assert without.devices.neuron_monitor is not None


def test_the_addons_agents_run_beside_the_accelerators_and_its_controller_does_not() -> None:
    settings = of(HYBRID_PLAN).addon.configuration
    manager: Any = settings["manager"]
    (term,) = manager["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]

    assert settings["tolerations"] == [{"operator": "Exists"}]
    on = [pool.name for pool in HYBRID_PLAN.all_pools if matches(term, labels(pool))]
    assert on == ["system"]


def leaves(value: object, path: str = "") -> Iterator[str]:
    if isinstance(value, Mapping) and not path.endswith("affinity"):
        for key, inner in value.items():  # pyright: ignore[reportUnknownVariableType]
            yield from leaves(inner, f"{path}.{key}" if path else str(key))  # pyright: ignore[reportUnknownArgumentType]
    else:
        yield path


@each_cluster
def test_the_addons_are_set_by_keys_that_their_schemas_have(cluster: ClusterPlan) -> None:
    # EKS refuses a key too many, and the stack with it.
    for addon in (of(cluster).addon, *(each for part in cluster.parts for each in part.addons)):
        known = addons.addon(addon.name).configuration
        for path in leaves(addon.configuration):
            assert any(path == key or path.startswith(f"{key}.") for key in known), path


def test_container_logs_can_be_left_out() -> None:
    quiet = of(hybrid(container_logs=False))

    assert quiet.addon.configuration["containerLogs"] == {"enabled": False}
    assert quiet.written_logs == ("/aws/containerinsights/hybrid-hyperpod/performance",)


def refusal(document: Mapping[str, Any]) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        planned(document)
    return str(caught.value).splitlines()


def with_section(section: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    return {**HYBRID, "observability": section, **changes}


@pytest.mark.parametrize(
    ("document", "line"),
    [
        (
            make_document(observability={"hyperpod_addon": True}),
            "observability.hyperpod_addon: no pool has provisioner hyperpod, got true; leave it "
            "out, or add such a pool",
        ),
        (
            with_section({"hyperpod_addon": True}),
            "set kubernetes.addons.amazon-sagemaker-hyperpod-observability to a version",
        ),
        (
            with_section(
                {},
                kubernetes={
                    **HYBRID["kubernetes"],
                    "addons": {"amazon-cloudwatch-observability": "v5.3.1-eksbuild.1"},
                },
            ),
            "the EKS add-on amazon-cloudwatch-observability must be v6.0.0 or later",
        ),
    ],
    ids=["no HyperPod", "no version", "old version"],
)
def test_what_cannot_be_had_is_refused_with_what_to_do(
    document: Mapping[str, Any], line: str
) -> None:
    assert any(line in each for each in refusal(document))


def test_hyperpods_addon_collects_what_is_of_use_to_training() -> None:
    addon = hyperpod_of(CLUSTERS["with HyperPod's add-on"]).metrics
    assert addon is not None
    provider: Any = addon.configuration["metricsProvider"]

    wanted = [key for key, each in provider.items() if each["level"] != "DISABLED"]
    assert addon.version == "v1.0.4-eksbuild.1"
    assert set(wanted) >= {"acceleratedComputeMetrics", "taskGovernanceMetrics", "networkMetrics"}


def test_no_pod_of_the_platform_is_asked_for() -> None:
    # A DaemonSet's pods on a hundred thousand nodes would be a million objects a call.
    left_out: Iterable[str] = of(HYBRID_PLAN).fleet_metrics.input["left_out"]  # pyright: ignore[reportAssignmentType]

    # Mountpoint for S3 runs a pod beside each pod that mounts a bucket.
    assert {"kube-system", "amazon-cloudwatch", "aws-hyperpod", "mount-s3"} <= {*left_out}
    assert not {*left_out} & {"training", "hyperpod-ns-research"}
