"""Settings that follow from the number of a cluster's nodes."""

from typing import Literal

from ultrascale.frozen import Frozen

MeasuredNodes = Literal["all", "sampled"]
"""Nodes that log and metric agents run on: every node, or system nodes and those with a label."""
ProxyMode = Literal["iptables", "nftables"]


class ResourcesPlan(Frozen):
    """Resource requests of a container, in Kubernetes' notation. Its CPU has no limit."""

    cpu: str  # CPU
    memory: str  # Memory
    memory_limit: str  # Memory beyond which it is killed


class KarpenterScale(Frozen):
    """Resources and features of each replica of Karpenter's controller."""

    vcpus: int  # CPU that it requests
    memory_gib: int  # Memory, in GiB
    client_qps: int  # Calls of the Kubernetes API in a second
    client_burst: int  # How many of them at once
    # Whether preferred affinities and spreads of pods count for nothing when it chooses nodes. The
    # scheduler goes by them all the same.
    ignores_preferences: bool
    hides_cluster_state: bool  # Whether it has no metrics of each node and each pod


class DnsScale(Frozen):
    """Settings of name resolution."""

    min_replicas: int  # Fewest replicas of CoreDNS
    max_replicas: int  # Most that it may ever have, whatever the nodes would make of it
    resources: ResourcesPlan | None  # What each replica gets; None: what EKS gives it
    # How long a replica that is told to stop goes on answering, in seconds; None: as EKS has it.
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

    nodes: int  # Most nodes that it is made for
    karpenter: KarpenterScale  # Karpenter; by the nodes that it may launch, not by all
    dns: DnsScale  # CoreDNS and the nodes' caches
    # How kube-proxy has the kernel forward Services; None: as EKS has it.
    proxy_mode: ProxyMode | None
    # What each container of the EBS CSI driver's controller gets; None: as EKS has it.
    ebs_csi: ResourcesPlan | None
    neuron_scheduler: ResourcesPlan  # What the scheduler of the Neuron extension gets
    instance_id_node_names: bool  # Whether Karpenter's nodes are named by their instance ids
    # Registries that images come from through a cache in the cluster's Region.
    pull_through: tuple[str, ...]
    cluster_autoscaler: bool  # Whether the Cluster Autoscaler may size node groups
    # Whether network policies select the pods of jobs, or name them as peers.
    policies_of_jobs: bool
    network_policies: bool  # Whether the VPC CNI enforces network policies
    measured_nodes: MeasuredNodes  # The nodes that CloudWatch's agent and Fluent Bit run on
    log_types: tuple[str, ...]  # Control-plane logs that are written where the file states none
    node_cleanup: bool  # Whether the VPC CNI of each node looks for interfaces that others left
    volumes_everywhere: bool  # Whether the EBS CSI driver runs on every node; else on system nodes
