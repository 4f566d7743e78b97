"""Settings that follow from the number of a cluster's nodes."""

from dataclasses import dataclass
from typing import Literal

MeasuredNodes = Literal["all", "sampled"]
"""Nodes that log and metric agents run on: every node, or system nodes and those with a label."""
ProxyMode = Literal["iptables", "nftables"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourcesPlan:
    """Resource requests of a container, in Kubernetes' notation. Its CPU has no limit.

    Attributes:
        cpu: CPU.
        memory: Memory.
        memory_limit: Memory beyond which it is killed.
    """

    cpu: str
    memory: str
    memory_limit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KarpenterScale:
    """Resources and features of each replica of Karpenter's controller.

    Attributes:
        vcpus: CPU that it requests.
        memory_gib: Memory, in GiB.
        client_qps: Calls of the Kubernetes API in a second.
        client_burst: How many of them at once.
        ignores_preferences: Whether preferred affinities and spreads of pods count for nothing
            when it chooses nodes. The scheduler goes by them all the same.
        hides_cluster_state: Whether it has no metrics of each node and each pod.
    """

    vcpus: int
    memory_gib: int
    client_qps: int
    client_burst: int
    ignores_preferences: bool
    hides_cluster_state: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class VolcanoScale:
    """Resources and settings of Volcano's programs.

    Attributes:
        scheduler: Resources of the scheduler.
        nodes_scored_percent: Share of the nodes that the scheduler looks for a pod's node among,
            in percent; None leaves it to Volcano, which takes no less than 5.
        topology_candidates: Fewest nodes that it looks among in a group of the network, where it
            places gangs by topology.
        sync_seconds: Longest that the scheduler waits at its start until it has taken up every
            node, in seconds.
        log_level: Verbosity of the scheduler's log.
        controllers: Resources of the controllers.
        client_qps: Calls of the Kubernetes API that the controllers make in a second.
        client_burst: How many of them at once.
        workers: Jobs, and as many PodGroups, that the controllers work on at a time.
        webhooks: Resources of the webhooks' server.
        webhook_replicas: Pods of that server.
    """

    scheduler: ResourcesPlan
    nodes_scored_percent: int | None
    topology_candidates: int
    sync_seconds: int
    log_level: int
    controllers: ResourcesPlan
    client_qps: int
    client_burst: int
    workers: int
    webhooks: ResourcesPlan
    webhook_replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DnsScale:
    """Settings of name resolution.

    Attributes:
        min_replicas: Fewest replicas of CoreDNS.
        max_replicas: Most that it may ever have, whatever the nodes would make of it.
        resources: What each replica gets; None: what EKS gives it.
        lameduck_seconds: How long a replica that is told to stop goes on answering, in seconds;
            None: as EKS has it.
        node_local: Whether each node has a cache of its own.
    """

    min_replicas: int
    max_replicas: int
    resources: ResourcesPlan | None
    lameduck_seconds: int | None
    node_local: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLocalDnsPlan:
    """The cache of names on every node.

    Attributes:
        image: Image reference, pinned.
        address: Link-local IPv4 address that it listens on, and nothing else.
        upstream: Address of CoreDNS's Service, which it asks for names of the cluster.
        domain: Domain of the cluster's names.
    """

    image: str
    address: str
    upstream: str
    domain: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalePlan:
    """Settings for clusters of up to a given number of nodes.

    Attributes:
        nodes: Most nodes that it is made for.
        karpenter: Karpenter; by the nodes that it may launch, not by all.
        volcano: Volcano.
        dns: CoreDNS and the nodes' caches.
        proxy_mode: How kube-proxy has the kernel forward Services; None: as EKS has it.
        ebs_csi: What each container of the EBS CSI driver's controller gets; None: as EKS has it.
        neuron_scheduler: What the scheduler of the Neuron extension gets.
        instance_id_node_names: Whether Karpenter's nodes are named by their instance ids.
        pull_through: Registries that images come from through a cache in the cluster's Region.
        cluster_autoscaler: Whether the Cluster Autoscaler may size node groups.
        policies_of_jobs: Whether network policies select the pods of jobs, or name them as peers.
        network_policies: Whether the VPC CNI enforces network policies.
        measured_nodes: The nodes that CloudWatch's agent and Fluent Bit run on.
        log_types: Control-plane logs that are written where the file states none.
        node_cleanup: Whether the VPC CNI of each node looks for interfaces that others left.
        volumes_everywhere: Whether the EBS CSI driver runs on every node; else on system nodes.
    """

    nodes: int
    karpenter: KarpenterScale
    volcano: VolcanoScale
    dns: DnsScale
    proxy_mode: ProxyMode | None
    ebs_csi: ResourcesPlan | None
    neuron_scheduler: ResourcesPlan
    instance_id_node_names: bool
    pull_through: tuple[str, ...]
    cluster_autoscaler: bool
    policies_of_jobs: bool
    network_policies: bool
    measured_nodes: MeasuredNodes
    log_types: tuple[str, ...]
    node_cleanup: bool
    volumes_everywhere: bool
