"""DaemonSets of a cluster, each with the pools whose nodes run it."""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set

from ultrascale.catalog import addons, auto_mode
from ultrascale.documents import look_up, mapping, objects, sequence, text
from ultrascale.frozen import Frozen
from ultrascale.plan import names
from ultrascale.plan.model import (
    AddonPlan,
    ClusterPlan,
    DevicePluginPlan,
    DevicesPlan,
    NetworkPlan,
    PlannedPart,
    PoolPlan,
)

_Runs = Callable[[PoolPlan], bool]


class DaemonSet(Frozen):
    """A DaemonSet."""

    name: str  # Its name
    runs_on: _Runs  # Whether it runs on a pool's nodes
    # Image of its pods; None where EKS's registry in the Region has it.
    image: str | None = None

    def pods(self, pools: Sequence[PoolPlan]) -> int:
        """Return its pods at full size."""
        return sum(pool.max_nodes for pool in pools if self.runs_on(pool))


def daemon_sets(plan: ClusterPlan) -> tuple[DaemonSet, ...]:
    """Return the DaemonSets of ``plan`` that have a pod on some pool."""
    all_sets = (
        *_addon_sets(plan.addons),
        *_plugin_sets(plan.network, plan.devices),
        *_part_sets(plan.parts),
    )
    return tuple(daemon_set for daemon_set in all_sets if daemon_set.pods(plan.all_pools))


def daemons_on(pool: PoolPlan, daemons: Sequence[DaemonSet]) -> int:
    """Return the pods of ``daemons`` on a node of ``pool``."""
    return sum(daemon.runs_on(pool) for daemon in daemons)


def _addon_sets(installed: Sequence[AddonPlan]) -> Iterator[DaemonSet]:
    for addon in installed:
        for name in addons.known_addons()[addon.name].daemon_sets:
            yield DaemonSet(name=name, runs_on=_addon_pools(addon, name))


def _addon_pools(addon: AddonPlan, name: str) -> _Runs:
    """Return the pools of an add-on's DaemonSet, by its configuration and its own affinity."""
    placed = _PLACED.get(name)

    def runs_on(pool: PoolPlan) -> bool:
        if pool.is_auto_mode and addon.name in auto_mode.BUILT_IN:
            return False
        return placed is None or placed(addon.configuration, pool)

    return runs_on


def _selected(configuration: Mapping[str, object], pool: PoolPlan) -> bool:
    selector = mapping(configuration, "node", "nodeSelector")
    return selector.items() <= pool.labels.items()


def _monitored(configuration: Mapping[str, object], pool: PoolPlan) -> bool:
    return not pool.facts.brings_plugins


def _has_dcgm(configuration: Mapping[str, object], pool: PoolPlan) -> bool:
    return pool.accelerator == names.NVIDIA_GPU and not pool.facts.brings_plugins


def _agent(configuration: Mapping[str, object], pool: PoolPlan) -> bool:
    return any(_suits(agent, pool) for agent in objects(configuration, "agents"))


def _fluent_bit(configuration: Mapping[str, object], pool: PoolPlan) -> bool:
    is_on = look_up(configuration, "containerLogs", "enabled") is True
    return is_on and _suits(mapping(configuration, "containerLogs", "fluentBit"), pool)


def _exporter(key: str) -> Callable[[Mapping[str, object], PoolPlan], bool]:
    def runs(configuration: Mapping[str, object], pool: PoolPlan) -> bool:
        own = mapping(configuration, key)
        return own.get("enabled") is True and _suits(own, pool)

    return runs


_PLACED: Mapping[str, Callable[[Mapping[str, object], PoolPlan], bool]] = {
    "ebs-csi-node": _selected,
    "eks-node-monitoring-agent": _monitored,
    "dcgm-server": _has_dcgm,
    "cloudwatch-agent": _agent,
    "fluent-bit": _fluent_bit,
    "cloudwatch-dcgm-exporter": _exporter("dcgmExporter"),
    "cloudwatch-neuron-monitor": _exporter("neuronMonitor"),
}


def _suits(values: object, pool: PoolPlan) -> bool:
    affinity = mapping(values, "affinity", "nodeAffinity")
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    if required not in affinity:
        return True
    return any(
        all(_has(expression, pool) for expression in objects(term, "matchExpressions"))
        for term in objects(affinity, required, "nodeSelectorTerms")
    )


def _has(expression: object, pool: PoolPlan) -> bool:
    key, values = text(expression, "key"), sequence(expression, "values")
    if key == names.INSTANCE_TYPE_LABEL:
        return any(node_type in values for node_type in pool.node_types)
    return {**pool.labels, **pool.facts.labels}.get(key) in values


def _plugin_sets(network: NetworkPlan, devices: DevicesPlan) -> Iterator[DaemonSet]:
    for name, plugin in (
        ("neuron-device-plugin", devices.neuron),
        ("neuron-monitor", devices.neuron_monitor),
        ("aws-efa-k8s-device-plugin", devices.efa),
        ("nvidia-device-plugin", devices.nvidia),
        ("dcgm-exporter", devices.dcgm),
    ):
        if plugin is not None:
            yield DaemonSet(name=name, runs_on=_plugin_pools(plugin), image=plugin.image)
    if network.node_local_dns is not None:
        yield DaemonSet(
            name="node-local-dns",
            runs_on=lambda pool: bool(pool.name_servers),
            image=network.node_local_dns.image,
        )


def _labels(pool: PoolPlan) -> Mapping[str, str]:
    architecture = pool.specs[0].architecture
    return {**pool.labels, names.ARCHITECTURE_LABEL: architecture}


def _plugin_pools(plugin: DevicePluginPlan) -> _Runs:
    types = frozenset(plugin.instance_types)

    def runs_on(pool: PoolPlan) -> bool:
        selected = plugin.node_selector.items() <= _labels(pool).items()
        return selected and (not types or not types.isdisjoint(pool.node_types))

    return runs_on


def _part_sets(parts: Sequence[PlannedPart]) -> Iterator[DaemonSet]:
    for part in parts:
        for daemon_set in part.daemon_sets:
            yield DaemonSet(name=daemon_set.name, runs_on=_named_pools(daemon_set.pools))


def _named_pools(pools: Set[str]) -> _Runs:
    return lambda pool: pool.name in pools
