"""Queues with quotas: flavors of the pools, the cohort, the queues, and their guarantees."""

from collections.abc import Mapping, Sequence

from ultrascale.frozen import Frozen
from ultrascale.plan.model.parts import PlannedPart
from ultrascale.plan.model.pool import PoolPlan, Taint


class FlavorPlan(Frozen):
    """A ResourceFlavor: nodes of one pool, as queues count them.

    A pool in queues with a topology and in queues without has two flavors of the same nodes, whose
    `nodes` sum to the pool's.
    """

    name: str  # Its name, unique
    pool: str  # Name of the pool
    # Labels of its nodes; every label by which jobs are pinned is among them.
    node_labels: Mapping[str, str]
    tolerated: tuple[Taint, ...]  # Taints of its nodes, for which Kueue adds tolerations
    topology: str | None  # Name of the Topology that places its pods; None without
    resource: str  # Counted resource: that of accelerators, or `cpu`
    per_node: int  # Amount of it on a node, in devices or vCPUs
    nodes: int  # Most nodes that count in this flavor
    fixed: bool  # Whether these nodes exist; other pools launch theirs for waiting pods

    @property
    def quantity(self) -> int:
        """All that its nodes have of the resource."""
        return self.nodes * self.per_node


class TopologyLevelsPlan(Frozen):
    """A Topology: labels of nodes, from the broadest group of the network to the node itself."""

    name: str
    levels: tuple[str, ...]


class FlavorQuotaPlan(Frozen):
    """Quota of one flavor."""

    flavor: str  # Name of the flavor
    nominal: int  # Quota of its own, in units of the flavor's resource; 0: all is borrowed
    # Most that it may use beyond that, in the same units; None: no limit.
    borrowing_limit: int | None = None


class ResourceGroupPlan(Frozen):
    """Quotas of one resource, in the order in which flavors are tried."""

    resource: str
    quotas: tuple[FlavorQuotaPlan, ...]


class CohortPlan(Frozen):
    """The Cohort of all queues, and the quota that no queue is guaranteed."""

    name: str
    groups: tuple[ResourceGroupPlan, ...]


class ClusterQueuePlan(Frozen):
    """A ClusterQueue, and the LocalQueues of its name."""

    name: str  # Its name, and that of its LocalQueue in each namespace
    namespaces: tuple[str, ...]  # Namespaces whose jobs it takes
    groups: tuple[ResourceGroupPlan, ...]  # Its quotas, a group for each resource
    guarantee: Mapping[str, int]  # Nodes of its own, by pool
    # Most nodes beyond the guarantee, by pool; a missing pool has no limit.
    limit: Mapping[str, int]
    pools: tuple[str, ...]  # Its pools, best first
    topology: bool  # Whether its pods are placed by network layer
    # Its share of idle nodes, relative to the other queues; None: the controller's own.
    fair_share_weight: int | None = None

    def quota_of(self, flavor: FlavorPlan) -> "QueueQuota | None":
        """Return its quota of a flavor; None where it does not have the flavor.

        Source: potentialAvailable of
        https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/pkg/cache/scheduler/resource_node.go
        """
        for group in self.groups:
            for quota in group.quotas:
                if quota.flavor == flavor.name:
                    limit = quota.borrowing_limit
                    most = flavor.quantity
                    if limit is not None:
                        most = min(most, quota.nominal + limit)
                    return QueueQuota(own=quota.nominal, most=most)
        return None


class QueueQuota(Frozen):
    """The quota of a queue in a flavor, in units of the flavor's resource."""

    own: int  # Guaranteed amount
    most: int  # Largest amount, with idle nodes of others


class WorkloadPriorityPlan(Frozen):
    """A WorkloadPriorityClass: the place of a job in its queue."""

    name: str
    value: int


class ReadinessPlan(Frozen):
    """Limit of the time in which all pods of an admitted job get ready (`waitForPodsReady`)."""

    timeout_seconds: int  # Time after which a job whose pods are not all ready is evicted
    backoff_base_seconds: int  # First wait until it is tried again; each further one doubles
    backoff_max_seconds: int  # Longest wait
    backoff_limit: int  # Evictions after which the job is deactivated


class ControllerPlan(Frozen):
    """Size of one controller."""

    replicas: int  # Pods, of which one leads
    cpu: str  # CPU request, as a Kubernetes quantity
    memory: str  # Memory request and limit, as a Kubernetes quantity
    client_qps: int  # Requests a second to the API server
    client_burst: int  # Requests at once to the API server


class QueueShare(Frozen):
    """The share of a queue in the nodes of a flavor."""

    queue: str  # Its name
    tried: int  # Place of the flavor in the queue's order, from 1
    guaranteed: int  # Nodes of its own
    most: int  # Most nodes, with idle ones of others


class FlavorShares(Frozen):
    """Shares of queues in the nodes of a flavor: the guarantees and `shared` sum to `nodes`."""

    pool: str  # Name of the pool
    by_topology: bool  # Whether pods are placed by network layer
    resource: str  # Counted resource
    nodes: int  # Nodes that count in it
    quantity: int  # Amount of the resource on all of them
    shares: tuple[QueueShare, ...]  # Share of each queue, in the order of the file
    shared: int  # Nodes that no queue is guaranteed: every queue of the pool borrows them


class QueueNeeds(Frozen):
    """Guarantees and loans of all nodes in queues."""

    flavors: tuple[FlavorShares, ...]  # Nodes in queues, in the order of the pools
    nodes: int  # Sum of their nodes
    # Nodes of the pools outside all queues, by pool; not those of controllers.
    unqueued: Mapping[str, int]


class QueueingPlan(PlannedPart):
    """Queues with quotas of the nodes of pools, as a part plans them."""

    namespaces: tuple[str, ...]  # Namespaces whose jobs they take
    # Resources that no pod in these namespaces may ask for without a queue.
    gated_resources: tuple[str, ...]
    readiness: ReadinessPlan  # Time in which the pods of an admitted job get ready
    flavors: tuple[FlavorPlan, ...]  # Flavors of the pools
    cohort: CohortPlan  # The cohort of all queues
    queues: tuple[ClusterQueuePlan, ...]  # The queues

    def needs(self, pools: Sequence[PoolPlan]) -> QueueNeeds:
        """Return the guaranteed nodes of queues among the nodes of ``pools``."""
        raise NotImplementedError
