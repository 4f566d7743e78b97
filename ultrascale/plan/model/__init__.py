"""The plans: what constructs and charts render. Everything here is decided, nothing is optional."""

from ultrascale.plan.model.addons import AddonPlan
from ultrascale.plan.model.backend import (
    ApplicationPlan,
    BackendPlan,
    DatabasePlan,
    InstanceCapacity,
    RightPlan,
    ServerlessCapacity,
)
from ultrascale.plan.model.cluster import ClusterPlan, ControlPlanePlan
from ultrascale.plan.model.hyperpod import (
    GovernancePlan,
    HyperPodPlan,
    InstanceGroupPlan,
    TeamPlan,
)
from ultrascale.plan.model.hyperpod_chart import (
    HyperPodChartPlan,
    IsolationPlan,
    RemoteChartPlan,
)
from ultrascale.plan.model.images import ImageBuildPlan
from ultrascale.plan.model.jobs import (
    JobPlan,
    MountPlan,
    PartPlan,
    PodPlan,
    ServingPlan,
    TaskPlan,
    TolerationPlan,
)
from ultrascale.plan.model.network import NetworkPlan, SubnetKind, SubnetPlan
from ultrascale.plan.model.node_pools import (
    Budget,
    KarpenterPlan,
    NodeClassPlan,
    NodePoolPlan,
    Requirement,
)
from ultrascale.plan.model.platform import (
    DevicePluginPlan,
    EtcdPlan,
    NamespacePlan,
    NeuronSchedulerExtensionPlan,
    PodSecurity,
    PriorityClassPlan,
    QueuePlan,
    VolcanoPlan,
)
from ultrascale.plan.model.pool import (
    CapacityType,
    NetworkInterface,
    PoolPlan,
    ReservationPlan,
    RootDisk,
    SizedBy,
    Taint,
    WindowPlan,
)
from ultrascale.plan.model.scaling import ClusterAutoscalerPlan, TerminationHandlerPlan
from ultrascale.plan.model.storage import (
    BucketPlan,
    ClaimPlan,
    DataRepositoryPlan,
    LustreAccessPlan,
    LustrePlan,
    VolumePlan,
)

__all__ = [
    "AddonPlan",
    "ApplicationPlan",
    "BackendPlan",
    "BucketPlan",
    "Budget",
    "CapacityType",
    "ClaimPlan",
    "ClusterAutoscalerPlan",
    "ClusterPlan",
    "ControlPlanePlan",
    "DataRepositoryPlan",
    "DatabasePlan",
    "DevicePluginPlan",
    "EtcdPlan",
    "GovernancePlan",
    "HyperPodChartPlan",
    "HyperPodPlan",
    "ImageBuildPlan",
    "InstanceCapacity",
    "InstanceGroupPlan",
    "IsolationPlan",
    "JobPlan",
    "KarpenterPlan",
    "LustreAccessPlan",
    "LustrePlan",
    "MountPlan",
    "NamespacePlan",
    "NetworkInterface",
    "NetworkPlan",
    "NeuronSchedulerExtensionPlan",
    "NodeClassPlan",
    "NodePoolPlan",
    "PartPlan",
    "PodPlan",
    "PodSecurity",
    "PoolPlan",
    "PriorityClassPlan",
    "QueuePlan",
    "RemoteChartPlan",
    "Requirement",
    "ReservationPlan",
    "RightPlan",
    "RootDisk",
    "ServerlessCapacity",
    "ServingPlan",
    "SizedBy",
    "SubnetKind",
    "SubnetPlan",
    "Taint",
    "TaskPlan",
    "TeamPlan",
    "TerminationHandlerPlan",
    "TolerationPlan",
    "VolcanoPlan",
    "VolumePlan",
    "WindowPlan",
]
