"""Name resolution of pods: CoreDNS, and a cache on every node of a large cluster."""

from ultrascale import config
from ultrascale.catalog import eks, versions
from ultrascale.plan.model import DnsScale, NodeLocalDnsPlan, ScalePlan

# EKS's own configuration, with a longer time before a replica goes. A replica says that it is ready
# by ``ready``, and the add-on's readiness probe asks for it.
# Sources:
#     https://docs.aws.amazon.com/eks/latest/best-practices/scale-cluster-services.html
#     https://repost.aws/knowledge-center/eks-dns-failure
_COREFILE = """\
.:53 {{
    errors
    health {{
        lameduck {lameduck_seconds}s
    }}
    ready
    kubernetes {domain} in-addr.arpa ip6.arpa {{
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
    }}
    prometheus :9153
    forward . /etc/resolv.conf
    cache 30
    loop
    reload
    loadbalance
}}
"""


def plan_node_local_dns(cluster: config.Cluster, scale: ScalePlan) -> NodeLocalDnsPlan | None:
    """Return the cache of every node, if the file or the cluster's size asks for one."""
    stated = cluster.kubernetes.node_local_dns
    wanted = scale.dns.node_local if stated is None else stated
    if not wanted or not any(map(_asks_cache, cluster.pools)):
        return None
    return NodeLocalDnsPlan(
        image=versions.image("node-local-dns").reference,
        address=eks.NODE_LOCAL_DNS_ADDRESS,
        upstream=eks.cluster_dns_address(cluster.kubernetes.service_cidr),
        domain=eks.CLUSTER_DOMAIN,
    )


def name_servers(cluster: config.Cluster, pool: config.Pool, scale: ScalePlan) -> tuple[str, ...]:
    """Return the DNS servers of ``pool``'s pods in order; empty for EKS's default.

    CoreDNS comes second: while a node's cache starts or is replaced, pods get names late instead of
    never. The cache listens on an address of its own alone: under CoreDNS's, as upstream has it by
    default, it would need rules that it knows for iptables only.

    Source: https://github.com/kubernetes/dns/issues/682
    """
    cache = plan_node_local_dns(cluster, scale)
    return (cache.address, cache.upstream) if cache and _asks_cache(pool) else ()


def corefile(dns: DnsScale) -> str | None:
    """Return the configuration of CoreDNS; None for EKS's own."""
    if dns.lameduck_seconds is None:
        return None
    return _COREFILE.format(domain=eks.CLUSTER_DOMAIN, lameduck_seconds=dns.lameduck_seconds)


def _asks_cache(pool: config.Pool) -> bool:
    """Return whether we give the kubelets of ``pool`` the cache's address.

    EKS Auto Mode's nodes have a cache built in, and HyperPod's ask CoreDNS.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/auto-networking.html
    """
    return pool.facts.runs_pinned_image
