"""NodePools and node classes: what Karpenter and EKS Auto Mode launch nodes from."""

from collections.abc import Mapping
from typing import Literal

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
    # Name of their instance profile, which stands in the place of the role; None lets Karpenter
    # make one, which takes a way to IAM.
    instance_profile: str | None = None
    subnet_tags: Mapping[str, str]  # Tags that the nodes' subnets carry, all of them
    security_group_tags: tuple[Mapping[str, str], ...]  # Tags of each of the nodes' security groups
    # Ids of the nodes' subnets, which take the place of their tags where others made them; empty:
    # the tags find them.
    subnet_ids: tuple[str, ...] = ()
    security_group_ids: tuple[str, ...] = ()  # The same of the nodes' security groups
    # The only capacity reservation that it launches into; None: none.
    reservation: ReservationPlan | None
    # Placeholder for the name of the placement group in ``dist/``, or None.
    placement_group: str | None
    # Every interface of a node; empty where one ENA interface is enough.
    network_interfaces: tuple[NetworkInterface, ...]
    root_disk: RootDisk  # Root volume, or Auto Mode's ephemeral storage
    # ARN of the KMS key of the nodes' volumes; None: the account's default key of EBS.
    volume_key: str | None
    # /28 prefixes of pod addresses that a node launches with; 0 leaves them to what gives pods
    # their addresses later.
    ip_prefixes: int
    # Single addresses for its pods that an Auto Mode node may take; None: its pods have those of
    # prefixes.
    pod_addresses: int | None
    tags: Mapping[str, str]  # EC2 tags of instances and volumes
    ami_alias: str  # AMI release. Karpenter only, as is all that follows.
    raid0: bool  # Whether the NVMe disks are joined into one volume for images and pods
    max_pods: int  # The kubelet's limit of pods
    parallel_image_pull: bool  # Whether images are pulled and unpacked in parallel
    # Whom its pods ask for names, in this order; empty: as EKS has it.
    name_servers: tuple[str, ...]
    named_by_id: bool  # Whether nodes are named by their instance ids


class Requirement(Frozen):
    """A requirement on a node's labels, with operator ``In``."""

    key: str
    values: tuple[str, ...]


class Budget(Frozen):
    """Limit on the nodes of a pool that may be disrupted at a time."""

    nodes: str  # Number or percentage
    reasons: tuple[DisruptionReason, ...] = ()  # For which reasons; empty means all


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
    replicas: int | None  # Fixed count that it is made with; None where it scales with the pods
    max_nodes: int  # Most nodes. Those of the NodePools of one pool add up to the pool's own most.
    # Most vCPUs: as many nodes of its largest type. None for static pools, which are limited by
    # nodes alone.
    max_vcpus: int | None
    requirements: tuple[Requirement, ...]  # Labels that its nodes must satisfy
    labels: Mapping[str, str]  # Labels of its nodes, beside those that requirements make
    taints: tuple[Taint, ...]  # Taints of its nodes
    # Taints of its new nodes, each removed by what it waits for. Pods that a node is launched for
    # need not tolerate them.
    startup_taints: tuple[Taint, ...]
    # What a node offers besides what Karpenter knows of its type.
    unseen_resources: Mapping[str, str]
    expire_after: str  # Age at which a node is replaced, or ``Never``
    # How long a node's pods may take to leave, whatever their own disruption budgets say.
    termination_grace_period: str | None
    # Which nodes may be taken away to save cost.
    consolidation_policy: Literal["WhenEmpty", "WhenEmptyOrUnderutilized"]
    consolidate_after: str  # How long a node must be so, or ``Never``
    budgets: tuple[Budget, ...]  # Limits of disruption
    calendar: CalendarPlan | None  # What sets its size; None: the provisioner, or the manifest


class KarpenterPlan(Frozen):
    """Self-managed Karpenter."""

    version: str  # Version of its two charts
    crd_chart: str  # Repository of the chart that holds the CRDs
    chart: str  # Repository of the chart that holds the controller
    image: str | None  # Repository of the controller's image; None: the one that the chart names
    replicas: int  # Controllers, one of which leads
    cpu: str  # CPU that each replica requests
    memory: str  # Memory that each replica requests and is limited to
    client_qps: int  # Calls of the Kubernetes API that each replica makes in a second
    client_burst: int  # How many of them it may make at once
    feature_gates: Mapping[str, bool]  # Every gate that the version knows, and whether it is on
    aws_feature_gates: Mapping[str, bool]  # The same of the gates of the provider for AWS
    # Whether repair ends nodes by force, whatever budgets and pods say; None where the version has
    # no such choice.
    legacy_node_repair: bool | None
    # How long no further pod may have come before it launches nodes for those that wait.
    batch_idle_duration: str
    batch_max_duration: str  # How long it collects pods at most, before it launches nodes for them
    # Whether preferred affinities and spreads of pods count for nothing when it chooses nodes.
    ignores_preferences: bool
    hides_cluster_state: bool  # Whether it has no metrics of each node and each pod
    # ARN of the user's own key of the volumes of its nodes; None without one.
    volume_key: str | None
    interruption_queue: str  # Name of the SQS queue that it learns of interruptions from
    node_role: str  # Name of the IAM role of nodes that are named by their private DNS names
    # Name of the IAM role of nodes that are named by their instance ids. Both are there whatever
    # nodes are launched with: one that runs keeps the role that it has.
    node_role_by_id: str
    # Whether it has no way to IAM and to the Price List API. Nodes then take instance profiles of
    # the roles' names, and prices are those that it was built with.
    is_isolated: bool = False

    @property
    def reboots_nodes(self) -> bool:
        """Whether it may reboot the instances of its nodes."""
        return self.aws_feature_gates.get("RebootForRepair", False)
