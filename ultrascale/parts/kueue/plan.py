"""Kueue: flavors of the pools, quotas of the queues, and sizes of the controllers.

A queue's guarantee is its own quota. The rest of a pool stands once, in the cohort of all queues,
which borrow it: written into several queues it would count several times.

Sources:
    https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/
    https://kueue.sigs.k8s.io/docs/concepts/cohort/
    https://kueue.sigs.k8s.io/docs/concepts/topology_aware_scheduling/
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from ultrascale import catalog, config
from ultrascale.catalog import network_layers
from ultrascale.catalog.kubernetes import EFA_INTERFACE
from ultrascale.frozen import Frozen
from ultrascale.parts.kueue import facts as kueue
from ultrascale.parts.kueue import jobset
from ultrascale.parts.kueue.model import LEADER_WORKER_SETS, Plan
from ultrascale.plan import capacity, names
from ultrascale.plan.jobs.controllers import controllers_of_jobs
from ultrascale.plan.jobs.nodes import values_of
from ultrascale.plan.model import (
    ClusterQueuePlan,
    CohortPlan,
    ControllerPlan,
    CopiesPlan,
    FlavorPlan,
    FlavorQuotaPlan,
    PoolPlan,
    ReadinessPlan,
    ResourceGroupPlan,
    TopologyLevelsPlan,
    WorkloadPriorityPlan,
)
from ultrascale.plan.namespaces import LEADER_WORKER_SET_KIND, kinds_of_services, queued_namespaces

COHORT = "fleet"
"""Name of the cohort of all queues."""

CPU = "cpu"

# Users pay idle nodes while pods of a job wait for the last of them. A node of many GPUs boots and
# pulls a large image in less.
_READY_SECONDS = 20 * 60
_BACKOFF_SECONDS, _LONGEST_BACKOFF_SECONDS = 60, 3600
_BACKOFF_LIMIT = 10

# A job that needs it pins its nodes by the first of these labels; Kueue matches jobs against those
# labels of a flavor that it knows.
_FIRST_LABELS = (names.POOL_LABEL, names.NODE_TYPE_LABEL)
_LAST_LABELS = (
    names.ROLE_LABEL,
    names.CAPACITY_LABEL,
    names.CAPACITY_TYPE_LABEL,
    names.GPU_TYPE_LABEL,
)

# The default order: capacity that is paid for already, then the cheapest.
_ORDER = ("reserved", "spot", "on-demand")


class ControllerSizes(Frozen):
    """Sizes of the controllers in clusters of up to a number of nodes."""

    nodes: int
    manager: ControllerPlan
    jobset: ControllerPlan


# Kueue watches every node and pod where it places by topology. Its client's rates are the chart's
# own up to the size that its tests have. Source:
# https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/charts/kueue/values.yaml
_SMALL = ControllerSizes(
    nodes=1_000,
    manager=ControllerPlan(replicas=2, cpu="1", memory="2Gi", client_qps=300, client_burst=500),
    jobset=ControllerPlan(replicas=2, cpu="500m", memory="1Gi", client_qps=500, client_burst=500),
)
_SIZES = (
    _SMALL,
    ControllerSizes(
        nodes=5_000,
        manager=replace(_SMALL.manager, cpu="4", memory="4Gi"),
        jobset=replace(_SMALL.jobset, cpu="1", memory="2Gi"),
    ),
    ControllerSizes(
        nodes=20_000,
        manager=replace(
            _SMALL.manager, cpu="4", memory="16Gi", client_qps=1_000, client_burst=2_000
        ),
        jobset=replace(_SMALL.jobset, cpu="2", memory="8Gi", client_qps=1_000, client_burst=2_000),
    ),
    ControllerSizes(
        nodes=100_000,
        manager=replace(
            _SMALL.manager, cpu="8", memory="32Gi", client_qps=2_000, client_burst=4_000
        ),
        jobset=replace(_SMALL.jobset, cpu="4", memory="16Gi", client_qps=2_000, client_burst=4_000),
    ),
)


class QueuedPool(Frozen):
    """A pool with all of its shards, as queues count it."""

    name: str  # Its name in the cluster file
    shards: tuple[PoolPlan, ...]  # Its shards, at least one

    @property
    def nodes(self) -> int:
        """Most nodes that it ever has."""
        return sum(shard.max_nodes for shard in self.shards)

    @property
    def fixed(self) -> bool:
        """Whether none of its nodes is launched for waiting pods."""
        return not any(shard.sized_by in capacity.SIZED_BY_PODS for shard in self.shards)

    @property
    def resource(self) -> str:
        """The counted resource: that of accelerators, or `cpu`."""
        return self.shards[0].accelerator or CPU

    @property
    def per_node(self) -> int:
        """Units of the resource on a node.

        Of several types it is the fewest where the nodes exist already, and the most where they are
        launched for waiting pods.

        Raises:
            CatalogError: No source states how much an instance type has.
        """
        counts = [_count(spec) for spec in self.shards[0].specs]
        return min(counts) if self.fixed else max(counts)

    @property
    def placed(self) -> bool:
        """Whether topology may place its pods: its nodes exist, and have labels of their layers."""
        return self.fixed and all(map(network_layers.is_placed, self.shards[0].instance_types))

    @property
    def layers(self) -> int:
        """Layers of AWS's network that the labels of each of its nodes name."""
        return min(map(network_layers.network_layers, self.shards[0].instance_types))


