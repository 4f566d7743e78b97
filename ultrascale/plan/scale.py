"""The table of settings that follow from the number of a cluster's nodes.

AWS and Kubernetes state few of these sizes: Karpenter's first row, CoreDNS's rule and its plugin's
memory for each thousand pods and Services. The rest is our estimate, from measurements of
schedulers and API servers on 1,000 to 100,000 simulated nodes; a comment says where it is more than
that. Up to 1,000 nodes, where the defaults of the programs were made, they stay.

Sources:
    https://karpenter.sh/docs/getting-started/getting-started-with-karpenter/
    https://docs.aws.amazon.com/eks/latest/userguide/coredns-autoscaling.html
    https://github.com/coredns/deployment/blob/master/kubernetes/Scaling_CoreDNS.md
    https://docs.aws.amazon.com/eks/latest/best-practices/scale-cluster-services.html
"""

from collections.abc import Sequence

from msgspec.structs import replace

from ultrascale import config
from ultrascale.catalog import eks, karpenter, regions, registries
from ultrascale.catalog import scale as limits
from ultrascale.plan.model import (
    DnsScale,
    KarpenterScale,
    ResourcesPlan,
    ScalePlan,
)


def _resources(cpu: str, memory: str, memory_limit: str) -> ResourcesPlan:
    return ResourcesPlan(cpu=cpu, memory=memory, memory_limit=memory_limit)


_200 = ScalePlan(
    nodes=200,
    karpenter=KarpenterScale(
        vcpus=1,
        memory_gib=1,
        client_qps=karpenter.CLIENT_QPS,
        client_burst=karpenter.CLIENT_BURST,
        ignores_preferences=False,
        hides_cluster_state=False,
    ),
    dns=DnsScale(
        min_replicas=2, max_replicas=100, resources=None, lameduck_seconds=None, node_local=False
    ),
    proxy_mode=None,
    ebs_csi=None,
    # It caches every node and pod: 230 MiB were measured at 5,000 nodes, 530 MiB at 20,000.
    neuron_scheduler=_resources("100m", "256Mi", "2Gi"),
    instance_id_node_names=False,
    pull_through=(),
    cluster_autoscaler=True,
    policies_of_jobs=True,
    network_policies=True,
    measured_nodes="all",
    log_types=eks.CONTROL_PLANE_LOG_TYPES,
    node_cleanup=True,
    volumes_everywhere=True,
)
_1_000 = replace(_200, nodes=1_000, karpenter=replace(_200.karpenter, vcpus=2, memory_gib=4))
# From here on every node asks a cache of its own first, as EKS's guide to scale advises, and
# CoreDNS scales only for the queries that the caches leave. An ending replica answers as long as
# the guide advises, because others may still ask it.
_5_000 = replace(
    _1_000,
    nodes=5_000,
    karpenter=replace(_1_000.karpenter, vcpus=4, memory_gib=16),
    dns=DnsScale(
        min_replicas=4,
        max_replicas=100,
        resources=_resources("100m", "128Mi", "512Mi"),
        lameduck_seconds=30,
        node_local=True,
    ),
    # The provisioner beside the driver follows every node; 256 MiB are its limit otherwise.
    ebs_csi=_resources("100m", "256Mi", "1Gi"),
    # Without a token, public registries answer so many nodes at once with 429.
    pull_through=tuple(registries.ANONYMOUS),
    # Upstream has tested it to the row below, and nothing larger.
    cluster_autoscaler=_1_000.nodes < limits.AUTOSCALED_NODES,
    # A job has at least a pod for each node, and EKS splits a policy's pods by so many.
    policies_of_jobs=_1_000.nodes < limits.PODS_OF_A_POLICY,
)
# kube-proxy's nftables mode looks Services up in time that does not grow with their number, and
# applies what has changed alone. The mode needs Linux 5.13, which our AMIs are past. AWS has
# documented no mode of its own choice: the add-on takes it, and the VPC CNI was tested with it.
# Sources:
#     https://kubernetes.io/blog/2025/02/28/nftables-kube-proxy/
#     https://github.com/aws/containers-roadmap/issues/2313
#     https://github.com/aws/amazon-vpc-cni-k8s/issues/3226
_20_000 = replace(
    _5_000,
    nodes=20_000,
    karpenter=KarpenterScale(
        vcpus=8,
        memory_gib=32,
        client_qps=500,
        client_burst=750,
        # Each preference of a pod is one more simulation of the whole cluster.
        ignores_preferences=True,
        # A series for each node and pod is more than Prometheus takes from one target.
        hides_cluster_state=True,
    ),
    dns=replace(
        _5_000.dns,
        min_replicas=10,
        max_replicas=150,
        resources=_resources("500m", "512Mi", "2Gi"),
    ),
    proxy_mode="nftables",
    ebs_csi=_resources("200m", "512Mi", "2Gi"),
    neuron_scheduler=_resources("1", "1Gi", "4Gi"),
    # Every node's agent watches every policy's pods, and rewrites its maps as one of them changes.
    network_policies=False,
    # Each agent polls the API server, and all of them share one account's quota of log calls.
    measured_nodes="sampled",
    # The audit log has a line for each request: every lease and status of every node.
    log_types=("api", "authenticator"),
    # Each node would ask EC2 each hour for all interfaces of the cluster, page by page.
    node_cleanup=False,
    # A job's scratch is local NVMe, and its data is in Lustre or S3.
    volumes_everywhere=False,
)
_100_000 = replace(
    _20_000,
    nodes=100_000,
    karpenter=replace(
        _20_000.karpenter,
        vcpus=16,
        memory_gib=64,
        # AWS had Karpenter launch 2,000 nodes a minute, each of about ten writes.
        # Source: https://aws.amazon.com/blogs/containers/under-the-hood-amazon-eks-ultra-scale-clusters/
        client_qps=1_000,
        client_burst=1_500,
    ),
    dns=replace(
        _20_000.dns,
        min_replicas=20,
        max_replicas=300,
        resources=_resources("1", "1Gi", "4Gi"),
    ),
    ebs_csi=_resources("500m", "1Gi", "4Gi"),
    neuron_scheduler=_resources("2", "3Gi", "8Gi"),
    # Each node asks EC2 for its own private DNS name when it starts otherwise: 33 calls a second
    # at 2,000 nodes a minute, where an account has 20.
    # Source: https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html
    instance_id_node_names=True,
)

