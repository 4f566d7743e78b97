"""The Cluster Autoscaler and the node termination handler of node groups."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ultrascale import catalog, config
from ultrascale.catalog import eks, versions
from ultrascale.catalog import scale as limits
from ultrascale.plan import capacity, names
from ultrascale.plan.model import ClusterAutoscalerPlan, PoolPlan, TerminationHandlerPlan
from ultrascale.plan.pools.node_groups import drain_seconds
from ultrascale.plan.rules import rule
from ultrascale.plan.scale import scale_for

# Upstream's manifest gives it as much, and we add as much for each thousand nodes: it holds every
# node and pod of the cluster in memory, whoever launched them.
# Source: https://github.com/kubernetes/autoscaler/blob/cluster-autoscaler-1.36.1/cluster-autoscaler/cloudprovider/aws/examples/cluster-autoscaler-autodiscover.yaml
_MEMORY_MIB = 600
_MEMORY_MIB_PER_THOUSAND_NODES = 1024
# Never goes, empty or not: its capacity may not be had a second time.
_NEVER_GOES = "0"
# Goes once it has no pods but those of DaemonSets: a gang that loses one node loses its step. A pod
# that asks for accelerators and neither CPU nor memory would not count.
_GOES_WHEN_EMPTY = "0.001"
# A failed job is restarted, or the next one submitted, within this time, and capacity may be gone.
_ACCELERATED_UNNEEDED_TIME = "30m0s"
# The kubelet keeps a tenth of the disk free, and images take some of it.
_DISK_SHARE_FOR_PODS = 0.8
# Labels of the cluster file, so that all tags fit beside our own and EKS's.
_MOST_LABELS = 18
# The handler's own default.
_FEWEST_WORKERS = 10


@rule
def labels_fit_group_tags(pool: config.Pool) -> Iterator[config.Mistake]:
    """Yield the labels of a pool that the tags of its Auto Scaling group cannot hold.

    Without them the Cluster Autoscaler launches no first node for pods that ask for such a label.
    """
    is_counted = pool.nodes.are_counted  # otherwise a mistake of its own
    if not is_counted or capacity.sized_by(pool) != "cluster-autoscaler":
        return
    room = eks.TAG_KEY_CHARACTERS - len(eks.LABEL_TAG)
    for key in pool.labels:
        if len(key) > room:
            wrong = (
                "too long for a tag of the pool's Auto Scaling group, "
                f"which has room for {room} characters"
            )
            yield config.refuse("labels", wrong, "shorten the key", got=repr(key))
    if len(pool.labels) > _MOST_LABELS:
        wrong = "more labels than the tags of the pool's Auto Scaling group can hold"
        yield config.refuse(
            "labels", wrong, f"use at most {_MOST_LABELS}", got=str(len(pool.labels))
        )


@rule
def autoscaler_takes_the_fleet(
    pool: config.Pool, pools: config.Every[config.Pool]
) -> Iterator[config.Mistake]:
    """Yield a node group that scales with its pods in a cluster too large for its autoscaler.

    The autoscaler looks at every node of the cluster every ten seconds, whoever launched it. A
    group of system nodes has a fixed size there instead, see `with_fixed_system_groups`.
    """
    if pool.role == "system" or not all(config.count_is_sound(pool, pools) for pool in pools):
        return
    nodes = _most_nodes(pools)
    scales = capacity.sized_by(pool) == "cluster-autoscaler"
    if scales and not scale_for(nodes).cluster_autoscaler:
        wrong = (
            "a node group that scales needs the Cluster Autoscaler, which is tested to "
            f"{limits.AUTOSCALED_NODES:,} nodes, and the cluster has up to {nodes:,}"
        )
        todo = f"write static: {pool.nodes.highest} or fewer, or provisioner: karpenter"
        yield config.refuse("nodes", wrong, todo, got="")


def with_fixed_system_groups(cluster: config.Cluster) -> config.Cluster:
    """Return a large ``cluster`` with its system node groups at their largest size.

    A cluster that shrinks again has its autoscaler again, which takes empty nodes away.
    """
    fixed = {pool.name for pool in _fixed_groups(cluster)}
    if not fixed:
        return cluster
    pools = tuple(
        pool.model_copy(update={"nodes": config.Nodes(static=pool.nodes.highest)})
        if pool.name in fixed
        else pool
        for pool in cluster.pools
    )
    return cluster.model_copy(update={"pools": pools})


@rule(severity="warning")
def system_groups_scale(cluster: config.Cluster) -> Iterator[config.Mistake]:
    """Yield the system pools that do not scale although the file says so."""
    for number, pool in enumerate(cluster.pools):
        if pool in _fixed_groups(cluster):
            wrong = (
                f"{pool.nodes.highest} nodes at all times: the Cluster "
                f"Autoscaler is tested to {limits.AUTOSCALED_NODES:,} nodes, and the cluster has "
                f"up to {_most_nodes(cluster.pools):,}"
            )
            yield config.refuse(f"pools.{number}.nodes", wrong, "write nodes.static", got="")


def _fixed_groups(cluster: config.Cluster) -> list[config.Pool]:
    if scale_for(_most_nodes(cluster.pools)).cluster_autoscaler:
        return []
    return [
        pool
        for pool in cluster.pools
        if pool.role == "system" and capacity.sized_by(pool) == "cluster-autoscaler"
    ]


def _most_nodes(pools: Iterable[config.Pool]) -> int:
    return sum(pool.nodes.highest * pool.shards for pool in pools)


def plan_cluster_autoscaler(
    cluster: config.Cluster, pools: Sequence[PoolPlan]
) -> ClusterAutoscalerPlan | None:
    """Return the Cluster Autoscaler, if a node group scales with its pods.

    It knows groups by a tag of ours. EKS tags every group that it manages, also those of Capacity
    Blocks, and those whose size the file or the calendar sets.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/managed-node-groups.html

    Raises:
        CatalogError: No release is pinned for the cluster's minor.
    """
    own = [pool for pool in pools if pool.sized_by == "cluster-autoscaler"]
    if not own:
        return None
    thousands = math.ceil(sum(pool.max_nodes for pool in pools) / 1000)
    return ClusterAutoscalerPlan(
        image=versions.cluster_autoscaler(cluster.kubernetes.version).reference,
        region=cluster.region,
        discovery_tags=_discovery_tags(cluster.name),
        memory=f"{_MEMORY_MIB + thousands * _MEMORY_MIB_PER_THOUSAND_NODES}Mi",
        group_tags={pool.name: autoscaler_tags(cluster.name, pool) for pool in own},
    )


def autoscaler_tags(cluster: str, pool: PoolPlan) -> Mapping[str, str]:
    """Return the tags of a pool's node group that the Cluster Autoscaler reads.

    Returns:
        The tags; none where the autoscaler does not scale the pool.
    """
    if pool.sized_by != "cluster-autoscaler":
        return {}
    return {**_discovery_tags(cluster), **_node_template(pool)}


def _discovery_tags(cluster: str) -> Mapping[str, str]:
    return {names.AUTOSCALED_TAG: cluster}


def plan_termination_handler(
    cluster: config.Cluster, pools: Sequence[PoolPlan]
) -> TerminationHandlerPlan | None:
    """Return the Node Termination Handler, if EC2 takes instances of a self-managed group.

    EKS drains the nodes of the groups that it manages, Karpenter and EKS Auto Mode their own.
    """
    own = {
        pool.name: (pool.max_nodes, drain_seconds(pool)) for pool in pools if pool.is_self_managed
    }
    if not own:
        return None
    return TerminationHandlerPlan(
        image=versions.image("aws-node-termination-handler").reference,
        region=cluster.region,
        queue=names.termination_queue(cluster.name),
        queue_url=names.TERMINATION_QUEUE_URL,
        managed_tag=names.drained_tag(cluster.name),
        drain_seconds=max(seconds for _, seconds in own.values()),
        # A block gives all of its nodes back at once, and a node that waits for a worker would not
        # be drained before EC2 takes it.
        workers=max(_FEWEST_WORKERS, sum(nodes for nodes, _ in own.values())),
    )


def _node_template(pool: PoolPlan) -> Mapping[str, str]:
    """Return the properties and the scale-down of ``pool``'s nodes as tags.

    EKS gives the autoscaler the labels and taints of its own groups as well, but spells the effect
    of a taint in a way of its own: https://github.com/kubernetes/autoscaler/issues/6481
    """
    return {
        **{f"{eks.LABEL_TAG}{key}": value for key, value in pool.labels.items()},
        **{f"{eks.TAINT_TAG}{taint.key}": f"{taint.value}:{taint.effect}" for taint in pool.taints},
        **{f"{eks.RESOURCE_TAG}{key}": value for key, value in _resources(pool)},
        **{f"{eks.OPTION_TAG}{key}": value for key, value in _options(pool)},
    }


def _resources(pool: PoolPlan) -> Iterator[tuple[str, str]]:
    """Yield a node's resources beside CPU, memory and GPUs, which EC2 gives the autoscaler.

    EC2 gives those of the first of several types. Such a group states the smallest of each: a pod
    that waits then fits on whatever node comes.

    Source: https://github.com/kubernetes/autoscaler/issues/3217
    """
    specs = pool.specs
    if len(specs) > 1:
        yield "cpu", str(min(spec.vcpus for spec in specs))
        yield "memory", f"{min(spec.memory_mib for spec in specs)}Mi"
    yield "pods", str(pool.max_pods)
    yield "ephemeral-storage", _disk_for_pods(pool, specs)
    if pool.accelerator is not None:
        yield pool.accelerator, str(pool.accelerators_per_node)
    if pool.accelerator == names.NEURON_DEVICE:
        cores = [spec.accelerator.neuron_cores_logical for spec in specs if spec.accelerator]
        yield names.NEURON_CORE, str(min(cores))
    if pool.efa_interfaces:
        yield names.EFA_INTERFACE, str(pool.efa_interfaces)
    if pool.efa_interfaces and pool.accelerator is not None:
        yield names.HUGE_PAGES, f"{eks.HUGE_PAGES_MIB}Mi"


def _disk_for_pods(pool: PoolPlan, specs: Sequence[catalog.InstanceType]) -> str:
    if pool.raid0:
        return f"{int(min(spec.nvme_total_gb for spec in specs) * _DISK_SHARE_FOR_PODS)}G"
    return f"{int(pool.root_disk.size_gib * _DISK_SHARE_FOR_PODS)}Gi"


def _options(pool: PoolPlan) -> Iterator[tuple[str, str]]:
    """Yield the settings of scale-down, where the autoscaler's defaults do not fit."""
    if pool.role == "reserved":
        yield from ((key, _NEVER_GOES) for key in eks.UTILIZATION_THRESHOLDS)
    elif pool.accelerator is not None:
        yield from ((key, _GOES_WHEN_EMPTY) for key in eks.UTILIZATION_THRESHOLDS)
        yield eks.UNNEEDED_TIME, _ACCELERATED_UNNEEDED_TIME
