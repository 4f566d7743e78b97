"""Connections allowed to Volcano's programs, in a namespace that refuses all others.

The kubelet's probes need no rule: a node always reaches its own pods.

Source: https://kubernetes.io/docs/concepts/services-networking/network-policies/
"""

from collections.abc import Sequence

from cdk8s_plus_27 import k8s as kube
from constructs import Construct

from ultrascale.plan.names import VOLCANO_NAMESPACE
from ultrascale_k8s._pods import metadata, selector


def define_webhook_policy(scope: Construct, *, program: str, port: int) -> None:
    """Let everything reach ``port`` of ``program``.

    The API server calls from the control plane's network interfaces, which no selector names.
    """
    _define_policy(scope, program=program, port=port, sources=None)


def define_metrics_policy(scope: Construct, *, program: str, port: int) -> None:
    """Let the pods of the cluster scrape ``port`` of ``program``."""
    everywhere = kube.NetworkPolicyPeer(namespace_selector=kube.LabelSelector())
    _define_policy(scope, program=program, port=port, sources=[everywhere])


def _define_policy(
    scope: Construct, *, program: str, port: int, sources: Sequence[kube.NetworkPolicyPeer] | None
) -> None:
    rule = kube.NetworkPolicyIngressRule(
        from_=sources,
        ports=[
            kube.NetworkPolicyPort(port=kube.IntOrString.from_number(port), protocol="TCP"),
        ],
    )
    kube.KubeNetworkPolicy(
        scope,
        f"{program}-ingress",
        metadata=metadata(f"{program}-ingress", namespace=VOLCANO_NAMESPACE, component=program),
        spec=kube.NetworkPolicySpec(
            pod_selector=selector(program), policy_types=["Ingress"], ingress=[rule]
        ),
    )