def queued_pools(pools: Iterable[PoolPlan]) -> dict[str, QueuedPool]:
    """Return the pools that queues may count, by name, in the order of the file."""
    found: dict[str, list[PoolPlan]] = {}
    for pool in pools:
        if pool.role != names.SYSTEM_ROLE:
            found.setdefault(pool.pool, []).append(pool)
    return {name: QueuedPool(name=name, shards=tuple(members)) for name, members in found.items()}


def queues_of(scheduling: config.Scheduling, pools: Mapping[str, QueuedPool]) -> list[config.Queue]:
    """Return Kueue's queues with the pools that each prefers, stated or not."""
    stated = scheduling.queues or (config.Queue(name=kueue.DEFAULT_LOCAL_QUEUE),)
    return [
        queue.model_copy(update={"prefer": queue.prefer or _preferred(queue, pools.values())})
        for queue in stated
    ]


def plan_kueue(
    cluster: config.Cluster, pools: Sequence[PoolPlan], copies: CopiesPlan | None = None
) -> Plan | None:
    """Return Kueue with its queues, if the file asks for it.

    Args:
        cluster: The cluster file.
        pools: Plans of its pools.
        copies: Copies of its charts and images; None: pods pull the publishers' own.

    Raises:
        CatalogError: No source states how many accelerators or vCPUs an instance type has.
    """
    if cluster.scheduling.engine != "kueue":
        return None
    known = queued_pools(pools)
    queues = queues_of(cluster.scheduling, known)
    namespaces = queued_namespaces(cluster)
    flavors = _flavors(queues, known)
    counted = {known[flavor.pool].resource for flavor in flavors}
    layers = sorted(
        {known[flavor.pool].layers for flavor in flavors if flavor.topology is not None}
    )
    size = controllers_for(sum(pool.max_nodes for pool in pools))
    plan = Plan(
        chart=kueue.CHART,
        version=kueue.VERSION,
        image=f"{kueue.IMAGE}:v{kueue.VERSION}",
        jobset_chart=jobset.CHART,
        jobset_version=jobset.VERSION,
        jobset_image=f"{jobset.IMAGE}:v{jobset.VERSION}",
        manager=size.manager,
        jobset_manager=size.jobset,
        frameworks=tuple(_frameworks(cluster)),
        namespaces=namespaces,
        gated_resources=capacity.accelerators_of(pools),
        gated_interfaces=(EFA_INTERFACE,)
        if all(pool.accelerator is not None for pool in pools if pool.efa_interfaces)
        else (),
        uncounted_pools=_uncounted(pools, flavors),
        readiness=ReadinessPlan(
            timeout_seconds=_READY_SECONDS,
            backoff_base_seconds=_BACKOFF_SECONDS,
            backoff_max_seconds=_LONGEST_BACKOFF_SECONDS,
            backoff_limit=_BACKOFF_LIMIT,
        ),
        fair_sharing=any(queue.fair_share_weight is not None for queue in queues),
        flavors=flavors,
        topologies=tuple(map(_topology, layers)),
        cohort=_cohort(queues, flavors, sorted(counted)),
        queues=tuple(_queue(queue, flavors, namespaces) for queue in queues),
        priorities=_priorities(cluster.scheduling),
    )
    return plan if copies is None else _with_copies(plan, copies)


