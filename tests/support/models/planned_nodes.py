"""The nodes that a plan's rendered pools make, for the model of the scheduler."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from tests.support.models.scheduler import Amounts, Launcher, Node, Scheduler
from ultrascale import catalog
from ultrascale.catalog import eks, hyperpod, kubernetes
from ultrascale.parts.hyperpod.model import InstanceGroupPlan, Plan
from ultrascale.plan import names
from ultrascale.plan.model import ClusterPlan, NodePoolPlan, PoolPlan
from ultrascale_k8s.node_pools import node_pool_manifest


def cluster_of(plan: ClusterPlan, *, launched: Mapping[str, int] | None = None) -> Scheduler:
    """Return a cluster with all nodes of its groups and HyperPod, and nodes that were launched.

    Args:
        plan: The plan.
        launched: Nodes that each NodePool has launched already.
    """
    nodes = [node for pool in plan.all_pools for node in _of_group(pool)]
    own = plan.part(Plan)
    for group in own.cluster.groups if own is not None else ():
        nodes += _of_instance_group(plan, group)
    launchers = tuple(_launcher(plan, each) for each in plan.nodes.node_pools)
    for launcher in launchers:
        for number in range((launched or {}).get(launcher.name, 0)):
            node = launcher.node
            name = f"{launcher.name}/{number}"
            nodes.append(Node(name, node.labels, node.taints, node.allocatable))
    return Scheduler(nodes=nodes, launchers=launchers)


def tier_of(node: Node) -> str:
    return node.labels["node-type"]


def _of_group(pool: PoolPlan) -> Iterator[Node]:
    if pool.provisioner not in ("managed-node-group", "self-managed"):
        return
    for number in range(pool.max_nodes):
        taints = tuple(_taint(each.key, each.value, each.effect) for each in pool.taints)
        labels = {**pool.labels, names.INSTANCE_TYPE_LABEL: pool.node_types[0]}
        yield Node(f"{pool.name}/{number}", labels, taints, allocatable(pool))


def _of_instance_group(plan: ClusterPlan, group: InstanceGroupPlan) -> Iterator[Node]:
    """Yield HyperPod's nodes, with the labels that it sets on those that are well."""
    (pool,) = (each for each in plan.pools if each.name == group.name)
    checked = {hyperpod.DEEP_HEALTH_STATUS: hyperpod.DEEP_HEALTHY}
    for number in range(group.nodes):
        labels = {
            **group.labels,
            names.INSTANCE_TYPE_LABEL: group.instance_types[0],
            hyperpod.HEALTH_STATUS: hyperpod.HEALTHY,
            hyperpod.COMPUTE_TYPE: hyperpod.COMPUTE_TYPE_HYPERPOD,
            **(checked if group.deep_health_checks else {}),
        }
        taints = tuple(_taint(each.key, each.value, each.effect) for each in group.taints)
        yield Node(f"{group.name}/{number}", labels, taints, allocatable(pool))


def _launcher(plan: ClusterPlan, node_pool: NodePoolPlan) -> Launcher:
    """Return a NodePool as its manifest has it."""
    spec: Any = node_pool_manifest(node_pool)["spec"]
    template = spec["template"]
    pool = next(each for each in plan.all_pools if each.pool == node_pool.pool)
    labels = {**template["metadata"]["labels"], names.INSTANCE_TYPE_LABEL: pool.node_types[0]}
    # What is the same for all of a pool's nodes, Karpenter makes labels of.
    for rule in template["spec"]["requirements"]:
        if len(rule["values"]) == 1:
            labels.setdefault(rule["key"], rule["values"][0])
    taints = tuple(template["spec"].get("taints", ()))
    node = Node(node_pool.name, labels, taints, allocatable(pool))
    most = int(spec["limits"]["nodes"])
    return Launcher(node_pool.name, spec.get("weight", 0), most, node)


def allocatable(pool: PoolPlan) -> Amounts:
    """Return what a node of the smallest of a pool's types gives to pods, by the kubelet's rule."""
    specs = [catalog.lookup(name) for name in pool.instance_types]
    huge = eks.HUGE_PAGES_MIB if pool.accelerator is not None else 0
    found = {
        "cpu": Decimal(min(kubernetes.allocatable_millicpu(spec.vcpus) for spec in specs)) / 1000,
        "memory": Decimal(2**20)
        * min(
            kubernetes.allocatable_mib(spec.memory_mib, max_pods=pool.max_pods, huge_pages_mib=huge)
            for spec in specs
        ),
        "pods": Decimal(pool.max_pods),
    }
    if pool.accelerator is not None:
        found[pool.accelerator] = Decimal(pool.accelerators_per_node)
    if pool.efa_interfaces:
        found[names.EFA_INTERFACE] = Decimal(pool.efa_interfaces)
    if pool.efa_interfaces and pool.provisioner not in ("hyperpod", "auto-mode"):
        found[names.HUGE_PAGES] = Decimal(huge * 2**20)
    return found


def _taint(key: str, value: str, effect: str) -> Mapping[str, str]:
    return {"key": key, "value": value, "effect": effect}
