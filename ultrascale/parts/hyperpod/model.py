"""SageMaker HyperPod: its cluster, instance groups, task governance and chart."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from msgspec import field

from ultrascale.catalog import eks
from ultrascale.catalog.build_environment import BuildEnvironment
from ultrascale.catalog.endpoints import Feature
from ultrascale.frozen import Frozen
from ultrascale.plan.model import (
    AddonPlan,
    GitChartPlan,
    IsolationPlan,
    NamespacePlan,
    PlannedPart,
    SubnetPlan,
    Taint,
    TeamPlan,
)
from ultrascale.plan.model.parts import ControllerVersion, DaemonSetPlan, KeyPrincipal

_OF_METRICS = KeyPrincipal(
    use="logs",
    name="Metrics",
    does="the workspace of HyperPod's metrics cannot be made",
    actions="prometheus",
    via="aps",
)


class InstanceGroupPlan(Frozen):
    """An instance group of the HyperPod cluster: a pool, or one shard of it."""

    name: str  # Its name
    instance_types: tuple[
        str, ...
    ]  # Instance types in order of preference, with SageMaker's prefix
    nodes: int  # Number of its instances
    training_plan: str | None  # ARN of the paying training plan; None for On-Demand
    # Checks of a new instance before it takes work, in HyperPod's words.
    deep_health_checks: tuple[str, ...]
    labels: Mapping[str, str]  # Node labels
    taints: tuple[Taint, ...]  # Node taints
    zones: tuple[str, ...]  # Zones of its subnets
    # Subnets of its instances, in the order in which ranges were added.
    subnets: tuple[SubnetPlan, ...]
    addresses: int  # Single IPv4 addresses that each instance takes
    volume_gib: int  # Size of the second EBS volume, which holds images and containers, in GiB
    volume_key: str | None  # ARN of the KMS key of both volumes; None: SageMaker's own
    # Mount paths on each instance for file systems of its zone, as many as a group takes.
    mounts: Mapping[str, str]


class GovernancePlan(Frozen):
    """HyperPod task governance."""

    name: str  # Name of the scheduler configuration
    addon: AddonPlan  # The EKS add-on that brings the queues
    weights: Mapping[str, int]  # Weight of each PriorityClass in the queues, highest first
    teams: tuple[TeamPlan, ...]  # The teams


class HyperPodPlan(Frozen):
    """The HyperPod cluster behind the pools of provisioner ``hyperpod``."""

    name: str  # Its name
    node_recovery: str  # ``Automatic``, or ``None`` as text
    groups: tuple[InstanceGroupPlan, ...]  # Its instance groups
    governance: GovernancePlan | None  # Sharing between teams; None leaves it out
    # The EKS add-on of the training operator; None leaves it out.
    training_operator: AddonPlan | None = None
    # Whether the role of its nodes is held to the VPC and the EKS cluster.
    least_privilege: bool = False
    # Tags beside those of the stack.
    tags: Mapping[str, str] = field(default_factory=dict[str, str])


class HyperPodChartPlan(GitChartPlan):
    """The release of AWS's HyperPod chart."""

    namespace: str  # Namespace of the release
    # Namespace of its operators, which must become available.
    operator_namespace: str
    values: Mapping[str, object]  # The chart's values
    # Nodes of its controllers, any where it is empty; the chart has no value for it.
    controller_node_selector: Mapping[str, str]
    # Instance types of the nodes of a DaemonSet of the chart, by its name, where the chart has no
    # value for them.
    daemon_set_types: Mapping[str, tuple[str, ...]]
    # Add-on of task governance, beside which no other Kueue may run; None without task governance.
    governance_addon: str | None
    build: BuildEnvironment  # Build that installs the release
    log_retention_days: int  # Retention of the builds' logs, in days
    # Keys of taints that its DaemonSets tolerate beside those of the chart.
    plugin_taints: tuple[str, ...]