def _with_copies(plan: Plan, copies: CopiesPlan) -> Plan:
    """Return the plan with the copies of its charts, whose values name its images."""
    return replace(
        plan,
        chart=copies.chart(plan.chart),
        image=copies.reference(plan.image),
        jobset_chart=copies.chart(plan.jobset_chart),
        jobset_image=copies.reference(plan.jobset_image),
    )


def _frameworks(cluster: config.Cluster) -> Iterator[str]:
    yield "batch/job"
    yield "jobset.x-k8s.io/jobset"
    for controller in controllers_of_jobs(cluster):
        if controller.framework is not None:
            yield controller.framework
    # With it Kueue asks about each pod of these namespaces too.
    if LEADER_WORKER_SET_KIND in kinds_of_services(cluster):
        yield LEADER_WORKER_SETS


def _uncounted(pools: Iterable[PoolPlan], flavors: Iterable[FlavorPlan]) -> tuple[str, ...]:
    counted = {flavor.pool for flavor in flavors}
    accelerated = {pool.pool for pool in pools if pool.accelerator is not None}
    return tuple(sorted(accelerated - counted))


def _preferred(queue: config.Queue, pools: Iterable[QueuedPool]) -> tuple[str, ...]:
    own = [pool for pool in pools if pool.resource != CPU and (pool.placed or not queue.topology)]
    own.sort(key=lambda pool: _ORDER.index(pool.shards[0].capacity_type))
    return tuple(pool.name for pool in own)


def _flavors(
    queues: Sequence[config.Queue], pools: Mapping[str, QueuedPool]
) -> tuple[FlavorPlan, ...]:
    found: list[FlavorPlan] = []
    for name, pool in pools.items():
        own = [queue for queue in queues if name in queue.prefer]
        placed = [queue for queue in own if queue.topology]
        guaranteed = sum(queue.guarantee.get(name, 0) for queue in placed)
        of_topology = guaranteed if len(placed) < len(own) else pool.nodes
        if placed:
            found.append(_flavor(pool, nodes=of_topology, placed=True))
        if len(placed) < len(own):
            rest = pool.nodes - of_topology if placed else pool.nodes
            found.append(_flavor(pool, nodes=rest, placed=False))
    return tuple(_with_common_labels(queues, found))


def _with_common_labels(
    queues: Sequence[config.Queue], flavors: Sequence[FlavorPlan]
) -> Iterator[FlavorPlan]:
    """Yield flavors with equal label keys where a job may get one after the other.

    JobSet adds the node selector of the next flavor to that of the one before, and replaces equal
    keys alone: pods would look for nodes with the labels of both.

    Source: https://github.com/kubernetes-sigs/jobset/pull/1294
    """
    together: list[set[str]] = []
    for queue in queues:
        if not queue.topology:
            near = [pools for pools in together if pools & {*queue.prefer}]
            together = [pools for pools in together if pools not in near]
            together.append({*queue.prefer}.union(*near))
    for flavor in flavors:
        pools = next((group for group in together if flavor.pool in group), {flavor.pool})
        peers = [flavor for flavor in flavors if flavor.pool in pools and flavor.topology is None]
        alike = peers if flavor.topology is None else [flavor]
        common = [
            key for key in flavor.node_labels if all(key in peer.node_labels for peer in alike)
        ]
        kept = common[: kueue.FLAVOR_LABELS]
        yield replace(flavor, node_labels={key: flavor.node_labels[key] for key in kept})


def _flavor(pool: QueuedPool, *, nodes: int, placed: bool) -> FlavorPlan:
    return FlavorPlan(
        name=f"{pool.name}{kueue.TOPOLOGY_SUFFIX}" if placed else pool.name,
        pool=pool.name,
        node_labels=_labels(pool, placed=placed),
        tolerated=pool.shards[0].taints,
        topology=_topology(pool.layers).name if placed else None,
        resource=pool.resource,
        per_node=pool.per_node,
        nodes=nodes,
        fixed=pool.fixed,
    )


