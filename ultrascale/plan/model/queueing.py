"""Kueue: flavors of the pools, the cohort, its queues, and the settings of the controllers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ultrascale.plan.model.pool import Taint


@dataclass(frozen=True, slots=True, kw_only=True)
class FlavorPlan:
    """A ResourceFlavor: nodes of one pool, as queues count them.

    A pool in queues with a topology and in queues without has two flavors of the same nodes, whose
    `nodes` sum to the pool's.

    Attributes:
        name: Its name, unique.
        pool: Name of the pool.
        node_labels: Labels of its nodes; every label by which jobs are pinned is among them.
        tolerated: Taints of its nodes, which Kueue adds tolerations for.
        topology: Name of the Topology by which pods are placed; None without.
        resource: Resource that is counted: of accelerators, or `cpu`.
        per_node: How much of it a node has, in devices or vCPUs.
        nodes: Nodes that count in this flavor, at most.
        fixed: Whether these nodes exist; those of other pools are launched for pods that wait.
    """

    name: str
    pool: str
    node_labels: Mapping[str, str]
    tolerated: tuple[Taint, ...]
    topology: str | None
    resource: str
    per_node: int
    nodes: int
    fixed: bool

    @property
    def quantity(self) -> int:
        """All that its nodes have of the resource."""
        return self.nodes * self.per_node


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyLevelsPlan:
    """A Topology: labels of nodes, from the broadest group of the network to the node itself."""

    name: str
    levels: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlavorQuotaPlan:
    """Quota of one flavor.

    Attributes:
        flavor: Name of the flavor.
        nominal: Quota of its own, in units of the flavor's resource; 0: all is borrowed.
        borrowing_limit: Most that it may use beyond that, in the same units; None: no limit.
    """

    flavor: str
    nominal: int
    borrowing_limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceGroupPlan:
    """Quotas of one resource, in the order in which flavors are tried."""

    resource: str
    quotas: tuple[FlavorQuotaPlan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CohortPlan:
    """The Cohort of all queues, and the quota that no queue is guaranteed."""

    name: str
    groups: tuple[ResourceGroupPlan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterQueuePlan:
    """A ClusterQueue, and the LocalQueues of its name.

    Attributes:
        name: Its name, and that of its LocalQueue in each namespace.
        namespaces: Namespaces whose jobs it takes.
        groups: Its quotas, a group for each resource.
        guarantee: Nodes that are its own, by pool.
        limit: Nodes beyond the guarantee, at most, by pool; a pool that is missing has no limit.
        pools: Its pools, best first.
        topology: Whether its pods are placed by network layer.
        fair_share_weight: Its share of what is idle, relative to the other queues; None: the
            controller's own.
    """

    name: str
    namespaces: tuple[str, ...]
    groups: tuple[ResourceGroupPlan, ...]
    guarantee: Mapping[str, int]
    limit: Mapping[str, int]
    pools: tuple[str, ...]
    topology: bool
    fair_share_weight: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadPriorityPlan:
    """A WorkloadPriorityClass: the place of a job in its queue."""

    name: str
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadinessPlan:
    """Limit of the time in which all pods of an admitted job get ready (`waitForPodsReady`).

    Attributes:
        timeout_seconds: Time after which a job whose pods are not all ready is evicted.
        backoff_base_seconds: First wait until it is tried again; each further one doubles.
        backoff_max_seconds: Longest wait.
        backoff_limit: Evictions after which the job is deactivated.
    """

    timeout_seconds: int
    backoff_base_seconds: int
    backoff_max_seconds: int
    backoff_limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerPlan:
    """Size of one controller.

    Attributes:
        replicas: Pods, of which one leads.
        cpu: CPU request, as a Kubernetes quantity.
        memory: Memory request and limit, as a Kubernetes quantity.
        client_qps: Requests a second to the API server.
        client_burst: Requests at once to the API server.
    """

    replicas: int
    cpu: str
    memory: str
    client_qps: int
    client_burst: int


Framework = Literal[
    "batch/job", "jobset.x-k8s.io/jobset", "leaderworkerset.x-k8s.io/leaderworkerset"
]
LEADER_WORKER_SETS: Framework = "leaderworkerset.x-k8s.io/leaderworkerset"


@dataclass(frozen=True, slots=True, kw_only=True)
class KueuePlan:
    """Kueue and JobSet, and the queues of the cluster file.

    Attributes:
        chart: Location of the chart `kueue`.
        version: Version of that chart, without a `v`.
        image: Image of Kueue's controller, pinned.
        jobset_chart: Location of the chart `jobset`.
        jobset_version: Version of that chart, without a `v`.
        jobset_image: Image of JobSet's controller, pinned.
        manager: Size of Kueue's controller.
        jobset_manager: Size of JobSet's controller.
        frameworks: Kinds of jobs that Kueue manages, in the words of its configuration.
        namespaces: Namespaces whose jobs it manages.
        gated_resources: Resources that no pod in these namespaces may ask for without a queue.
        uncounted_pools: Pools with accelerators of which no queue has any nodes: pods that run
            there alone need no queue.
        readiness: Time in which the pods of an admitted job get ready.
        fair_sharing: Whether idle quota is shared by the queues' weights.
        flavors: Flavors of the pools.
        topologies: Topologies that flavors name.
        cohort: The cohort of all queues.
        queues: The queues.
        priorities: Places in a queue, highest first.
    """

    chart: str
    version: str
    image: str
    jobset_chart: str
    jobset_version: str
    jobset_image: str
    manager: ControllerPlan
    jobset_manager: ControllerPlan
    frameworks: tuple[Framework, ...]
    namespaces: tuple[str, ...]
    gated_resources: tuple[str, ...]
    uncounted_pools: tuple[str, ...]
    readiness: ReadinessPlan
    fair_sharing: bool
    flavors: tuple[FlavorPlan, ...]
    topologies: tuple[TopologyLevelsPlan, ...]
    cohort: CohortPlan
    queues: tuple[ClusterQueuePlan, ...]
    priorities: tuple[WorkloadPriorityPlan, ...]

    @property
    def queues_services(self) -> bool:
        """Whether services wait in its queues."""
        return LEADER_WORKER_SETS in self.frameworks


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueShare:
    """The share of a queue in the nodes of a flavor.

    Attributes:
        queue: Its name.
        tried: Place of the flavor in the queue's order, from 1.
        guaranteed: Nodes that are its own.
        most: Most nodes, with those that others leave idle.
    """

    queue: str
    tried: int
    guaranteed: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FlavorShares:
    """Shares of queues in the nodes of a flavor: the guarantees and `shared` sum to `nodes`.

    Attributes:
        pool: Name of the pool.
        by_topology: Whether pods are placed by network layer.
        resource: Resource that is counted.
        nodes: Nodes that count in it.
        quantity: All that they have of the resource.
        shares: What each queue may use, in the order of the file.
        shared: Nodes that no queue is guaranteed: every queue of the pool borrows them.
    """

    pool: str
    by_topology: bool
    resource: str
    nodes: int
    quantity: int
    shares: tuple[QueueShare, ...]
    shared: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueNeeds:
    """Guarantees and loans of all nodes that queues have.

    Attributes:
        flavors: Nodes in queues, in the order of the pools.
        nodes: Sum of their nodes.
        unqueued: Nodes of the pools that no queue has, by pool; not those of controllers.
    """

    flavors: tuple[FlavorShares, ...]
    nodes: int
    unqueued: Mapping[str, int]
