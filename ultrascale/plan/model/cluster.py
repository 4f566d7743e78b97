"""The control plane, and the plan of the whole cluster."""

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network
from typing import Literal, TypeVar

from msgspec import field

from ultrascale.catalog.recorded import RecordedFact, VersionFacts
from ultrascale.frozen import Frozen
from ultrascale.plan.model.access import AccessPlan
from ultrascale.plan.model.addons import AddonPlan
from ultrascale.plan.model.images import CopiesPlan, GitChartPlan, ImagesPlan
from ultrascale.plan.model.jobs import SavesPlan, TeamPlan
from ultrascale.plan.model.metrics import AlarmTopicPlan
from ultrascale.plan.model.needs import AgreedLimit
from ultrascale.plan.model.network import NetworkPlan
from ultrascale.plan.model.node_groups import (
    ClusterAutoscalerPlan,
    NodeGroupPlan,
    TerminationHandlerPlan,
)
from ultrascale.plan.model.node_pools import KarpenterPlan, NodeClassPlan, NodePoolPlan, RepairPlan
from ultrascale.plan.model.parts import KeyUse, PlannedPart, copies_of, key_for
from ultrascale.plan.model.placement import PlacementPlan
from ultrascale.plan.model.platform import (
    DevicesPlan,
    NamespacePlan,
    PriorityClassPlan,
)
from ultrascale.plan.model.pool import IsolationPlan, PoolPlan
from ultrascale.plan.model.services import ServiceDemandPlan
from ultrascale.plan.model.storage import StoragePlan

PartT = TypeVar("PartT", bound=PlannedPart)


class ScoringPlan(Frozen):
    """Scoring of nodes that fit a pod, by their free room."""

    # Whether the node with the least room left is best, or the one with the most.
    strategy: Literal["LeastAllocated", "MostAllocated"]
    weights: Mapping[str, int]  # Weight of each resource, 1 to 100


class ControlPlanePlan(Frozen):
    """The EKS control plane."""

    version: str  # Kubernetes minor version
    # EKS's action when standard support of the version ends: upgrade the cluster by itself, or
    # extend support.
    support_type: Literal["STANDARD", "EXTENDED"]
    tier: str  # EKS's name of the control-plane scaling tier
    service_cidr: IPv4Network  # Range of Kubernetes Services. A change replaces the cluster.
    event_ttl: str  # Time for which Kubernetes events are kept, such as ``60m``
    scoring: ScoringPlan  # The scheduler's weights of the nodes' free room
    # Ranges that reach the public endpoint; empty means there is none.
    public_cidrs: tuple[str, ...]
    log_types: tuple[str, ...]  # Control-plane logs that are written
    log_retention_days: int  # Retention of these logs, in days
    admins: tuple[str, ...]  # IAM roles with cluster administration
    # ARN of the user's key of the API's data; None: the cluster stack makes one. A change replaces
    # the cluster.
    secrets_key: str | None
    # ARN of the user's key of volumes, which EKS Auto Mode has to use; None: the account's default
    # key of EBS.
    volume_key: str | None
    # Whether EKS Auto Mode runs its compute, storage and load-balancing controllers.
    auto_mode: bool
    node_addons: tuple[AddonPlan, ...]  # Add-ons that must be there before a node joins
    workload_addons: tuple[AddonPlan, ...]  # Add-ons that need a node to become healthy
    # Facts of the version, recorded ones before the catalog's
    facts: VersionFacts = field(default_factory=VersionFacts)


class NodesPlan(Frozen):
    """The making of all nodes but HyperPod's."""

    karpenter: KarpenterPlan | None  # Self-managed Karpenter, if a pool needs it
    # Node groups of the pools that have one, in the order of the pools.
    groups: tuple[NodeGroupPlan, ...]
    # Name of the IAM role of the nodes that Karpenter or EKS Auto Mode launches; None where neither
    # does.
    role: str | None
    classes: tuple[NodeClassPlan, ...]  # Node classes of those nodes
    node_pools: tuple[NodePoolPlan, ...]  # NodePools of those nodes
    repairs: tuple[RepairPlan, ...]  # Repair of a broken node of each pool of the file
    # The Cluster Autoscaler, if a node group scales with its pods.
    autoscaler: ClusterAutoscalerPlan | None
    # The Node Termination Handler, if a self-managed group loses instances.
    termination_handler: TerminationHandlerPlan | None


class ClusterIdentity(Frozen):
    """The name of a cluster, and where it is."""

    name: str  # Cluster name and prefix of the stack names
    region: str  # AWS Region
    partition: str  # AWS partition of the Region
    account: str | None  # AWS account; None makes the assembly independent of one
    permissions_boundary: str | None  # Name of the IAM policy that bounds every role of the stacks


