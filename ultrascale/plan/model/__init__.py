"""The plans: what constructs and charts render. Everything here is decided, nothing is optional."""

from ultrascale.plan.model.cluster import AddonPlan, ClusterPlan, ControlPlanePlan
from ultrascale.plan.model.network import NetworkPlan, SubnetKind, SubnetPlan
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
from ultrascale.plan.model.pool import NetworkInterface, PoolPlan, RootDisk, Taint
from ultrascale.plan.model.storage import ClaimPlan, LustrePlan

__all__ = [
    "AddonPlan",
    "ClaimPlan",
    "ClusterPlan",
    "ControlPlanePlan",
    "DevicePluginPlan",
    "EtcdPlan",
    "LustrePlan",
    "NamespacePlan",
    "NetworkInterface",
    "NetworkPlan",
    "NeuronSchedulerExtensionPlan",
    "PodSecurity",
    "PoolPlan",
    "PriorityClassPlan",
    "QueuePlan",
    "RootDisk",
    "SubnetKind",
    "SubnetPlan",
    "Taint",
    "VolcanoPlan",
]
