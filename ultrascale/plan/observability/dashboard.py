"""Sections of the dashboard, for HyperPod's nodes and all others."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ultrascale import config
from ultrascale.catalog import cloudwatch, prices
from ultrascale.plan import names
from ultrascale.plan.model import (
    GraphPlan,
    LinePlan,
    LustrePlan,
    PoolPlan,
    SectionPlan,
    ServiceDemandPlan,
)
from ultrascale.plan.needs.services import replica_usd_per_hour
from ultrascale.plan.observability import fleet_metrics
from ultrascale.plan.observability.control_plane import control_plane_graphs
from ultrascale.plan.observability.dashboard_lines import Lines, graph, lustre_graphs
from ultrascale.plan.observability.services import service_graphs
from ultrascale.plan.observability.write_latency import write_latency_graphs


class Dashboard:
    """The dashboard of one cluster.

    Args:
        cluster: The cluster.
        pools: Its pools.
        lustre: Its file systems.
        hyperpod_gpus: Whether CloudWatch's own exporter runs on HyperPod's nodes.
        insights: Whether Container Insights measures the nodes.
        services: Services of the file.
    """

    def __init__(
        self,
        cluster: config.Cluster,
        pools: Sequence[PoolPlan],
        *,
        lustre: Sequence[LustrePlan],
        hyperpod_gpus: bool,
        insights: bool = True,
        services: Sequence[ServiceDemandPlan] = (),
    ) -> None:
        self._cluster = cluster
        self._pools = pools
        self._lustre = lustre
        self._hyperpod_gpus = hyperpod_gpus
        self._insights = insights
        self._services = services
        self._lines = Lines(cluster=cluster.name)
        self._hyperpod = [pool for pool in pools if pool.is_hyperpod]
        self._teams = fleet_metrics.teams(cluster)
        self._team_names = tuple(dict.fromkeys(self._teams.values()))
        self._node_types = fleet_metrics.node_types(pools)

    def sections(self) -> tuple[SectionPlan, ...]:
        """Return its sections; what the cluster has nothing of is left out."""
        sections = (
            SectionPlan(text=self._introduction(), graphs=(*self._money(), *self._fleet())),
            SectionPlan(text="## Accelerators", graphs=(*self._accelerators(),)),
            SectionPlan(text="## Jobs and queues", graphs=(*self._jobs(),)),
            SectionPlan(text="## Services", graphs=(*self._served(),)),
            SectionPlan(text="## Health, network and storage", graphs=(*self._platform(),)),
            SectionPlan(text="## Control plane", graphs=(*self._control_plane(),)),
        )
        if not self._insights:
            sections = tuple(_without_insights(section) for section in sections)
        return tuple(section for section in sections if section.graphs)

    def _introduction(self) -> str:
        lines = [f"# {self._cluster.name}, {self._cluster.region}", *self._spend_notes()]
        if self._hyperpod and not self._hyperpod_gpus:
            lines.append(
                "What the accelerators of HyperPod's nodes do is in the Prometheus workspace "
                f"{self._cluster.name}, where HyperPod's own add-on writes it."
            )
        if windows := [*self._windows()]:
            lines += ["", "| pool | starts (UTC) | usable until | ends |", "|---|---|---|---|"]
            lines += windows
        return "\n".join(lines)

    def _spend_notes(self) -> Iterator[str]:
        if not self._priced():
            yield (
                f"There is no price list of {self._cluster.region} with its types, so no spend is "
                "shown. "
                "What a pool costs is in Cost Explorer by its tags."
            )
            return
        region = self._cluster.region
        yield (
            f"Spend takes every node for On-Demand at the prices of {prices.seen(region):%Y-%m-%d} "
            f"([source]({prices.source(region)})): Spot costs less, Capacity Blocks and training "
            "plans are paid for already, and HyperPod has prices of its own. Nodes of types "
            "without a price are counted as such and are not part of it."
        )

    def _priced(self) -> Sequence[PoolPlan]:
        """Return the pools of which some type has a price."""
        region = self._cluster.region
        return [pool for pool in self._pools if prices.on_demand(region, pool.instance_types)]

    def _windows(self) -> Iterator[str]:
        for pool in _one_shard_each(self._pools):
            if pool.window is not None:
                window = pool.window
                moments = (window.starts, window.usable_until, window.ends)
                cells = " | ".join(f"{moment:%Y-%m-%d %H:%M}" for moment in moments)
                yield f"| {pool.pool} | {cells} |"

    def _money(self) -> Iterator[GraphPlan]:
        if priced := self._priced():
            yield graph(
                "Spend rate by node type, at On-Demand prices",
                [
                    self._lines.own("spend", name, NodeType=name)
                    for name in fleet_metrics.node_types(priced)
                ],
                "US dollars an hour",
                stacked=True,
            )
            unpriced = self._lines.own("unpriced_nodes", "nodes without a price")
            yield graph("Nodes that the spend rate leaves out", [unpriced], "nodes")

    def _fleet(self) -> Iterator[GraphPlan]:
        marks = {
            f"{pool.pool} ends": pool.window.ends
            for pool in _one_shard_each(self._pools)
            if pool.window is not None
        }
        yield graph(
            "Nodes by node type", self._by_node_type("nodes"), "nodes", stacked=True, marks=marks
        )
        capacities = sorted({pool.purchase for pool in self._pools})
        yield graph(
            "Nodes by purchase option",
            [self._lines.own("nodes", name, Capacity=name) for name in capacities],
            "nodes",
            stacked=True,
        )
        if any(fleet_metrics.is_reserved(pool) for pool in self._pools):
            yield graph(
                "Reserved accelerators that idle, and burst nodes",
                [
                    self._lines.own("reserved_idle", "idle reserved accelerators"),
                    self._lines.own("burst_nodes", "burst nodes"),
                ],
                "",
            )
            hours = self._lines.running_hours("reserved_idle", "hours since the left edge")
            yield graph("Hours of reserved accelerators lost", [hours], "accelerator hours")

    def _accelerators(self) -> Iterator[GraphPlan]:
        gpus = self._gpus_by_side()
        if gpus:
            yield graph("GPU utilization by side", gpus, "percent")
            yield graph("GPU utilization by team", self._gpus_by_team(), "percent")
        if measured := self._measured_types():
            lines = [self._lines.own("sm_activity", name, NodeType=name) for name in measured]
            yield graph("Share of SM cycles with a warp", lines, "percent")
        if any(pool.accelerator == names.NEURON_DEVICE for pool in self._pools):
            yield from self._neuron()
        if any(pool.accelerator is not None for pool in self._pools):
            there = self._by_node_type("accelerators", "{}: there", accelerated=True)
            used = self._by_node_type("accelerators_in_use", "{}: in use", accelerated=True)
            yield graph("Accelerators there and in use", [*there, *used], "accelerators")
            teams = [
                self._lines.own("accelerators_in_use", name, Team=name) for name in self._team_names
            ]
            yield graph("Accelerators in use by team", teams, "accelerators", stacked=True)

    def _gpus_by_side(self) -> list[LinePlan]:
        """Return a line for HyperPod, of CloudWatch's exporter, and one for each other side."""
        own = [
            self._lines.own("gpu_utilization", name, NodeType=name)
            for name in self._measured_types()
        ]
        if not self._hyperpod_gpus:
            return own
        return [self._lines.insight("node_gpu_utilization", "hyperpod"), *own]

    def _gpus_by_team(self) -> list[LinePlan]:
        lines: list[LinePlan] = []
        for namespace, team in self._teams.items():
            if self._hyperpod_gpus:
                label = f"{team} on hyperpod"
                lines.append(self._lines.insight("pod_gpu_utilization", label, Namespace=namespace))
            if self._measured_types():
                lines.append(self._lines.own("gpu_utilization", team, Team=team))
        return lines

    def _neuron(self) -> Iterator[GraphPlan]:
        nodes = self._lines.insight("node_neuroncore_utilization", "all nodes")
        by_team = [
            self._lines.insight("pod_neuroncore_utilization", team, Namespace=namespace)
            for namespace, team in self._teams.items()
        ]
        yield graph("NeuronCore utilization", [nodes, *by_team], "percent")
        errors = self._lines.insight_of_all_nodes(
            "node_neurondevice_hw_ecc_events_total", "corrected and not"
        )
        yield graph("ECC events of Neuron devices", [errors], "events")

    def _jobs(self) -> Iterator[GraphPlan]:
        for title, key, values in (
            ("side", "NodeType", self._accelerated_types()),
            ("team", "Team", self._team_names),
        ):
            lines = [
                self._lines.own(measure, f"{value}: {state}", **{key: value})
                for value in values
                for measure, state in (("running_jobs", "running"), ("waiting_jobs", "waiting"))
            ]
            if lines:
                yield graph(f"Jobs by {title}", lines, "jobs")
        yield graph(
            "Pods that wait for accelerators, by team",
            [self._lines.own("pending_pods", team, Team=team) for team in self._team_names],
            "pods",
            stacked=True,
        )
        queued = [
            self._lines.own(measure, f"{queue}: {state}", Queue=queue)
            for queue in fleet_metrics.queue_names(self._cluster)
            for measure, state in (("queue_running", "admitted"), ("queue_waiting", "waiting"))
        ]
        if queued:
            yield graph("Queues", queued, "workloads")

    def _platform(self) -> Iterator[GraphPlan]:
        failed = self._lines.insight(
            "cluster_failed_node_count", "failed nodes", statistic="Maximum"
        )
        yield graph("Failed nodes", [failed], "nodes")
        if self._hyperpod:
            prefix = "hyperpod_node_health_status_"
            yield graph(
                "HyperPod node health",
                [
                    self._lines.insight_of_all_nodes(f"{prefix}{status}", status.replace("_", " "))
                    for status in (
                        "schedulable",
                        "unschedulable",
                        "unschedulable_pending_reboot",
                        "unschedulable_pending_replacement",
                    )
                ],
                "nodes",
            )
        if any(pool.efa_interfaces for pool in self._pools):
            yield graph(
                "EFA, average node",
                [
                    self._lines.insight("node_efa_rx_bytes", "received"),
                    self._lines.insight("node_efa_tx_bytes", "sent"),
                    self._lines.insight("node_efa_rx_dropped", "dropped"),
                ],
                "bytes a second",
            )
        for lustre in self._lustre:
            yield from lustre_graphs(lustre)

    def _control_plane(self) -> Iterator[GraphPlan]:
        yield from write_latency_graphs(self._cluster)
        yield from control_plane_graphs(self._cluster)

    def _served(self) -> Iterator[GraphPlan]:
        prices = {
            each.name: replica_usd_per_hour(each, self._pools, self._cluster.region)
            for each in self._services
        }
        known = {name: price for name, price in prices.items() if price is not None}
        yield from service_graphs(self._cluster, known)

    def _by_node_type(
        self, measure: str, label: str = "{}", *, accelerated: bool = False
    ) -> tuple[LinePlan, ...]:
        wanted = self._accelerated_types() if accelerated else self._node_types
        return tuple(self._lines.own(measure, label.format(name), NodeType=name) for name in wanted)

    def _accelerated_types(self) -> tuple[str, ...]:
        return fleet_metrics.node_types([pool for pool in self._pools if pool.accelerator])

    def _measured_types(self) -> tuple[str, ...]:
        return fleet_metrics.node_types(fleet_metrics.measured_gpu_pools(self._pools))


def _without_insights(section: SectionPlan) -> SectionPlan:
    """Return a section without the graphs that Container Insights has all lines of."""
    graphs = tuple(
        replace(graph, lines=lines)
        for graph in section.graphs
        if (lines := tuple(line for line in graph.lines if not _is_insight(line)))
    )
    return replace(section, graphs=graphs)


def _is_insight(line: LinePlan) -> bool:
    return any(
        metric.namespace == cloudwatch.CONTAINER_INSIGHTS for metric in line.metrics.values()
    )


def _one_shard_each(pools: Sequence[PoolPlan]) -> list[PoolPlan]:
    return list({pool.pool: pool for pool in reversed(pools)}.values())[::-1]
