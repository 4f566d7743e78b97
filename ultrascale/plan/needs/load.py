"""Load of the control plane, beside the largest published loads.

Sums over objects and rates of programs, at full size. Where no source states a rate, the formula
says that it is assumed.
"""

from collections.abc import Iterator, Mapping

from ultrascale.catalog import cloudwatch, eks, kubernetes, registries, scale
from ultrascale.catalog import scale as published
from ultrascale.catalog.prices import PriceList
from ultrascale.documents import look_up, number
from ultrascale.plan.amounts import name_list
from ultrascale.plan.model import (
    AgreedLimit,
    ClusterNeeds,
    ClusterPlan,
    ControlPlaneNeeds,
    Figure,
    LoadGroup,
    LoadNeed,
    LoadState,
)
from ultrascale.plan.needs.daemon_sets import DaemonSet, daemon_sets
from ultrascale.plan.needs.tables import Row, Tone, figure_at, share_of, state_line

_AT = "load"
_STATES: Mapping[LoadState, tuple[Tone, str]] = {
    "within": ("good", "published"),
    "agreed": ("good", "agreed"),
    "ask": ("warn", "ask for more"),
    "beyond": ("bad", "more than anybody published"),
    "unpublished": ("plain", ""),
}
_ULTRA = published.ULTRA_LOAD
_ORDERED = published.ORDERED_LOADS
_HOUR = 3_600
_MONTH_SECONDS = 730 * _HOUR


def plan_load(
    plan: ClusterPlan, control_plane: ControlPlaneNeeds, price_list: PriceList
) -> tuple[LoadNeed, ...]:
    """Return the load of ``plan`` on its control plane."""
    agreed = {limit.code: limit for limit in plan.agreed_limits}
    rows = _Rows(plan, control_plane, agreed, price_list)
    return (
        *rows.nodes(),
        *rows.pods(),
        *rows.objects(),
        *rows.watches(),
        *rows.requests(),
        *rows.logs(),
        *rows.pulls(),
    )


def beyond_published(rows: tuple[LoadNeed, ...]) -> Iterator[str]:
    """Yield a line for each load above every published one."""
    for need in rows:
        if need.state == "beyond":
            planned = f"{need.needed.value or 0:,.0f} {need.needed.unit} planned"
            yield f"{need.name}: {planned}, {need.advice}"


