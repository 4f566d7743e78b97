"""A cache of names on every node: a pod that finds no names finds nothing."""

import re
from typing import Any, cast

import pytest

from tests.support.applied import applied
from tests.support.kubernetes_schemas import findings
from tests.support.plugin_placement import KEEPS_OFF, node_terms
from tests.support.pools import HYPERPOD_POOL, SYSTEM_POOL, make_cluster, pool_document
from ultrascale import config
from ultrascale.catalog import versions
from ultrascale.plan.cluster import assemble
from ultrascale.plan.model import NodeLocalDnsPlan
from ultrascale.plan.network.dns import corefile as coredns_corefile
from ultrascale.plan.network.dns import name_servers, plan_node_local_dns
from ultrascale.plan.scale import ROWS, plan_scale
from ultrascale_constructs.launch_template import node_config
from ultrascale_k8s.node_local_dns import corefile, node_local_dns_objects
from ultrascale_k8s.node_pools import ec2_node_class_spec

PLAN = NodeLocalDnsPlan(
    image=versions.image("node-local-dns").reference,
    address="169.254.20.10",
    upstream="172.20.0.10",
    domain="cluster.local",
)
NETWORK = {
    "vpc_cidr": "10.0.0.0/16",
    "pod_cidrs": {"count": 31, "from": "100.64.0.0/10"},
    "zones": ["us-west-2a", "us-west-2b", "us-west-2c"],
}
LARGE = pool_document(provisioner="karpenter", nodes={"max": 1_500})
ZONES = re.compile(r"^(\S+):53 \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)


def large_cluster(*pools: dict[str, Any], **changes: Any) -> config.Cluster:
    document = {
        "network": NETWORK,
        "karpenter": {"version": "1.15.2"},
        "pools": [SYSTEM_POOL, LARGE, *pools],
    }
    return make_cluster(**document | changes)


@pytest.fixture(scope="module")
def objects() -> list[dict[str, Any]]:
    return applied(node_local_dns_objects(PLAN))


@pytest.fixture(scope="module")
def pod(objects: list[dict[str, Any]]) -> dict[str, Any]:
    (daemon_set,) = (each for each in objects if each["kind"] == "DaemonSet")
    return daemon_set["spec"]["template"]["spec"]


def test_the_api_server_takes_it(objects: list[dict[str, Any]]) -> None:
    assert findings(objects, root=("node-cache",)) == []


def test_names_of_the_cluster_come_from_coredns_and_others_from_the_resolver_of_the_node(
    pod: dict[str, Any],
) -> None:
    """A loop answers nobody, and names of the cluster are known to CoreDNS alone."""
    zones = dict(ZONES.findall(corefile(PLAN)))
    (container,) = pod["containers"]

    assert zones.keys() == {"cluster.local", "in-addr.arpa", "ip6.arpa", "."}
    for zone in ("cluster.local", "in-addr.arpa", "ip6.arpa"):
        assert "forward . 172.20.0.10 {\n        force_tcp\n    }" in zones[zone]
    assert "forward . /etc/resolv.conf" in zones["."]
    # Else that file would name the cache itself.
    assert pod["dnsPolicy"] == "Default"
    # It listens where nothing else does.
    assert all("bind 169.254.20.10\n" in body for body in zones.values())
    assert "-localip=169.254.20.10" in container["args"]
    assert PLAN.upstream not in str(container["args"])
    # A name that is not there yet is asked for again soon.
    assert "denial 9984 5" in zones["cluster.local"]


def test_no_taint_keeps_it_off_and_kubelets_find_out_when_it_no_longer_answers(
    pod: dict[str, Any],
) -> None:
    (container,) = pod["containers"]
    mounts = {m["mountPath"]: m.get("readOnly", False) for m in container["volumeMounts"]}

    assert pod["tolerations"] == [{"operator": "Exists"}]
    # Nodes with kubelets of others are left alone.
    assert node_terms(pod) == KEEPS_OFF
    # It sets no rules of iptables, and reads what it writes.
    assert {*container["args"]} >= {
        "-setupiptables=false",
        "-basecorefile=/etc/coredns/Corefile.base",
        "-conf=/run/node-cache/Corefile",
    }
    assert container["securityContext"]["capabilities"] == {
        "drop": ["ALL"],
        "add": ["NET_ADMIN", "NET_BIND_SERVICE"],
    }
    assert mounts == {"/etc/coredns": True, "/run/node-cache": False}
    assert container["livenessProbe"]["httpGet"]["host"] == "169.254.20.10"
    assert "health 169.254.20.10:8080" in corefile(PLAN)


class TestPlan:
    def test_coredns_is_asked_where_the_service_range_has_it_and_small_clusters_have_no_cache(
        self,
    ) -> None:
        small = make_cluster()
        cluster = large_cluster(kubernetes={"service_cidr": "10.100.4.0/22"})
        plan = plan_node_local_dns(cluster, plan_scale(cluster))

        assert plan is not None
        assert plan.upstream == "10.100.4.10"
        assert plan_node_local_dns(small, plan_scale(small)) is None
        assert name_servers(small, small.pools[0], plan_scale(small)) == ()

    def test_pods_have_coredns_to_fall_back_on_and_nodes_without_a_cache_are_not_sent_to_one(
        self,
    ) -> None:
        cluster = large_cluster(HYPERPOD_POOL)
        *ours, theirs = (name_servers(cluster, pool, plan_scale(cluster)) for pool in cluster.pools)

        assert ours == [("169.254.20.10", "172.20.0.10")] * 2
        assert theirs == ()

    def test_every_kubelet_of_ours_is_told(self) -> None:
        plan = assemble(large_cluster())
        told = {"clusterDNS": ["169.254.20.10", "172.20.0.10"]}

        (group,), (node_class,) = plan.system_pools, plan.nodes.classes
        spec = cast("dict[str, Any]", node_config(group)["spec"])
        assert spec["kubelet"]["config"] == {"maxPods": group.max_pods, **told}
        kubelet = cast("dict[str, Any]", ec2_node_class_spec(node_class)["kubelet"])
        assert kubelet == {"maxPods": node_class.max_pods, **told}


def test_coredns_answers_a_while_after_it_goes_and_keeps_eks_s_configuration_when_small() -> None:
    text = coredns_corefile(ROWS[-1].dns)

    assert text is not None
    assert "lameduck 30s" in text
    assert "\n    ready\n" in text
    assert text.count("{") == text.count("}")
    assert coredns_corefile(ROWS[0].dns) is None
