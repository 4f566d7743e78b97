"""NodePools and node classes, from which Karpenter and EKS Auto Mode launch nodes."""

from collections.abc import Mapping
from typing import Literal

from ultrascale.config import Repair
from ultrascale.frozen import Frozen
from ultrascale.plan.model.pool import (
    NetworkInterface,
    ReservationPlan,
    RootDisk,
    Taint,
    WindowPlan,
)

NodeClassKind = Literal["EC2NodeClass", "NodeClass"]
DisruptionReason = Literal["Underutilized", "Empty", "Drifted", "Unhealthy"]


class NodeClassPlan(Frozen):
    """Settings of a pool's nodes: a Karpenter EC2NodeClass or an Auto Mode NodeClass."""

    name: str  # Name of the object
    kind: NodeClassKind  # `EC2NodeClass` of Karpenter, or `NodeClass` of EKS Auto Mode
    role: str  # Name of the nodes' IAM role
    # Name of their instance profile, in place of the role; None lets Karpenter make one, which
    # takes a way to IAM.
    instance_profile: str | None = None
    subnet_tags: Mapping[str, str]  # Tags that the nodes' subnets carry, all of them
    security_group_tags: tuple[Mapping[str, str], ...]  # Tags of each of the nodes' security groups
    # Ids of the nodes' subnets, in place of their tags where others made them; empty: Karpenter
    # selects them by tags.
    subnet_ids: tuple[str, ...] = ()
    security_group_ids: tuple[str, ...] = ()  # Ids of the nodes' security groups, likewise
    # The only capacity reservation of its launches; None: none.
    reservation: ReservationPlan | None
    # Placeholder for the name of the placement group in ``dist/``, or None.
    placement_group: str | None
    # Every interface of a node; empty where one ENA interface is enough.
    network_interfaces: tuple[NetworkInterface, ...]
    root_disk: RootDisk  # Root volume, or Auto Mode's ephemeral storage
    # ARN of the KMS key of the nodes' volumes; None: the account's default key of EBS.
    volume_key: str | None
    # /28 prefixes of pod addresses that a node launches with; 0 leaves them to the VPC CNI or Auto
    # Mode.
    ip_prefixes: int
    # Single addresses for its pods that an Auto Mode node may take; None: its pods have those of
    # prefixes.
    pod_addresses: int | None
    tags: Mapping[str, str]  # EC2 tags of instances and volumes
    ami_alias: str  # AMI release. Karpenter only, as is all that follows.
    raid0: bool  # Whether the NVMe disks are joined into one volume for images and pods
    max_pods: int  # The kubelet's limit of pods
    parallel_image_pull: bool  # Whether images are pulled and unpacked in parallel
    # DNS servers of its pods in order; empty for EKS's default.
    name_servers: tuple[str, ...]
    named_by_id: bool  # Whether nodes are named by their instance ids


class Requirement(Frozen):
    """A requirement on a node's labels, with operator ``In``."""

    key: str
    values: tuple[str, ...]


class Budget(Frozen):
    """Limit on the nodes of a pool that may be disrupted at a time."""

    nodes: str  # Number or percentage
    reasons: tuple[DisruptionReason, ...] = ()  # Its reasons; empty means all


class CalendarPlan(Frozen):
    """The calendar of a static NodePool, which launches without looking at its reservation.

    It sets the size, never above what the reservation takes now.
    """

    window: WindowPlan | None  # When `max_nodes` replicas are kept, and none else; None: always
    reservation: ReservationPlan  # The pool's reservation, which it waits for


class NodePoolPlan(Frozen):
    """A NodePool."""

    name: str  # Name of the object: the pool's own, unless EKS has a NodePool of that name
    pool: str  # Name of the pool in the cluster file
    shard: int | None  # Number of the shard, or None
    node_class: str  # Name of its node class
    node_class_kind: NodeClassKind  # Kind of its node class
    weight: int | None  # Higher is tried first; None for static pools, which take none
    replicas: (
        int | None
    )  # Fixed number of nodes at its creation; None where it scales with the pods
    max_nodes: int  # Most nodes. The NodePools of one pool add up to the pool's own most.
    # Most vCPUs: as many nodes of its largest type. None for static pools, which are limited by
    # nodes alone.
    max_vcpus: int | None
    requirements: tuple[Requirement, ...]  # Labels that its nodes must satisfy
    labels: Mapping[str, str]  # Labels of its nodes, beside those that requirements make
    taints: tuple[Taint, ...]  # Taints of its nodes
    # Taints of its new nodes, each removed by the driver that it waits for. Pods that a node is
    # launched for need not tolerate them.
    startup_taints: tuple[Taint, ...]
    # Resources of a node that Karpenter does not know of its type.
    unseen_resources: Mapping[str, str]
    expire_after: str  # Age at which a node is replaced, or ``Never``
    # Longest time for a node's pods to leave, whatever their own disruption budgets say.
    termination_grace_period: str | None
    # Nodes that may be removed to save cost.
    consolidation_policy: Literal["WhenEmpty", "WhenEmptyOrUnderutilized"]
    consolidate_after: str  # How long a node must be so, or ``Never``
    budgets: tuple[Budget, ...]  # Limits of disruption
    calendar: CalendarPlan | None  # What sets its size; None: the provisioner, or the manifest


class KarpenterPlan(Frozen):
    """Self-managed Karpenter."""

    version: str  # Version of its two charts
    crd_chart: str  # Repository of the chart that holds the CRDs
    chart: str  # Repository of the chart that holds the controller
    image: str | None  # Repository of the controller's image; None: the chart's own
    replicas: int  # Controllers, one of which leads
    cpu: str  # CPU that each replica requests
    memory: str  # Memory that each replica requests and is limited to
    client_qps: int  # Calls of the Kubernetes API that each replica makes in a second
    client_burst: int  # Calls at once
    feature_gates: Mapping[str, bool]  # Every gate of the version, and whether it is on
    aws_feature_gates: Mapping[str, bool]  # Gates of the provider for AWS, likewise
    # Whether repair ends nodes by force, despite budgets and pods; None where the version has no
    # such choice.
    legacy_node_repair: bool | None
    # Pause without a further pod before it launches nodes for the waiting ones.
    batch_idle_duration: str
    batch_max_duration: str  # Longest time that it collects pods before it launches nodes for them
    # Whether it ignores preferred affinities and spreads of pods when it chooses nodes.
    ignores_preferences: bool
    hides_cluster_state: bool  # Whether it has no metrics of each node and each pod
    # ARN of the user's own key of the volumes of its nodes; None without one.
    volume_key: str | None
    interruption_queue: str  # Name of the SQS queue of interruptions
    node_role: str  # Name of the IAM role of nodes that are named by their private DNS names
    # Name of the IAM role of nodes that are named by their instance ids. Both roles exist whatever
    # nodes are launched with: a running node keeps its role.
    node_role_by_id: str
    # Whether it has no way to IAM and to the Price List API. Nodes then take instance profiles of
    # the roles' names, and prices are those that it was built with.
    is_isolated: bool = False

    @property
    def reboots_nodes(self) -> bool:
        """Whether it may reboot the instances of its nodes."""
        return self.aws_feature_gates.get("RebootForRepair", False)


# --- Repair of a pool's broken nodes --------------------------------------------------------------


class RepairPlan(Frozen):
    """Repair of a broken node of a pool."""

    pool: str  # Name of the pool in the cluster file
    action: Repair  # Its action
    decided_by: str  # Controller that decides; empty without one
    meets: str  # Effect on the node and its pods, in words
    # Effect on its slot in reserved capacity, in words; empty without a reservation.
    slot: str
