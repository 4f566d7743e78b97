"""NodePools and node classes: what Karpenter and EKS Auto Mode launch nodes from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ultrascale.plan.model.pool import (
    NetworkInterface,
    ReservationPlan,
    RootDisk,
    Taint,
    WindowPlan,
)

NodeClassKind = Literal["EC2NodeClass", "NodeClass"]
DisruptionReason = Literal["Underutilized", "Empty", "Drifted", "Unhealthy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeClassPlan:
    """Settings of a pool's nodes: a Karpenter EC2NodeClass or an Auto Mode NodeClass.

    Attributes:
        name: Name of the object.
        kind: `EC2NodeClass` of Karpenter, or `NodeClass` of EKS Auto Mode.
        role: Name of the nodes' IAM role.
        instance_profile: Name of their instance profile, which stands in the place of the role;
            None lets Karpenter make one, which takes a way to IAM.
        subnet_tags: Tags that the nodes' subnets carry, all of them.
        security_group_tags: Tags of each of the nodes' security groups.
        subnet_ids: Ids of the nodes' subnets, which take the place of their tags where others made
            them; empty: the tags find them.
        security_group_ids: The same of the nodes' security groups.
        reservation: The only capacity reservation that it launches into; None: none.
        placement_group: Placeholder for the name of the placement group in ``dist/``, or None.
        network_interfaces: Every interface of a node; empty where one ENA interface is enough.
        root_disk: Root volume, or Auto Mode's ephemeral storage.
        volume_key: ARN of the KMS key of the nodes' volumes; None: the account's default key of
            EBS.
        ip_prefixes: /28 prefixes of pod addresses that a node launches with; 0 leaves them to
            what gives pods their addresses later.
        pod_addresses: Single addresses for its pods that an Auto Mode node may take; None: its pods
            have those of prefixes.
        tags: EC2 tags of instances and volumes.
        ami_alias: AMI release. Karpenter only, as is all that follows.
        raid0: Whether the NVMe disks are joined into one volume for images and pods.
        max_pods: The kubelet's limit of pods.
        parallel_image_pull: Whether images are pulled and unpacked in parallel.
        name_servers: Whom its pods ask for names, in this order; empty: as EKS has it.
        named_by_id: Whether nodes are named by their instance ids.
    """

    name: str
    kind: NodeClassKind
    role: str
    instance_profile: str | None = None
    subnet_tags: Mapping[str, str]
    security_group_tags: tuple[Mapping[str, str], ...]
    subnet_ids: tuple[str, ...] = ()
    security_group_ids: tuple[str, ...] = ()
    reservation: ReservationPlan | None
    placement_group: str | None
    network_interfaces: tuple[NetworkInterface, ...]
    root_disk: RootDisk
    volume_key: str | None
    ip_prefixes: int
    pod_addresses: int | None
    tags: Mapping[str, str]
    ami_alias: str
    raid0: bool
    max_pods: int
    parallel_image_pull: bool
    name_servers: tuple[str, ...]
    named_by_id: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """A requirement on a node's labels, with operator ``In``."""

    key: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limit on the nodes of a pool that may be disrupted at a time.

    Attributes:
        nodes: Number or percentage.
        reasons: For which reasons; empty means all.
    """

    nodes: str
    reasons: tuple[DisruptionReason, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePoolPlan:
    """A NodePool.

    Attributes:
        name: Name of the object: the pool's own, unless EKS has a NodePool of that name.
        pool: Name of the pool in the cluster file.
        shard: Number of the shard, or None.
        node_class: Name of its node class.
        node_class_kind: Kind of its node class.
        weight: Higher is tried first; None for static pools, which take none.
        replicas: Fixed count that it is made with; None where it scales with the pods.
        max_nodes: Most nodes. Those of the NodePools of one pool add up to the pool's own most.
        max_vcpus: Most vCPUs: as many nodes of its largest type. None for static pools, which are
            limited by nodes alone.
        requirements: Labels that its nodes must satisfy.
        labels: Labels of its nodes, beside those that requirements make.
        taints: Taints of its nodes.
        startup_taints: Taints of its new nodes, each removed by what it waits for. Pods that a
            node is launched for need not tolerate them.
        unseen_resources: What a node offers besides what Karpenter knows of its type.
        expire_after: Age at which a node is replaced, or ``Never``.
        termination_grace_period: How long a node's pods may take to leave, whatever their own
            disruption budgets say.
        consolidation_policy: Which nodes may be taken away to save cost.
        consolidate_after: How long a node must be so, or ``Never``.
        budgets: Limits of disruption.
        calendar: Window in which `max_nodes` replicas are kept, and none outside; None where no
            calendar sets the size.
        reservation: What the calendar waits for: the pool's reservation; None without one.
        follows_reservation: Whether the calendar sets the size, never above what the reservation
            takes now. A static NodePool launches without looking at it.
    """

    name: str
    pool: str
    shard: int | None
    node_class: str
    node_class_kind: NodeClassKind
    weight: int | None
    replicas: int | None
    max_nodes: int
    max_vcpus: int | None
    requirements: tuple[Requirement, ...]
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    startup_taints: tuple[Taint, ...]
    unseen_resources: Mapping[str, str]
    expire_after: str
    termination_grace_period: str | None
    consolidation_policy: Literal["WhenEmpty", "WhenEmptyOrUnderutilized"]
    consolidate_after: str
    budgets: tuple[Budget, ...]
    calendar: WindowPlan | None
    reservation: ReservationPlan | None
    follows_reservation: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KarpenterPlan:
    """Self-managed Karpenter.

    Attributes:
        version: Version of its two charts.
        crd_chart: Repository of the chart that holds the CRDs.
        chart: Repository of the chart that holds the controller.
        image: Repository of the controller's image; None: the one that the chart names.
        replicas: Controllers, one of which leads.
        cpu: CPU that each replica requests.
        memory: Memory that each replica requests and is limited to.
        client_qps: Calls of the Kubernetes API that each replica makes in a second.
        client_burst: How many of them it may make at once.
        feature_gates: Every gate that the version knows, and whether it is on.
        aws_feature_gates: The same of the gates of the provider for AWS.
        legacy_node_repair: Whether repair ends nodes by force, whatever budgets and pods say; None
            where the version has no such choice.
        batch_idle_duration: How long no further pod may have come before it launches nodes for
            those that wait.
        batch_max_duration: How long it collects pods at most, before it launches nodes for them.
        ignores_preferences: Whether preferred affinities and spreads of pods count for nothing
            when it chooses nodes.
        hides_cluster_state: Whether it has no metrics of each node and each pod.
        volume_key: ARN of the user's own key of the volumes of its nodes; None without one.
        interruption_queue: Name of the SQS queue that it learns of interruptions from.
        node_role: Name of the IAM role of nodes that are named by their private DNS names.
        node_role_by_id: Name of the IAM role of nodes that are named by their instance ids. Both
            are there whatever nodes are launched with: one that runs keeps the role that it has.
        is_isolated: Whether it has no way to IAM and to the Price List API. Nodes then take
            instance profiles of the roles' names, and prices are those that it was built with.
    """

    version: str
    crd_chart: str
    chart: str
    image: str | None
    replicas: int
    cpu: str
    memory: str
    client_qps: int
    client_burst: int
    feature_gates: Mapping[str, bool]
    aws_feature_gates: Mapping[str, bool]
    legacy_node_repair: bool | None
    batch_idle_duration: str
    batch_max_duration: str
    ignores_preferences: bool
    hides_cluster_state: bool
    volume_key: str | None
    interruption_queue: str
    node_role: str
    node_role_by_id: str
    is_isolated: bool = False

    @property
    def reboots_nodes(self) -> bool:
        """Whether it may reboot the instances of its nodes."""
        return self.aws_feature_gates.get("RebootForRepair", False)