class OperatorPlan(Frozen):
    """A job's part that is for HyperPod's training operator."""

    processes: int  # Processes of each pod
    process_restarts: int  # Restarts of processes after which the whole job restarts
    fewest_pods: int | None  # Pods with which it goes on; None: it needs all of them
    is_watched: bool  # Whether it prints its progress, without which it counts as hung
    restarts_if_slow: bool  # Whether it restarts once it prints that a node is slow


class Plan(PlannedPart):
    """All needs of the pools of provisioner ``hyperpod``."""

    installs_charts: ClassVar[bool] = True

    cluster: HyperPodPlan  # The HyperPod cluster
    chart_release: HyperPodChartPlan  # AWS's Helm chart, without which no instance joins
    # Rules in place of taints, which nodes with deep health checks cannot have; None without such
    # nodes.
    policy: IsolationPlan | None
    daemons: tuple[DaemonSetPlan, ...]  # DaemonSets of the chart
    metrics: AddonPlan | None  # The add-on that sends metrics; None leaves it out
    # Namespaces that task governance makes, in their final form.
    governed_namespaces: tuple[NamespacePlan, ...] = ()

    @property
    def daemon_sets(self) -> Sequence[DaemonSetPlan]:
        """Programs of AWS's chart on the instances."""
        return self.daemons

    @property
    def features(self) -> Sequence[Feature]:
        """Its programs that call AWS from within the VPC."""
        own: tuple[Feature, ...] = ("hyperpod", "hyperpod-chart")
        return own if self.metrics is None else (*own, "hyperpod-metrics")

    @property
    def addons(self) -> Sequence[AddonPlan]:
        """Add-ons of task governance, of the training operator and of metrics."""
        governance = self.cluster.governance
        governing = None if governance is None else governance.addon
        every = (governing, self.cluster.training_operator, self.metrics)
        return tuple(addon for addon in every if addon is not None)

    @property
    def git_charts(self) -> Sequence[GitChartPlan]:
        """AWS's chart."""
        return (self.chart_release,)

    @property
    def teams(self) -> Sequence[TeamPlan]:
        """Teams of task governance."""
        return self.cluster.governance.teams if self.cluster.governance is not None else ()

    @property
    def namespaces_of_teams(self) -> Sequence[NamespacePlan]:
        """Namespaces that task governance makes."""
        return self.governed_namespaces

    @property
    def isolation(self) -> IsolationPlan | None:
        """Rules in place of taints on nodes with deep health checks."""
        return self.policy

    @property
    def key_principals(self) -> Sequence[KeyPrincipal]:
        """The role of the instances, and the role that makes the cluster."""
        return (
            KeyPrincipal(
                use="volumes",
                name="VolumesByHyperPod",
                who="the execution role of HyperPod's instances",
                does="no instance of HyperPod starts",
                layer="hyperpod-groups",
                actions="hyperpod",
            ),
            KeyPrincipal(
                use="volumes",
                name="HyperPod",
                does="SageMaker may refuse to make the HyperPod cluster",
                actions="hyperpod",
                certain=False,
            ),
            *(() if self.metrics is None else (_OF_METRICS,)),
        )

    @property
    def versions(self) -> Sequence[ControllerVersion]:
        """HyperPod itself, which AWS keeps up to date."""
        latest = eks.LATEST_HYPERPOD_VERSION
        return (ControllerVersion(name="HyperPod", version="of AWS", latest=latest),)

    @property
    def linked_roles(self) -> Sequence[str]:
        """The service of HyperPod's role."""
        return ("hyperpod.sagemaker.amazonaws.com",)

    @property
    def bucket_names(self) -> Mapping[str, str]:
        """The bucket of lifecycle scripts, which CloudFormation names."""
        return {"sagemaker-lifecycle-*": "lifecycle scripts of HyperPod's instances"}

    @property
    def log_prefixes(self) -> Sequence[str]:
        """Log groups of its instances."""
        return (f"/aws/sagemaker/Clusters/{self.cluster.name}/",)

    def renewals(self, region: str) -> Sequence[str]:
        """Return the call that renews all instances."""
        step = (
            "once no job runs on HyperPod: `aws sagemaker update-cluster-software --region "
            f"{region} --cluster-name {self.cluster.name}`"
        )
        return (step,)