def _labels(pool: QueuedPool, *, placed: bool) -> dict[str, str]:
    """Return the labels that all nodes of a pool have.

    Kueue writes them into the pods as a node selector, and passes over flavors whose labels differ
    from the job's. The labels of a flavor with a topology can never change: it has two.
    """
    if placed:
        own: tuple[str, ...] = ()
    else:
        ours = {*_FIRST_LABELS, *_LAST_LABELS, names.SHARD_LABEL}
        own = tuple(sorted(pool.shards[0].labels.keys() - ours))
        own = (*_LAST_LABELS[:2], *own, *_LAST_LABELS[2:])
    found: dict[str, str] = {}
    for key in (*_FIRST_LABELS, *own):
        values = {value for shard in pool.shards for value in values_of(shard, key)}
        if len(values) == 1:
            found[key] = values.pop()
    return found


def _topology(layers: int) -> TopologyLevelsPlan:
    labels = [names.network_layer_label(layer) for layer in range(1, layers + 1)]
    return TopologyLevelsPlan(name=f"aws-{layers}", levels=(*labels, names.HOSTNAME_LABEL))


def _queue(
    queue: config.Queue, flavors: Sequence[FlavorPlan], namespaces: tuple[str, ...]
) -> ClusterQueuePlan:
    own = _own_flavors(queue, flavors)
    groups = dict.fromkeys(flavor.resource for flavor in own)
    return ClusterQueuePlan(
        name=queue.name,
        namespaces=namespaces,
        groups=tuple(
            ResourceGroupPlan(
                resource=resource,
                quotas=tuple(
                    _quota(queue, flavor_) for flavor_ in own if flavor_.resource == resource
                ),
            )
            for resource in groups
        ),
        guarantee=dict(queue.guarantee),
        limit=dict(queue.limit),
        pools=queue.prefer,
        topology=queue.topology,
        fair_share_weight=queue.fair_share_weight,
    )


def _own_flavors(queue: config.Queue, flavors: Sequence[FlavorPlan]) -> list[FlavorPlan]:
    own = {
        flavor.pool: flavor for flavor in flavors if (flavor.topology is not None) == queue.topology
    }
    return [own[name] for name in queue.prefer]


def _quota(queue: config.Queue, flavor: FlavorPlan) -> FlavorQuotaPlan:
    limit = queue.limit.get(flavor.pool)
    return FlavorQuotaPlan(
        flavor=flavor.name,
        nominal=queue.guarantee.get(flavor.pool, 0) * flavor.per_node,
        borrowing_limit=None if limit is None else limit * flavor.per_node,
    )


def _cohort(
    queues: Sequence[config.Queue], flavors: Sequence[FlavorPlan], resources: Sequence[str]
) -> CohortPlan:
    def shared(flavor: FlavorPlan) -> int:
        own = (queue for queue in queues if flavor in _own_flavors(queue, flavors))
        guaranteed = sum(queue.guarantee.get(flavor.pool, 0) for queue in own)
        return flavor.quantity - guaranteed * flavor.per_node

    return CohortPlan(
        name=COHORT,
        groups=tuple(
            ResourceGroupPlan(
                resource=resource,
                quotas=tuple(
                    FlavorQuotaPlan(flavor=flavor.name, nominal=shared(flavor))
                    for flavor in flavors
                    if flavor.resource == resource
                ),
            )
            for resource in resources
        ),
    )


def _priorities(scheduling: config.Scheduling) -> tuple[WorkloadPriorityPlan, ...]:
    classes = sorted(scheduling.priority_classes.items(), key=lambda item: -item[1])
    return tuple(WorkloadPriorityPlan(name=name, value=value) for name, value in classes)


def _count(spec: catalog.InstanceType) -> int:
    return spec.vcpus if spec.accelerator is None else spec.accelerator.count


def controllers_for(nodes: int) -> ControllerSizes:
    """Return the sizes of the controllers of a cluster of ``nodes`` nodes."""
    return next((sizes for sizes in _SIZES if nodes <= sizes.nodes), _SIZES[-1])
