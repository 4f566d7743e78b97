"""Programs that run in the cluster: plugins, schedulers, exporters."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ultrascale.plan.model.placement import NodeScoringPlan
from ultrascale.plan.model.scale import ResourcesPlan, VolcanoScale

PodSecurity = Literal["privileged", "baseline", "restricted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IngressPlan:
    """Another namespace whose pods may reach those of a namespace.

    Attributes:
        namespace: Its name.
        port: TCP port.
    """

    namespace: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespacePlan:
    """A namespace that the platform creates.

    Attributes:
        name: Its name.
        pod_security: Pod Security Standard that the API server enforces in it.
        training: Training jobs run here and may reach the rendezvous server.
        reached_from: Controllers that call the pods of jobs.
        has_front: Whether its services are reached by the front alone.
    """

    name: str
    pod_security: PodSecurity
    training: bool = False
    reached_from: tuple[IngressPlan, ...] = ()
    has_front: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityClassPlan:
    """A Kubernetes PriorityClass.

    Attributes:
        name: Its name.
        value: Below 1,000,000,000; the rest is Kubernetes' own.
        preempts: Whether its pods may evict pods of lower priority.
    """

    name: str
    value: int
    preempts: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePlan:
    """A Volcano queue.

    Attributes:
        name: Its name.
        weight: Share of the cluster relative to the other queues, 1 to 65535.
        reclaimable: Whether other queues may take back what it uses beyond its share.
        capability: Most that its jobs may use, by resource name; empty means no cap.
    """

    name: str
    weight: int
    reclaimable: bool = True
    capability: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class VolcanoPlan:
    """The Volcano gang scheduler.

    Attributes:
        version: Its release, ``v1.15.1``.
        scheduler_image: Image of vc-scheduler, pinned.
        controllers_image: Image of vc-controller-manager, pinned.
        webhook_image: Image of vc-webhook-manager, pinned; it carries openssl and kubectl.
        queues: Queues of the cluster file, beside `default` and `root` which Volcano makes itself.
        enqueue: Whether the scheduler runs its `enqueue` action. It keeps a gang's pods from being
            created until existing nodes could hold them, so a cluster that scales from zero must
            not run it: nothing would ever scale.
        topology_aware: Whether HyperNodes are discovered from AWS's network-topology labels.
        topology_layers: Number of `topology.k8s.aws/network-node-layer-N` labels the nodes carry.
        accelerator_resources: Extended resources of the pools, which bin-packing weighs.
        scoring: How it looks for a pod's node.
        scale: What its programs get.
    """

    version: str
    scheduler_image: str
    controllers_image: str
    webhook_image: str
    queues: tuple[QueuePlan, ...]
    enqueue: bool
    topology_aware: bool
    topology_layers: int
    accelerator_resources: tuple[str, ...]
    scoring: NodeScoringPlan
    scale: VolcanoScale


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdPlan:
    """The etcd that TorchElastic workers meet at.

    Attributes:
        image: Image reference, pinned.
        namespace: Where it runs: the training namespace, so that the tutorial's short host name
            ``etcd-server`` resolves from a job's pods.
        replicas: 1 or 3 members.
        v2_api: Whether the v2 HTTP API is on, which torch's own etcd backends need. The v3 API,
            which ours speaks, always is.
        volume_gib: Size of each member's gp3 volume, in GiB.
        volume_provisioner: Driver that makes the volumes on the nodes it runs on.
        volume_key: ARN of their KMS key; None: the account's default key of EBS.
    """

    image: str
    namespace: str
    replicas: int
    v2_api: bool
    volume_gib: int
    volume_provisioner: str
    volume_key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePluginPlan:
    """One device plugin, or an exporter that runs beside it.

    Attributes:
        image: Image reference, pinned.
        instance_types: Values of `node.kubernetes.io/instance-type` that it runs on. Empty: it
            goes by `node_selector` alone.
        node_selector: Labels that its nodes carry.
        taint_keys: Keys of the taints on those nodes.
    """

    image: str
    instance_types: tuple[str, ...]
    node_selector: Mapping[str, str]
    taint_keys: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuronSchedulerExtensionPlan:
    """The scheduler that places pods which ask for a part of a node's Neuron devices.

    Attributes:
        extender_image: Image of the Neuron scheduler extender, pinned.
        scheduler_image: Image of kube-scheduler, pinned, of the cluster's own minor.
        scheduler_name: What such a pod puts into ``schedulerName``.
        scheduler_resources: What the scheduler gets.
    """

    extender_image: str
    scheduler_image: str
    scheduler_name: str
    scheduler_resources: ResourcesPlan