class _Rows:
    """Rows of one cluster, by group."""

    def __init__(
        self,
        plan: ClusterPlan,
        control_plane: ControlPlaneNeeds,
        agreed: Mapping[str, AgreedLimit],
        price_list: PriceList,
    ) -> None:
        self._price_list = price_list
        self._plan = plan
        self._figures = control_plane.figures
        self._agreed = agreed
        self._daemons = daemon_sets(plan)
        self._daemon_pods = {daemon.name: daemon.pods(plan.all_pools) for daemon in self._daemons}
        self._nodes = self._value("nodes")
        self._workers = sum(pool.max_nodes for pool in plan.pools)
        self._system = self._deployments()

    def _value(self, key: str) -> float:
        return self._figures[key].value or 0

    def _deployments(self) -> Mapping[str, int]:
        """Return the pods of Deployments, by name, each at its most replicas."""
        found: dict[str, int] = {}
        for addon in self._plan.control_plane.workload_addons:
            if addon.name == "coredns":
                found["coredns"] = number(addon.configuration, "autoScaling", "maxReplicas")
            elif "csi" in addon.name:
                found[f"{addon.name} controller"] = 2
        if self._plan.nodes.karpenter is not None:
            found["karpenter"] = self._plan.nodes.karpenter.replicas
        for part in self._plan.parts:
            found.update(part.pods)
        if self._plan.nodes.autoscaler is not None:
            found["cluster-autoscaler"] = 1
        if self._plan.nodes.termination_handler is not None:
            found["aws-node-termination-handler"] = 2
        return found

    def nodes(self) -> Iterator[LoadNeed]:
        counts: dict[str, int] = {}
        for pool in self._plan.all_pools:
            counts[pool.pool] = counts.get(pool.pool, 0) + pool.max_nodes
        for name, count in counts.items():
            yield _row("nodes", name, count, "nodes", "at most, by the file, its shards together")
        most = max(_ULTRA.nodes, *(load.nodes for load in _ORDERED))
        yield _row(
            "nodes",
            "all",
            self._nodes,
            "nodes",
            "sum of the pools",
            *(load.source for load in (*_ORDERED, _ULTRA)),
            most=most,
            advice=f"and nobody published more than {most:,} in one cluster; divide the file",
        )

        if (placement := self._plan.placement) is not None:
            yield _row(
                "nodes",
                "placed by topology",
                placement.nodes,
                "nodes",
                "nodes of types that name their network layers, with scheduling.topology_aware",
                placement.source,
                most=placement.most_nodes,
                advice=f"but {placement.beyond}",
            )

    def pods(self) -> Iterator[LoadNeed]:
        for daemon in self._daemons:
            pools = dict.fromkeys(
                pool.pool for pool in self._plan.all_pools if daemon.runs_on(pool)
            )
            formula = f"one on each node of {name_list([*pools])}"
            yield _row("pods", daemon.name, self._daemon_pods[daemon.name], "pods", formula)
        for name, count in self._system.items():
            yield _row("pods", name, count, "pods", "replicas, on system nodes")
        words = "one on each node outside system pools"
        yield _row("pods", "workers of jobs", self._workers, "pods", words)
        daemons = sum(self._daemon_pods.values())
        total = daemons + sum(self._system.values()) + self._workers
        held = [load for load in _ORDERED if load.nodes >= self._nodes]
        most = max((load.pods for load in held), default=0)
        yield _row(
            "pods",
            "all",
            total,
            "pods",
            f"{daemons:,} of DaemonSets + {sum(self._system.values()):,} of the platform + "
            f"{self._workers:,} of jobs",
            *dict.fromkeys(load.source for load in _ORDERED),
            most=most,
            agreed=self._agreed.get("pods"),
            advice=(
                f"and {most:,} are the most that anybody published beside as many nodes, of a tier "
                "that can be ordered; "
                f"AWS held {_ULTRA.pods:,} on a control plane that it enables by hand "
                f"({_ULTRA.source}): ask your account team, and say in agreed_limits.pods what it "
                "grants, or divide the file"
            ),
        )

    def objects(self) -> Iterator[LoadNeed]:
        nodes, pods = self._nodes, self._value("pods")
        for name, count, words in (
            ("Leases", nodes, f"{nodes:,.0f} nodes, one each"),
            ("CSINodes", nodes, f"{nodes:,.0f} nodes, one each"),
            ("CNINodes", nodes, f"{nodes:,.0f} nodes, one each, of the VPC CNI"),
            (
                "NodeClaims",
                sum(pool.max_nodes for pool in self._plan.all_pools if pool.is_node_pool),
                "one for each node that Karpenter or EKS Auto Mode launches",
            ),
            (
                "EndpointSlices",
                -(-self._workers // scale.ENDPOINTS_OF_A_SLICE),
                f"{self._workers:,} workers / {scale.ENDPOINTS_OF_A_SLICE} in a slice of their "
                "jobs' headless Services",
            ),
            ("PolicyEndpoints", *self._policy_endpoints()),
        ):
            yield _row("objects", name, count, "objects", words)
        events = self._figures["database.events"]
        count = round((events.value or 0) * 1e9 / scale.EVENT_BYTES)
        yield _row("objects", "Events", count, "objects", events.formula)
        yield _row(
            "objects",
            "all",
            nodes * 4 + pods + count + self._workers // scale.ENDPOINTS_OF_A_SLICE,
            "objects",
            "Nodes, Leases, CSINodes, CNINodes, pods, EndpointSlices and Events",
            _ULTRA.source,
            most=published.ULTRA_OBJECTS,
            advice=(
                f"and AWS published {published.ULTRA_OBJECTS:,} at most; divide the file, or "
                "shorten kubernetes.event_ttl"
            ),
        )
        yield self._database()

    def _policy_endpoints(self) -> tuple[int, str]:
        plan = self._plan.network.policies
        if not plan.enforced:
            return 0, "network policies are not enforced"
        if not plan.of_jobs:
            return 0, "no policy selects the pods of jobs"
        chunks = -(-self._workers // published.PODS_OF_A_POLICY)
        words = f"2 policies x {self._workers:,} workers / {published.PODS_OF_A_POLICY:,}"
        return 2 * chunks, f"{words} in each namespace of jobs"

    def _database(self) -> LoadNeed:
        figure, tier = self._figures["database"], self._figures["tier_database"]
        most = tier.value or 0
        return _row(
            "objects",
            "bytes in etcd",
            figure.value or 0,
            "GB",
            figure.formula,
            *figure.sources,
            *tier.sources,
            most=most,
            agreed=self._agreed.get("database"),
            advice=(
                f"and the database of {self._plan.control_plane.tier} holds {most:,.0f} GB: it "
                "refuses writes beyond that, and the deletions that would help; AWS had "
                f"{_ULTRA.database_gb:,.0f} GB on a control plane that it enables by hand "
                f"({_ULTRA.source}): ask your account team, and say in agreed_limits.database_gb "
                "what it grants, or divide the file"
            ),
        )

    def watches(self) -> Iterator[LoadNeed]:
        total = 0.0
        for name, watches in scale.WATCHES_OF_A_DAEMON.items():
            count = self._nodes if name == scale.KUBELET else self._daemon_pods.get(name, 0)
            if count:
                total += count * watches
                words = f"{count:,.0f} x {watches}, assumed"
                yield _row("watches", name, count * watches, "watches", words)
        mounted = self._workers * scale.MOUNTED_OBJECTS_OF_A_WORKER
        words = (
            f"{self._workers:,} workers x {scale.MOUNTED_OBJECTS_OF_A_WORKER} ConfigMap that can "
            "change (kube-root-ca.crt); immutable ones are not watched"
        )
        yield _row("watches", "kubelet, of pods' ConfigMaps", mounted, "watches", words)
        yield _row("watches", "all", total + mounted, "watches", "sum of them; none is published")

    def requests(self) -> Iterator[LoadNeed]:
        """Yield requests to the API server in a second, by origin, and calls of AWS's APIs."""
        nodes = self._nodes
        leases = nodes / kubernetes.LEASE_RENEWAL_SECONDS
        statuses = nodes / scale.NODE_STATUS_SECONDS
        pods = self._value("pods_per_second")
        tokens = sum(self._daemon_pods.get(name, 0) for name in scale.DAEMONS_WITH_TOKENS)
        renewals = (tokens + self._workers) / scale.TOKEN_RENEWAL_SECONDS
        for name, value, words, source in (
            (
                "kubelet leases",
                leases,
                f"{nodes:,.0f} nodes / {kubernetes.LEASE_RENEWAL_SECONDS} seconds",
                kubernetes.LEASE_RENEWAL_SOURCE,
            ),
            (
                "kubelet node statuses",
                statuses,
                f"{nodes:,.0f} nodes / {scale.NODE_STATUS_SECONDS} seconds",
                scale.NODE_STATUS_SOURCE,
            ),
            (
                "pods that start",
                pods * (scale.WRITES_PER_POD + scale.EVENTS_PER_POD),
                f"{pods:,.1f} pods x ({scale.WRITES_PER_POD} writes + {scale.EVENTS_PER_POD} "
                "events), as all nodes start a job",
                scale.LIMITS_SOURCE,
            ),
            (
                "service account tokens",
                renewals,
                f"({tokens:,} pods of DaemonSets with one + {self._workers:,} workers) / "
                f"{scale.TOKEN_RENEWAL_SECONDS} seconds",
                scale.TOKEN_SOURCE,
            ),
        ):
            yield _row("requests", name, value, "a second", words, source)
        yield _row(
            "requests",
            "all",
            leases + statuses + renewals + pods * (scale.WRITES_PER_POD + scale.EVENTS_PER_POD),
            "a second",
            "sum of them; lists and watches come on top, and EKS publishes seats, no rate",
            eks.TIER_LIMITS_SOURCE,
        )
        yield self._cleanup()
        yield self._names()

    def _cleanup(self) -> LoadNeed:
        own = any(
            number(addon.configuration, "env") or addon.name == "vpc-cni"
            for addon in self._plan.control_plane.node_addons
            if look_up(addon.configuration, "env", "DISABLE_LEAKED_ENI_CLEANUP") != "true"
        )
        nodes = self._nodes if own else 1
        words = f"{nodes:,.0f} nodes" if own else "one function for the cluster"
        return _row(
            "requests",
            "EC2 DescribeNetworkInterfaces, for left interfaces",
            nodes / published.CLEANUP_SECONDS,
            "a second",
            f"{words} / {published.CLEANUP_SECONDS:,} seconds, pages not counted",
            *published.CLEANUP_SOURCES,
            most=published.EC2_DESCRIBE_PER_SECOND,
            states=("within", "ask"),
        )

    def _names(self) -> LoadNeed:
        system = sum(pool.max_nodes for pool in self._plan.system_pools)
        most = system * published.RESOLVER_PACKETS_PER_SECOND
        return _row(
            "requests",
            "names outside the cluster, if each node asks for one",
            self._nodes / _NAMES_SECONDS,
            "a second",
            f"{self._nodes:,.0f} nodes / {_NAMES_SECONDS} seconds, assumed; CoreDNS asks the VPC's "
            f"resolver from {system} system nodes, {published.RESOLVER_PACKETS_PER_SECOND:,} "
            "packets a second of each interface",
            published.RESOLVER_SOURCE,
            most=most,
            states=("within", "ask"),
            advice="more system nodes, or cached answers (ndots: 2, names that end in a dot)",
        )

    def logs(self) -> Iterator[LoadNeed]:
        requests = (
            self._nodes / kubernetes.LEASE_RENEWAL_SECONDS + self._nodes / scale.NODE_STATUS_SECONDS
        )
        audit = requests if "audit" in self._plan.control_plane.log_types else 0.0
        yield _row(
            "logs",
            "audit log",
            audit,
            "lines a second",
            f"{requests:,.1f} leases and statuses, a line each, assumed"
            if audit
            else "off by kubernetes.logs",
        )
        yield self._dollars("audit log", audit * cloudwatch.AUDIT_LINE_BYTES, "ingestion")
        flows = self._plan.network.flow_logs
        records = 0.0 if flows == "none" else self._nodes * cloudwatch.FLOWS_OF_A_NODE / 600
        yield _row(
            "logs",
            f"VPC flow logs ({flows})",
            records,
            "lines a second",
            f"{self._nodes:,.0f} nodes x {cloudwatch.FLOWS_OF_A_NODE} flows / 600 seconds, assumed"
            if records
            else "off by network.flow_logs",
        )
        item = cloudwatch.PRICED_AS.get(flows, "ingestion")
        yield self._dollars(
            f"VPC flow logs ({flows})", records * cloudwatch.FLOW_RECORD_BYTES, item
        )
        yield self._log_calls()

    def _dollars(self, name: str, bytes_per_second: float, item: str) -> LoadNeed:
        """Return the price of log data, without a value where the price list has none."""
        region = self._plan.region
        price = self._price_list.find(region, "logs", item)
        data = f"{bytes_per_second:,.0f} bytes a second x 730 hours"
        value: float | None = 0.0
        words = data
        if price is not None:
            value = bytes_per_second * _MONTH_SECONDS / 1e9 * price.price
            words = f"{data} x {price.price} USD for a GB in {region}, its first tier"
        elif bytes_per_second:
            value, words = None, f"no price of logs {item} in {region} is known"
        sources = () if price is None else (price.source,)
        return _row("logs", f"{name}, price", value, "USD/month", words, *sources)

    def _log_calls(self) -> LoadNeed:
        pods = sum(self._daemon_pods.get(name, 0) for name in ("fluent-bit", "cloudwatch-agent"))
        calls = pods * cloudwatch.CALLS_OF_AN_AGENT
        return _row(
            "logs",
            "PutLogEvents",
            calls,
            "a second",
            f"{pods:,} pods of fluent-bit and cloudwatch-agent x {cloudwatch.CALLS_OF_AN_AGENT} a "
            "second, assumed; the quota is the account's and can be raised",
            cloudwatch.PUT_QUOTA_SOURCE,
            most=cloudwatch.PUT_LOG_EVENTS_PER_SECOND,
            states=("within", "ask"),
            advice="ask for more in Service Quotas (L-7E1FAE88)",
        )

    def pulls(self) -> Iterator[LoadNeed]:
        """Yield pulls from registries that no cache serves, in the hour of a launch."""
        hosts: dict[str, int] = {}
        own = (image for part in self._plan.parts for image in part.images.items())
        for image, count in (*self._images(self._daemons), *own):
            host = image.partition("/")[0]
            cached = self._plan.copies is not None or (
                self._plan.images.cache is not None
                and self._plan.images.cache.repository(image) is not None
            )
            if host in _PUBLIC and not cached:
                hosts[host] = hosts.get(host, 0) + count
        for host, count in sorted(hosts.items()):
            way = _PUBLIC[host]
            most = (
                registries.DOCKER_HUB_PULLS_IN_SIX_HOURS // 6 if host == registries.DOCKER else None
            )
            yield _row(
                "pulls",
                f"{host}, uncached",
                count,
                "an hour",
                f"one for each pod of an image from there, as all nodes start within it; {way}",
                *((registries.DOCKER_HUB_SOURCE,) if most else ()),
                most=most,
                states=("within", "ask"),
                advice=way,
            )

    def _images(self, daemons: tuple[DaemonSet, ...]) -> Iterator[tuple[str, int]]:
        for daemon in daemons:
            if daemon.image is not None:
                yield daemon.image, self._daemon_pods[daemon.name]


# A name that each node asks for once in that time, outside every cache of the cluster.
_NAMES_SECONDS = 60
_PUBLIC: Mapping[str, str] = {
    **dict.fromkeys(registries.ANONYMOUS, "name it in images.pull_through"),
    **dict.fromkeys(
        registries.CREDENTIALED, "name it in images.pull_through, with a secret of yours"
    ),
    registries.NVIDIA: "ECR caches nothing of it: copy its images to a registry of your own",
}


def _row(
    group: LoadGroup,
    name: str,
    value: float | None,
    unit: str,
    formula: str,
    *sources: str,
    most: float | None = None,
    agreed: AgreedLimit | None = None,
    states: tuple[LoadState, LoadState] = ("within", "beyond"),
    advice: str | None = None,
) -> LoadNeed:
    state: LoadState = "unpublished"
    if most is not None and value is not None:
        state = states[value > most]
        if state == "beyond" and agreed is not None and value <= agreed.value:
            state = "agreed"
    figure = Figure(
        id=f"{_AT}.{group}.{name}", value=value, unit=unit, formula=formula, sources=sources
    )
    return LoadNeed(
        group=group,
        name=name if name != "all" else f"all {group}",
        needed=figure,
        most=most,
        agreed=agreed,
        state=state,
        advice=advice if state in ("beyond", "ask") else None,
    )


def load_rows(needs: ClusterNeeds) -> Iterator[Row]:
    """Yield the load of the control plane; without a published limit the tone is plain."""
    for index, need in enumerate(needs.load):
        at, (tone, words), unit = f"load.{index}", _STATES[need.state], need.needed.unit
        needed = figure_at(f"{at}.needed", need.needed, places=2 if unit == "GB" else 1)
        state = state_line(at, words, need.agreed if need.state == "agreed" else None)
        cells = {"needed": (needed, f" {unit}"), "state": state}
        yield Row(at, cells, tone, share_of(need.needed, need.most))
