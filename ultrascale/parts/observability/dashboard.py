"""Sections of the dashboard."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ultrascale import config
from ultrascale.catalog import cloudwatch, prices
from ultrascale.lambdas.ledger import MEASURED
from ultrascale.parts.observability import fleet_metrics
from ultrascale.parts.observability.control_plane import control_plane_graphs
from ultrascale.parts.observability.model import LedgerPlan, SectionPlan
from ultrascale.parts.observability.section import WriteLatencySlo
from ultrascale.parts.observability.write_latency import write_latency_graphs
from ultrascale.plan import names
from ultrascale.plan.metrics import SUM_OF_A_MINUTE, Lines, graph
from ultrascale.plan.model import GraphPlan, LinePlan, LustrePlan, MetricPlan, PoolPlan, Watch


class Dashboard:
    """The dashboard of one cluster.

    Args:
        cluster: The cluster.
        pools: Its pools.
        lustre: Its file systems.
        watches: Metrics, graphs and alarms of parts.
        slo: The objective for writes to the API server; None without any.
        insights: Whether Container Insights measures the nodes.
        ledger: The ledger of accelerators; None without one.
    """

    def __init__(
        self,
        cluster: config.Cluster,
        pools: Sequence[PoolPlan],
        *,
        lustre: Sequence[LustrePlan],
        watches: Sequence[Watch],
        slo: WriteLatencySlo | None,
        insights: bool,
        ledger: LedgerPlan | None,
    ) -> None:
        self._cluster = cluster
        self._pools = pools
        self._lustre = lustre
        self._watches = watches
        self._slo = slo
        self._insights = insights
        self._ledger = ledger
        self._lines = Lines(cluster=cluster.name)
        self._managed = fleet_metrics.managed_nodes(watches)
        # Nodes whose GPUs CloudWatch's own exporter reads.
        self._exported = [nodes for nodes in self._managed if nodes.gpus and insights]
        self._teams = fleet_metrics.teams(cluster, watches)
        self._team_names = tuple(dict.fromkeys(self._teams.values()))
        self._node_types = fleet_metrics.node_types(pools)
        self._rates = fleet_metrics.rates(cluster, pools)

    def sections(self) -> tuple[SectionPlan, ...]:
        """Return its sections; one without anything in the cluster is left out."""
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
        lines += [
            nodes.note for nodes in self._managed if nodes.note and nodes not in self._exported
        ]
        if windows := [*self._windows()]:
            lines += ["", "| pool | starts (UTC) | usable until | ends |", "|---|---|---|---|"]
            lines += windows
        return "\n".join(lines)

    def _spend_notes(self) -> Iterator[str]:
        unknown = dict.fromkeys(pool.pool for pool in self._pools if pool.pool not in self._rates)
        if self._rates:
            yield (
                "Spend takes the nodes of a pool as they were bought: at `purchase.fee`, spread "
                "over all nodes and the whole window, or at the price list of "
                f"{prices.seen(self._cluster.region):%Y-%m-%d}, the dearest type; Spot costs less "
                "than On-Demand, which stands for it."
            )
        if unknown:
            yield (
                f"No price of {', '.join(unknown)} is known: nodes without one are counted as "
                "such. What a pool costs is in Cost Explorer by its tags."
            )

    def _windows(self) -> Iterator[str]:
        for pool in _one_shard_each(self._pools):
            if pool.window is not None:
                window = pool.window
                moments = (window.starts, window.usable_until, window.ends)
                cells = " | ".join(f"{moment:%Y-%m-%d %H:%M}" for moment in moments)
                yield f"| {pool.pool} | {cells} |"

    def _money(self) -> Iterator[GraphPlan]:
        if priced := [pool for pool in self._pools if pool.pool in self._rates]:
            yield graph(
                "Spend rate by node type, as bought",
                [
                    self._lines.own("spend", name, NodeType=name)
                    for name in fleet_metrics.node_types(priced)
                ],
                "US dollars an hour",
                stacked=True,
            )
            unpriced = self._lines.own("unpriced_nodes", "nodes without a price")
            yield graph("Nodes that the spend rate leaves out", [unpriced], "nodes")
            if self._ledger is not None:
                yield graph(
                    "Spend rate of what idles, by reason",
                    [self._lines.own("paid_idle", name, Reason=name) for name in MEASURED],
                    "US dollars an hour",
                    stacked=True,
                )

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
        """Return the lines of managed nodes, by CloudWatch's exporter, and of each other side."""
        own = [
            self._lines.own("gpu_utilization", name, NodeType=name)
            for name in self._measured_types()
        ]
        exported = [
            self._lines.insight("node_gpu_utilization", nodes.side) for nodes in self._exported
        ]
        return [*exported, *own]

    def _gpus_by_team(self) -> list[LinePlan]:
        lines: list[LinePlan] = []
        for namespace, team in self._teams.items():
            for managed in self._exported:
                label = f"{team} on {managed.side}"
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
            for queue in fleet_metrics.queue_names(self._watches)
            for measure, state in (("queue_running", "admitted"), ("queue_waiting", "waiting"))
        ]
        if queued:
            yield graph("Queues", queued, "workloads")

    def _platform(self) -> Iterator[GraphPlan]:
        failed = self._lines.insight(
            "cluster_failed_node_count", "failed nodes", statistic="Maximum"
        )
        yield graph("Failed nodes", [failed], "nodes")
        for watch in self._watches:
            yield from watch.health
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
            yield from _lustre_graphs(lustre)

    def _control_plane(self) -> Iterator[GraphPlan]:
        if self._slo is not None:
            yield from write_latency_graphs(self._cluster.name, self._slo)
        yield from control_plane_graphs(self._cluster.name, self._cluster.kubernetes)

    def _served(self) -> Iterator[GraphPlan]:
        for watch in self._watches:
            yield from watch.services

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


def _lustre_graphs(lustre: LustrePlan) -> Iterator[GraphPlan]:
    """Yield throughput and free capacity of a file system.

    Source: https://docs.aws.amazon.com/fsx/latest/LustreGuide/fs-metrics.html
    """

    def line(label: str, name: str, expression: str) -> LinePlan:
        metric = MetricPlan(
            namespace=cloudwatch.FSX,
            name=name,
            dimensions={"FileSystemId": lustre.file_system_id},
            statistic="Sum",
        )
        return LinePlan(label=label, metrics={"m": metric}, expression=expression)

    yield graph(
        f"Throughput of {lustre.name}",
        [
            line("read", "DataReadBytes", "m / PERIOD(m)"),
            line("written", "DataWriteBytes", "m / PERIOD(m)"),
        ],
        "bytes a second",
    )
    free = f"{SUM_OF_A_MINUTE} / {1024**3}"
    yield graph(
        f"Free capacity of {lustre.name}",
        [line(f"free of {lustre.capacity_gib} GiB", "FreeDataStorageCapacity", free)],
        "GiB",
    )
