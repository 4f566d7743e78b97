"""The control plane, and everything together."""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Literal

from ultrascale.plan.model.access import AccessPlan
from ultrascale.plan.model.addons import AddonPlan
from ultrascale.plan.model.backend import BackendPlan
from ultrascale.plan.model.front import FrontPlan
from ultrascale.plan.model.hyperpod import HyperPodPlan
from ultrascale.plan.model.hyperpod_chart import HyperPodChartPlan, IsolationPlan
from ultrascale.plan.model.images import (
    ImageBuilderPlan,
    ImageBuildPlan,
    ImageCachePlan,
    MirrorPlan,
)
from ultrascale.plan.model.jobs import SavesPlan
from ultrascale.plan.model.keys import KeysPlan
from ultrascale.plan.model.needs import AgreedLimit
from ultrascale.plan.model.network import InterfaceCleanerPlan, NetworkPlan, NetworkPolicyPlan
from ultrascale.plan.model.node_groups import NodeGroupPlan
from ultrascale.plan.model.node_pools import KarpenterPlan, NodeClassPlan, NodePoolPlan
from ultrascale.plan.model.observability import ObservabilityPlan
from ultrascale.plan.model.package import PackageObject
from ultrascale.plan.model.placement import PlacementPlan
from ultrascale.plan.model.platform import (
    DevicePluginPlan,
    EtcdPlan,
    NamespacePlan,
    NeuronSchedulerExtensionPlan,
    PriorityClassPlan,
    VolcanoPlan,
)
from ultrascale.plan.model.pool import PoolPlan
from ultrascale.plan.model.queueing import KueuePlan
from ultrascale.plan.model.repair import RepairPlan
from ultrascale.plan.model.scale import NodeLocalDnsPlan
from ultrascale.plan.model.scaling import ClusterAutoscalerPlan, TerminationHandlerPlan
from ultrascale.plan.model.services import ServiceDemandPlan
from ultrascale.plan.model.serving import ServingControllersPlan
from ultrascale.plan.model.storage import (
    BucketPlan,
    ClaimPlan,
    ExistingBucketPlan,
    ExistingLustrePlan,
    LustreAccessPlan,
    LustrePlan,
    OutputAccessPlan,
    VolumePlan,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringPlan:
    """Scoring of nodes that fit a pod, by their free room.

    Attributes:
        strategy: Whether the node with the least room left is best, or the one with the most.
        weights: Weight of each resource, 1 to 100.
    """

    strategy: Literal["LeastAllocated", "MostAllocated"]
    weights: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlanePlan:
    """The EKS control plane.

    Attributes:
        version: Kubernetes minor version.
        support_type: What EKS does when standard support of the version ends: upgrade the cluster
            by itself, or extend support.
        tier: EKS's name of the control-plane scaling tier.
        service_cidr: Range of Kubernetes Services. A change replaces the cluster.
        event_ttl: How long Kubernetes events are kept, such as ``60m``.
        scoring: How the scheduler weighs the free room of nodes.
        public_cidrs: Ranges that reach the public endpoint; empty means there is none.
        log_types: Control-plane logs that are written.
        log_retention_days: How long they are kept, in days.
        admins: IAM roles with cluster administration.
        secrets_key: ARN of the user's key of the API's data; None: the cluster stack makes one. A
            change replaces the cluster.
        volume_key: ARN of the user's key of volumes, which EKS Auto Mode has to use; None: the
            account's default key of EBS.
        auto_mode: Whether EKS Auto Mode runs its compute, storage and load-balancing controllers.
        node_addons: Add-ons that must be there before a node joins.
        workload_addons: Add-ons that need a node to become healthy.
    """

    version: str
    support_type: Literal["STANDARD", "EXTENDED"]
    tier: str
    service_cidr: IPv4Network
    event_ttl: str
    scoring: ScoringPlan
    public_cidrs: tuple[str, ...]
    log_types: tuple[str, ...]
    log_retention_days: int
    admins: tuple[str, ...]
    secrets_key: str | None
    volume_key: str | None
    auto_mode: bool
    node_addons: tuple[AddonPlan, ...]
    workload_addons: tuple[AddonPlan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlan:
    """Everything that is built.

    Attributes:
        name: Cluster name and prefix of the stack names.
        region: AWS Region.
        partition: AWS partition of the Region.
        account: AWS account; None makes the assembly independent of one.
        permissions_boundary: Name of the IAM policy that bounds every role of the stacks.
        package: What the builds of the file's pipeline install, in words; None without a pipeline.
        package_object: The wheel that the pipeline of its file installs, where it is in a bucket.
        keys: The user's own KMS keys.
        network: VPC.
        network_policies: Reach of network policies.
        interface_cleaner: What deletes interfaces that ended nodes left; None: each node does.
        control_plane: EKS.
        access: Rights of people in the cluster.
        system_pools: Pools that run controllers and add-ons.
        pools: Every other pool.
        karpenter: Self-managed Karpenter, if a pool needs it.
        node_groups: Node groups of the pools that have one, in the order of the pools.
        node_role: Name of the IAM role of the nodes that Karpenter or EKS Auto Mode launches; None
            where neither does.
        node_classes: How those nodes are made.
        node_pools: How many of which are made.
        repairs: What a broken node of each pool of the file meets.
        cluster_autoscaler: The Cluster Autoscaler, if a node group scales with its pods.
        termination_handler: The Node Termination Handler, if a self-managed group loses instances.
        hyperpod: The SageMaker HyperPod cluster, if a pool is one of its groups.
        hyperpod_chart: AWS's Helm chart that it needs, if there is one.
        isolation: What keeps pods without accelerators off nodes that can have no taints; None
            where there are no such nodes.
        lustre: File systems that are made.
        existing_lustre: File systems that are there already.
        volumes: Volumes of file systems and buckets, each with its claim.
        lustre_access: What opens made ones that jobs mount to them; None where they mount none.
        buckets: S3 buckets that are made.
        existing_buckets: S3 buckets that are there already.
        output_access: Access of training pods to the bucket of checkpoints; None without one.
        repositories: Names of the ECR repositories.
        image_builds: Images that are built from this project.
        image_builder: The build of these images; None without any.
        unbuilt_repositories: Repositories that nothing is built for, each with the reason.
        image_cache: Where images of public registries come from instead; None: from there.
        mirror: Where all other images and all charts come from instead; None: from there.
        untagged_image_retention_days: How long images without a tag are kept, in days.
        namespaces: Namespaces that the platform makes.
        team_namespaces: Namespaces that HyperPod task governance makes, as they are to be.
        priority_classes: PriorityClasses.
        neuron: Neuron device plugin, if a pool has Neuron devices.
        neuron_monitor: Exporter of what Neuron devices do, where we install their plugin.
        neuron_scheduler: Neuron scheduler extension, if asked for.
        efa: EFA device plugin, if a pool has EFA interfaces.
        nvidia: NVIDIA device plugin, if a pool has NVIDIA GPUs.
        node_local_dns: The cache of names on every node, if there is one.
        dcgm: DCGM exporter, if a pool has NVIDIA GPUs.
        volcano: Gang scheduler, if asked for.
        kueue: Queueing by Kueue, with JobSet, if asked for.
        serving: Controllers of services; None where none is needed.
        front: Proxies that send requests to the service of their model, if asked for.
        placement: How long gangs take to be placed by network topology; None where they are not.
        saves: Checkpoints of templates with a recipe, or of one job on all nodes of each pool.
        services: Services of the file, and the nodes that they take.
        etcd: Rendezvous server, if asked for.
        node_readers: Namespaces whose pods may read nodes, to have ranks in the network's order.
        observability: What is measured, shown and told; None where the file does not ask for it.
        backend: The application that submits jobs, if there is one.
        agreed_limits: Quotas that AWS has raised above what it publishes.
    """

    name: str
    region: str
    partition: str
    account: str | None
    permissions_boundary: str | None
    package: str | None
    package_object: PackageObject | None
    keys: KeysPlan
    network: NetworkPlan
    network_policies: NetworkPolicyPlan
    interface_cleaner: InterfaceCleanerPlan | None
    control_plane: ControlPlanePlan
    access: AccessPlan
    system_pools: tuple[PoolPlan, ...]
    pools: tuple[PoolPlan, ...]
    karpenter: KarpenterPlan | None
    node_groups: tuple[NodeGroupPlan, ...]
    node_role: str | None
    node_classes: tuple[NodeClassPlan, ...]
    node_pools: tuple[NodePoolPlan, ...]
    repairs: tuple[RepairPlan, ...]
    cluster_autoscaler: ClusterAutoscalerPlan | None
    termination_handler: TerminationHandlerPlan | None
    hyperpod: HyperPodPlan | None
    hyperpod_chart: HyperPodChartPlan | None
    isolation: IsolationPlan | None
    lustre: tuple[LustrePlan, ...]
    existing_lustre: tuple[ExistingLustrePlan, ...]
    volumes: tuple[VolumePlan, ...]
    lustre_access: LustreAccessPlan | None
    buckets: tuple[BucketPlan, ...]
    existing_buckets: tuple[ExistingBucketPlan, ...]
    output_access: OutputAccessPlan | None
    repositories: tuple[str, ...]
    image_builds: tuple[ImageBuildPlan, ...]
    image_builder: ImageBuilderPlan | None
    unbuilt_repositories: Mapping[str, str]
    image_cache: ImageCachePlan | None
    mirror: MirrorPlan | None
    untagged_image_retention_days: int
    namespaces: tuple[NamespacePlan, ...]
    team_namespaces: tuple[NamespacePlan, ...]
    priority_classes: tuple[PriorityClassPlan, ...]
    neuron: DevicePluginPlan | None
    neuron_monitor: DevicePluginPlan | None
    neuron_scheduler: NeuronSchedulerExtensionPlan | None
    efa: DevicePluginPlan | None
    nvidia: DevicePluginPlan | None
    node_local_dns: NodeLocalDnsPlan | None
    dcgm: DevicePluginPlan | None
    volcano: VolcanoPlan | None
    kueue: KueuePlan | None
    serving: ServingControllersPlan | None
    front: FrontPlan | None
    placement: PlacementPlan | None
    saves: tuple[SavesPlan, ...]
    services: tuple[ServiceDemandPlan, ...]
    etcd: EtcdPlan | None
    node_readers: tuple[str, ...]
    observability: ObservabilityPlan | None
    backend: BackendPlan | None
    agreed_limits: tuple[AgreedLimit, ...]

    @property
    def all_pools(self) -> tuple[PoolPlan, ...]:
        """Every pool, the system pools first."""
        return self.system_pools + self.pools

    @property
    def claims(self) -> tuple[ClaimPlan, ...]:
        """Every claim through which pods mount a file system or a bucket."""
        return tuple(volume.claim for volume in self.volumes)