ROWS = (_200, _1_000, _5_000, _20_000, _100_000)
"""Rows for each size of clusters, the smallest first. The last is also for larger ones."""


def scale_for(nodes: int) -> ScalePlan:
    """Return the row for ``nodes`` nodes."""
    return next((row for row in ROWS if nodes <= row.nodes), ROWS[-1])


def plan_scale(cluster: config.Cluster) -> ScalePlan:
    """Return the settings for ``cluster`` at its full size.

    The file wins over the table. Karpenter's size follows from the nodes that it may launch.
    """
    row = scale_for(_most_nodes(cluster.pools))
    own = [pool for pool in cluster.pools if pool.is_karpenter]
    named_by_id = cluster.kubernetes.instance_id_node_names
    stated = cluster.images.pull_through
    # No page says whether ECR's caches exist in other partitions.
    cached = regions.lookup_region(cluster.region).partition == "aws"
    # HyperPod's own AMI, whose kernel no page states, runs kube-proxy as well.
    unknown_kernel = not all(pool.facts.states_kernel for pool in cluster.pools)
    return replace(
        row,
        karpenter=_karpenter(cluster, own),
        proxy_mode=None if unknown_kernel else row.proxy_mode,
        instance_id_node_names=bool(own)
        and (row.instance_id_node_names if named_by_id is None else named_by_id),
        pull_through=(row.pull_through if cached else ())
        if stated is None
        else tuple(map(str, stated)),
    )


def _karpenter(cluster: config.Cluster, own: Sequence[config.Pool]) -> KarpenterScale:
    scale = karpenter_scale(_most_nodes(own), cluster.karpenter)
    # A job of one pod is left to the scheduler with the order of its tiers as a preference.
    ordered = any(job.prefer for job in cluster.jobs.values())
    return replace(scale, ignores_preferences=scale.ignores_preferences and not ordered)


def karpenter_scale(nodes: int, stated: config.Karpenter | None) -> KarpenterScale:
    """Return the settings of Karpenter's controller for ``nodes`` launched nodes.

    Args:
        nodes: Most nodes that it may launch.
        stated: The file's section.
    """
    scale = scale_for(nodes).karpenter
    if stated is None:
        return scale
    return replace(
        scale,
        vcpus=stated.vcpus or scale.vcpus,
        memory_gib=stated.memory_gib or scale.memory_gib,
    )


def _most_nodes(pools: Sequence[config.Pool]) -> int:
    return sum(pool.nodes.highest * pool.shards for pool in pools)
