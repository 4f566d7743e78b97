"""DNS cache on each node."""

import cdk8s
from cdk8s_plus_27 import k8s as kube
from constructs import Construct

from ultrascale.plan.model import NodeLocalDnsPlan
from ultrascale.plan.names import SYSTEM_NAMESPACE
from ultrascale_k8s._pods import (
    REVISIONS,
    SYSTEM_NODE_CRITICAL,
    labels,
    metadata,
    own_kubelet_affinity,
    resources,
    selector,
)
from ultrascale_k8s.objects import define_config_map

_NAME = "node-local-dns"
_METRICS_PORT = 9253
_HEALTH_PORT = 8080
# The program writes what it reads here to the other place, from which it takes it.
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
# Names of the cluster come and go with pods, so what is not there is remembered for 5 s alone.
_CLUSTER_CACHE = " {\n        success 9984 30\n        denial 9984 5\n    }"


class NodeLocalDnsChart(cdk8s.Chart):
    """Defines the DaemonSet that answers the names that pods of its node ask for.

    It listens on a link-local address, which the kubelets hand to their pods. Upstream's rules for
    iptables are off: they would keep DNS out of the kernel's table of connections, and kube-proxy
    may be of another mode. It has no Service: Prometheus finds its pods by their annotations.

    Source: https://kubernetes.io/docs/tasks/administer-cluster/nodelocaldns/
    Source: https://github.com/kubernetes/kubernetes/blob/master/cluster/addons/dns/nodelocaldns/nodelocaldns.yaml
    """

    def __init__(self, scope: Construct, id: str, *, plan: NodeLocalDnsPlan) -> None:
        super().__init__(scope, id, disable_resource_name_hashes=True)
        kube.KubeServiceAccount(
            self,
            "Account",
            metadata=metadata(_NAME, namespace=SYSTEM_NAMESPACE),
            automount_service_account_token=False,
        )
        config = define_config_map(
            self,
            "Configuration",
            name=_NAME,
            namespace=SYSTEM_NAMESPACE,
            component=_NAME,
            data={"Corefile.base": corefile(plan)},
        )
        tenth = kube.RollingUpdateDaemonSet(max_unavailable=kube.IntOrString.from_string("10%"))
        kube.KubeDaemonSet(
            self,
            "DaemonSet",
            metadata=metadata(_NAME, namespace=SYSTEM_NAMESPACE),
            spec=kube.DaemonSetSpec(
                revision_history_limit=REVISIONS,
                selector=selector(_NAME),
                update_strategy=kube.DaemonSetUpdateStrategy(
                    type="RollingUpdate", rolling_update=tenth
                ),
                template=kube.PodTemplateSpec(
                    metadata=kube.ObjectMeta(labels=labels(_NAME), annotations=_annotations()),
                    spec=_pod(plan, config),
                ),
            ),
        )


def corefile(plan: NodeLocalDnsPlan) -> str:
    """Return what it answers itself, what it asks CoreDNS and what the VPC's resolver."""
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


def _annotations() -> dict[str, str]:
    return {"prometheus.io/scrape": "true", "prometheus.io/port": str(_METRICS_PORT)}


def _pod(plan: NodeLocalDnsPlan, config: str) -> kube.PodSpec:
    return kube.PodSpec(
        service_account_name=_NAME,
        automount_service_account_token=False,
        enable_service_links=False,
        priority_class_name=SYSTEM_NODE_CRITICAL,
        host_network=True,
        # It is what the cluster's DNS would be.
        dns_policy="Default",
        affinity=own_kubelet_affinity(),
        # Every pod asks it, whatever the node's taints are.
        tolerations=[kube.Toleration(operator="Exists")],
        security_context=kube.PodSecurityContext(
            seccomp_profile=kube.SeccompProfile(type="RuntimeDefault")
        ),
        containers=[_container(plan)],
        volumes=[
            kube.Volume(name="config", config_map=kube.ConfigMapVolumeSource(name=config)),
            kube.Volume(name="run", empty_dir=kube.EmptyDirVolumeSource()),
        ],
    )


def _container(plan: NodeLocalDnsPlan) -> kube.Container:
    healthy = kube.HttpGetAction(
        host=plan.address, path="/health", port=kube.IntOrString.from_number(_HEALTH_PORT)
    )
    ports = (("dns", "UDP", 53), ("dns-tcp", "TCP", 53), ("metrics", "TCP", _METRICS_PORT))
    return kube.Container(
        name="node-cache",
        image=plan.image,
        args=[
            f"-localip={plan.address}",
            f"-basecorefile={_BASE}/Corefile.base",
            f"-conf={_RUN}/Corefile",
            "-setupiptables=false",
        ],
        ports=[
            kube.ContainerPort(name=name, protocol=protocol, container_port=port)
            for name, protocol, port in ports
        ],
        liveness_probe=kube.Probe(http_get=healthy, initial_delay_seconds=60, timeout_seconds=5),
        # A full cache of 10,000 names takes some 30 MB.
        # Source: https://kubernetes.io/docs/tasks/administer-cluster/nodelocaldns/#setting-memory-limits
        resources=resources(cpu="25m", memory="64Mi", memory_limit="256Mi"),
        # It makes an interface of its own, and listens below port 1024.
        security_context=kube.SecurityContext(
            allow_privilege_escalation=False,
            read_only_root_filesystem=True,
            capabilities=kube.Capabilities(drop=["ALL"], add=["NET_ADMIN", "NET_BIND_SERVICE"]),
        ),
        volume_mounts=[
            kube.VolumeMount(name="config", mount_path=_BASE, read_only=True),
            kube.VolumeMount(name="run", mount_path=_RUN),
        ],
    )
