"""DNS cache on each node."""

from ultrascale.documents import Json, JsonObject
from ultrascale.plan.model import NodeLocalDnsPlan
from ultrascale.plan.names import SYSTEM_NAMESPACE
from ultrascale_k8s._pods import (
    SYSTEM_NODE_CRITICAL,
    daemon_set,
    own_kubelet_affinity,
    resources,
    scraped,
)
from ultrascale_k8s.objects import config_map, manifest, name_of

_NAME = "node-local-dns"
_METRICS_PORT = 9253
_HEALTH_PORT = 8080
# The program reads its configuration here, and writes it to the place where it takes it from.
_BASE = "/etc/coredns"
_RUN = "/run/node-cache"
_COREFILE = """\
{zone}:53 {{
    errors
    cache{cache}
    reload
    loop
    bind {address}
    forward . {upstream}
    prometheus :{metrics_port}{health}
}}
"""
_FROM_CLUSTER = "{upstream} {{\n        force_tcp\n    }}"
# Names in the cluster come and go with pods, so a missing name is cached for only 5 s.
_CLUSTER_CACHE = " {\n        success 9984 30\n        denial 9984 5\n    }"


def node_local_dns_objects(plan: NodeLocalDnsPlan) -> list[JsonObject]:
    """Return the DaemonSet that answers the DNS queries of its node's pods.

    The cache listens on a link-local address, which kubelets give to their pods as DNS server.
    Upstream's rules for iptables are off: they would only keep DNS out of the kernel's connection
    table, and kube-proxy may use another mode. There is no Service: Prometheus finds the pods by
    their annotations.

    Source: https://kubernetes.io/docs/tasks/administer-cluster/nodelocaldns/ Source:
    https://github.com/kubernetes/kubernetes/blob/master/cluster/addons/dns/nodelocaldns/nodelocaldns.yaml
    """
    account = manifest(
        "ServiceAccount", _NAME, namespace=SYSTEM_NAMESPACE, automountServiceAccountToken=False
    )
    data = {"Corefile.base": corefile(plan)}
    config = config_map(_NAME, namespace=SYSTEM_NAMESPACE, component=_NAME, data=data)
    pod: JsonObject = {
        "serviceAccountName": _NAME,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "priorityClassName": SYSTEM_NODE_CRITICAL,
        "hostNetwork": True,
        # The cache replaces the cluster's DNS, so it does not ask it.
        "dnsPolicy": "Default",
        "affinity": own_kubelet_affinity(),
        # Tolerates all taints: every pod of a node uses the node's cache.
        "tolerations": [{"operator": "Exists"}],
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [_container(plan)],
        "volumes": [
            {"name": "config", "configMap": {"name": name_of(config)}},
            {"name": "run", "emptyDir": {}},
        ],
    }
    return [account, config, daemon_set(_NAME, pod, annotations=scraped(_METRICS_PORT))]


def corefile(plan: NodeLocalDnsPlan) -> str:
    """Return the cache's configuration, with the names for CoreDNS and for the VPC's resolver."""
    health = f"\n    health {plan.address}:{_HEALTH_PORT}"
    of_cluster = _FROM_CLUSTER.format(upstream=plan.upstream)
    zones = (
        (plan.domain, _CLUSTER_CACHE, of_cluster, health),
        ("in-addr.arpa", " 30", of_cluster, ""),
        ("ip6.arpa", " 30", of_cluster, ""),
        (".", " 30", "/etc/resolv.conf", ""),
    )
    return "".join(
        _COREFILE.format(
            zone=zone,
            cache=cache,
            address=plan.address,
            upstream=upstream,
            metrics_port=_METRICS_PORT,
            health=port,
        )
        for zone, cache, upstream, port in zones
    )


def _container(plan: NodeLocalDnsPlan) -> Json:
    healthy = {"host": plan.address, "path": "/health", "port": _HEALTH_PORT}
    ports = (("dns", "UDP", 53), ("dns-tcp", "TCP", 53), ("metrics", "TCP", _METRICS_PORT))
    return {
        "name": "node-cache",
        "image": plan.image,
        "args": [
            f"-localip={plan.address}",
            f"-basecorefile={_BASE}/Corefile.base",
            f"-conf={_RUN}/Corefile",
            "-setupiptables=false",
        ],
        "ports": [
            {"name": name, "protocol": protocol, "containerPort": port}
            for name, protocol, port in ports
        ],
        "livenessProbe": {"httpGet": healthy, "initialDelaySeconds": 60, "timeoutSeconds": 5},
        # A full cache of 10,000 names takes some 30 MB.
        # Source: https://kubernetes.io/docs/tasks/administer-cluster/nodelocaldns/#setting-memory-limits
        "resources": resources(cpu="25m", memory="64Mi", memory_limit="256Mi"),
        # The program makes a network interface, and listens below port 1024.
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN", "NET_BIND_SERVICE"]},
        },
        "volumeMounts": [
            {"name": "config", "mountPath": _BASE, "readOnly": True},
            {"name": "run", "mountPath": _RUN},
        ],
    }
