"""Programs that run in the cluster: plugins, schedulers, exporters."""

from collections.abc import Mapping
from typing import Literal

from msgspec import field

from ultrascale.frozen import Frozen
from ultrascale.plan.model.placement import NodeScoringPlan
from ultrascale.plan.model.scale import ResourcesPlan, VolcanoScale

PodSecurity = Literal["privileged", "baseline", "restricted"]


class IngressPlan(Frozen):
    """Another namespace whose pods may reach those of a namespace."""

    namespace: str  # Its name
    port: int  # TCP port


class NamespacePlan(Frozen):
    """A namespace that the platform creates."""

    name: str  # Its name
    pod_security: PodSecurity  # Pod Security Standard that the API server enforces in it
    training: bool = False  # Training jobs run here and may reach the rendezvous server
    reached_from: tuple[IngressPlan, ...] = ()  # Controllers that call the pods of jobs
    is_routed: bool = False  # Whether requests come to its services by routes alone


class PriorityClassPlan(Frozen):
    """A Kubernetes PriorityClass."""

    name: str  # Its name
    value: int  # Below 1,000,000,000; the rest is Kubernetes' own
    preempts: bool  # Whether its pods may evict pods of lower priority


class QueuePlan(Frozen):
    """A Volcano queue."""

    name: str  # Its name
    weight: int  # Share of the cluster relative to the other queues, 1 to 65535
    reclaimable: bool = True  # Whether other queues may take back what it uses beyond its share
    # Most that its jobs may use, by resource name; empty means no cap.
    capability: Mapping[str, str] = field(default_factory=dict[str, str])


class VolcanoPlan(Frozen):
    """The Volcano gang scheduler."""

    version: str  # Its release, ``v1.15.1``
    scheduler_image: str  # Image of vc-scheduler, pinned
    controllers_image: str  # Image of vc-controller-manager, pinned
    webhook_image: str  # Image of vc-webhook-manager, pinned; it carries openssl and kubectl
    # Queues of the cluster file, beside `default` and `root` which Volcano makes itself.
    queues: tuple[QueuePlan, ...]
    # Whether the scheduler runs its `enqueue` action. It keeps a gang's pods from being created
    # until existing nodes could hold them, so a cluster that scales from zero must not run it:
    # nothing would ever scale.
    enqueue: bool
    topology_aware: bool  # Whether HyperNodes are discovered from AWS's network-topology labels
    topology_layers: int  # Number of `topology.k8s.aws/network-node-layer-N` labels the nodes carry
    # Extended resources of the pools, which bin-packing weighs.
    accelerator_resources: tuple[str, ...]
    scoring: NodeScoringPlan  # How it looks for a pod's node
    scale: VolcanoScale  # What its programs get


class EtcdPlan(Frozen):
    """The etcd that TorchElastic workers meet at."""

    image: str  # Image reference, pinned
    # Where it runs: the training namespace, so that the tutorial's short host name ``etcd-server``
    # resolves from a job's pods.
    namespace: str
    replicas: int  # 1 or 3 members
    # Whether the v2 HTTP API is on, which torch's own etcd backends need. The v3 API, which ours
    # speaks, always is.
    v2_api: bool
    volume_gib: int  # Size of each member's gp3 volume, in GiB
    volume_provisioner: str  # Driver that makes the volumes on the nodes it runs on
    volume_key: str | None = None  # ARN of their KMS key; None: the account's default key of EBS


class DevicePluginPlan(Frozen):
    """One device plugin, or an exporter that runs beside it."""

    image: str  # Image reference, pinned
    # Values of `node.kubernetes.io/instance-type` that it runs on. Empty: it goes by
    # `node_selector` alone.
    instance_types: tuple[str, ...]
    node_selector: Mapping[str, str]  # Labels that its nodes carry
    taint_keys: tuple[str, ...]  # Keys of the taints on those nodes


class NeuronSchedulerExtensionPlan(Frozen):
    """The scheduler that places pods which ask for a part of a node's Neuron devices."""

    extender_image: str  # Image of the Neuron scheduler extender, pinned
    scheduler_image: str  # Image of kube-scheduler, pinned, of the cluster's own minor
    scheduler_name: str  # What such a pod puts into ``schedulerName``
    scheduler_resources: ResourcesPlan  # What the scheduler gets


class DevicesPlan(Frozen):
    """Device plugins, and what belongs to devices."""

    neuron: DevicePluginPlan | None  # Neuron device plugin, if a pool has Neuron devices
    # Exporter of what Neuron devices do, where we install their plugin.
    neuron_monitor: DevicePluginPlan | None
    # Neuron scheduler extension, if asked for.
    neuron_scheduler: NeuronSchedulerExtensionPlan | None
    efa: DevicePluginPlan | None  # EFA device plugin, if a pool has EFA interfaces
    nvidia: DevicePluginPlan | None  # NVIDIA device plugin, if a pool has NVIDIA GPUs
    dcgm: DevicePluginPlan | None  # DCGM exporter, if a pool has NVIDIA GPUs
