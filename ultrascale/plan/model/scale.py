"""Settings that follow from the number of a cluster's nodes."""

from typing import Literal

from ultrascale.frozen import Frozen

MeasuredNodes = Literal["all", "sampled"]
"""Nodes of log and metric agents: every node, or system nodes and those with a label."""
ProxyMode = Literal["iptables", "nftables"]


class ResourcesPlan(Frozen):
    """Resource requests of a container, in Kubernetes' notation. Its CPU has no limit."""

    cpu: str  # CPU
    memory: str  # Memory
    memory_limit: str  # Limit of memory, beyond which it is killed


class KarpenterScale(Frozen):
    """Resources and features of each replica of Karpenter's controller."""

    vcpus: int  # CPU that it requests
    memory_gib: int  # Memory, in GiB
    client_qps: int  # Calls of the Kubernetes API in a second
    client_burst: int  # Calls at once
    # Whether it ignores preferred affinities and spreads of pods when it chooses nodes. The
    # scheduler keeps them all the same.
    ignores_preferences: bool
    hides_cluster_state: bool  # Whether it has no metrics of each node and each pod


class DnsScale(Frozen):
    """Settings of name resolution."""

    min_replicas: int  # Fewest replicas of CoreDNS
    max_replicas: int  # Most replicas of CoreDNS, for any number of nodes
    resources: ResourcesPlan | None  # Resources of each replica; None: EKS's own
    # Time for which an ending replica goes on answering, in seconds; None: EKS's own.
    lameduck_seconds: int | None
    node_local: bool  # Whether each node has a cache of its own


class NodeLocalDnsPlan(Frozen):
    """The cache of names on every node."""

    image: str  # Image reference, pinned
    address: str  # Link-local IPv4 address that it listens on, and nothing else
    upstream: str  # Address of CoreDNS's Service, which it asks for names of the cluster
    domain: str  # Domain of the cluster's names


class ScalePlan(Frozen):
    """Settings for clusters of up to a given number of nodes."""

    nodes: int  # Most nodes of such a cluster
    karpenter: KarpenterScale  # Karpenter; by the nodes that it may launch, not by all
    dns: DnsScale  # CoreDNS and the nodes' caches
    # Mode in which kube-proxy forwards Services; None: EKS's own.
    proxy_mode: ProxyMode | None
    # Resources of each container of the EBS CSI driver's controller; None: EKS's own.
    ebs_csi: ResourcesPlan | None
    neuron_scheduler: ResourcesPlan  # Resources of the Neuron extension's scheduler
    instance_id_node_names: bool  # Whether Karpenter's nodes are named by their instance ids
    # Registries with a cache in the cluster's Region.
    pull_through: tuple[str, ...]
    cluster_autoscaler: bool  # Whether the Cluster Autoscaler may size node groups
    # Whether network policies select the pods of jobs, or name them as peers.
    policies_of_jobs: bool
    network_policies: bool  # Whether the VPC CNI enforces network policies
    measured_nodes: MeasuredNodes  # Nodes of CloudWatch's agent and Fluent Bit
    log_types: tuple[str, ...]  # Control-plane logs that are written where the file states none
    node_cleanup: bool  # Whether the VPC CNI of each node deletes interfaces of ended nodes
    volumes_everywhere: bool  # Whether the EBS CSI driver runs on every node; else on system nodes
