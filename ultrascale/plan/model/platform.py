"""Programs that run in the cluster: plugins, schedulers, exporters."""

from collections.abc import Mapping
from typing import Literal

from ultrascale.frozen import Frozen
from ultrascale.plan.model.scale import ResourcesPlan

PodSecurity = Literal["privileged", "baseline", "restricted"]


class IngressPlan(Frozen):
    """Another namespace whose pods may reach those of a namespace."""

    namespace: str  # Its name
    port: int  # TCP port


class NamespacePlan(Frozen):
    """A namespace that the platform creates."""

    name: str  # Its name
    pod_security: PodSecurity  # Pod Security Standard that the API server enforces in it
    training: bool = False  # Whether training jobs run here and may reach the rendezvous server
    reached_from: tuple[IngressPlan, ...] = ()  # Controllers that call the pods of jobs
    is_routed: bool = False  # Whether requests come to its services by routes alone
    closed: tuple[str, ...] = ()  # Labels of pods that policies of their own jobs alone open
    hides_metadata: bool = False  # Whether a policy keeps pods from the nodes' metadata service


class PriorityClassPlan(Frozen):
    """A Kubernetes PriorityClass."""

    name: str  # Its name
    value: int  # Below 1,000,000,000; the rest is Kubernetes' own
    preempts: bool  # Whether its pods may evict pods of lower priority


class DevicePluginPlan(Frozen):
    """A device plugin, or an exporter that runs beside it."""

    image: str  # Image reference, pinned
    # Values of `node.kubernetes.io/instance-type` of its nodes. Empty: `node_selector` alone
    # chooses them.
    instance_types: tuple[str, ...]
    node_selector: Mapping[str, str]  # Labels of its nodes
    taint_keys: tuple[str, ...]  # Keys of the taints on those nodes


class NeuronSchedulerExtensionPlan(Frozen):
    """The scheduler of pods that ask for a part of a node's Neuron devices."""

    extender_image: str  # Image of the Neuron scheduler extender, pinned
    scheduler_image: str  # Image of kube-scheduler, pinned, of the cluster's own minor
    scheduler_name: str  # Its name in a pod's ``schedulerName``
    scheduler_resources: ResourcesPlan  # Resources of the scheduler


class DevicesPlan(Frozen):
    """Device plugins, and the programs beside them."""

    neuron: DevicePluginPlan | None  # Neuron device plugin, if a pool has Neuron devices
    # Exporter of Neuron devices' metrics, where we install their plugin.
    neuron_monitor: DevicePluginPlan | None
    # Neuron scheduler extension, if asked for.
    neuron_scheduler: NeuronSchedulerExtensionPlan | None
    efa: DevicePluginPlan | None  # EFA device plugin, if a pool has EFA interfaces
    nvidia: DevicePluginPlan | None  # NVIDIA device plugin, if a pool has NVIDIA GPUs
    dcgm: DevicePluginPlan | None  # DCGM exporter, if a pool has NVIDIA GPUs