class ClusterPlan(ClusterIdentity):
    """The plan of a whole cluster."""

    parts: tuple[PlannedPart, ...]  # Parts that the file has, in the order of their table
    network: NetworkPlan  # VPC
    control_plane: ControlPlanePlan  # EKS
    access: AccessPlan  # Rights of people in the cluster
    system_pools: tuple[PoolPlan, ...]  # Pools that run controllers and add-ons
    pools: tuple[PoolPlan, ...]  # Every other pool
    nodes: NodesPlan  # The making of the pools' nodes
    storage: StoragePlan  # File systems and buckets
    images: ImagesPlan  # Repositories and builds of images
    namespaces: tuple[NamespacePlan, ...]  # Namespaces that the platform makes
    priority_classes: tuple[PriorityClassPlan, ...]  # PriorityClasses
    devices: DevicesPlan  # Device plugins, and the programs beside them
    # Checkpoints of templates with a recipe, or of one job on all nodes of each pool.
    saves: tuple[SavesPlan, ...]
    services: tuple[ServiceDemandPlan, ...]  # Services of the file, and their nodes
    agreed_limits: tuple[AgreedLimit, ...]  # Quotas that AWS has raised above the published limits
    recorded: tuple[RecordedFact, ...] = ()  # Facts of the file that count before the catalog's

    @property
    def all_pools(self) -> tuple[PoolPlan, ...]:
        """Every pool, the system pools first."""
        return self.system_pools + self.pools

    def part(self, kind: type[PartT]) -> PartT | None:
        """Return the plan of a part, by its type; None where the cluster does not have it."""
        return next((plan for plan in self.parts if isinstance(plan, kind)), None)

    def key(self, use: KeyUse) -> str | None:
        """Return the ARN of the user's own key for ``use``; None: the stacks make one, or AWS."""
        return key_for(use, self.parts)

    @property
    def addons(self) -> tuple[AddonPlan, ...]:
        """All add-ons, in the order of their installation."""
        own = (*self.control_plane.node_addons, *self.control_plane.workload_addons)
        return (*own, *(addon for part in self.parts for addon in part.addons))

    @property
    def git_charts(self) -> tuple[GitChartPlan, ...]:
        """Releases of charts that are in no registry."""
        return tuple(chart for part in self.parts for chart in part.git_charts)

    @property
    def teams(self) -> tuple[TeamPlan, ...]:
        """Teams that share nodes by quotas."""
        return tuple(team for part in self.parts for team in part.teams)

    @property
    def team_namespaces(self) -> tuple[NamespacePlan, ...]:
        """Namespaces of teams, which a controller makes after the platform, in their final form."""
        return tuple(namespace for part in self.parts for namespace in part.namespaces_of_teams)

    @property
    def isolation(self) -> IsolationPlan | None:
        """Rules in place of taints on nodes that can have none; None without such nodes."""
        return next((part.isolation for part in self.parts if part.isolation is not None), None)

    @property
    def alarm_topic(self) -> AlarmTopicPlan | None:
        """Topic that the alarms of all stacks notify; None: no topic."""
        return next((part.alarm_topic for part in self.parts if part.alarm_topic is not None), None)

    @property
    def copies(self) -> CopiesPlan | None:
        """Copies of all images and charts; None: pods pull the publishers' own."""
        return copies_of(self.parts)

    def chart(self, location: str) -> str:
        """Return the location of a Helm chart: the copies, or its publisher."""
        return location if self.copies is None else self.copies.chart(location)

    def image(self, reference: str) -> str:
        """Return the reference that pods pull for an image: its copy, or its publisher's."""
        return reference if self.copies is None else self.copies.reference(reference)

    @property
    def placement(self) -> PlacementPlan | None:
        """Times of placing gangs by topology; None where no scheduler does it."""
        return next((part.placement for part in self.parts if part.placement is not None), None)


class AppStagePlan(Frozen):
    """A cluster that the app of a part deploys."""

    name: str  # Name of the stage
    file: str  # Its cluster file, from the repository's folder
    cluster: ClusterPlan  # The cluster


class AppPlan(Frozen):
    """An app of a part, which deploys the clusters of one file or more."""

    name: str  # Its name, and that of its stack
    file: str  # The cluster file that has it, from the repository's folder
    partition: str  # Partition of its account
    account: str  # Account that it lies in
    region: str  # Region that it lies in

    @property
    def stages(self) -> Sequence[AppStagePlan]:
        """Every stage, in the order of deployment."""
        return ()
