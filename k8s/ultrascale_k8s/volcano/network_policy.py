"""Connections allowed to Volcano's programs, in a namespace that refuses all others.

The kubelet's probes need no rule: a node always reaches its own pods.

Source: https://kubernetes.io/docs/concepts/services-networking/network-policies/
"""

from cdk8s_plus_27 import k8s as kube
from constructs import Construct

from ultrascale.plan.names import VOLCANO_NAMESPACE
from ultrascale_k8s._pods import metadata, selector


def define_webhook_policy(scope: Construct, *, program: str, port: int) -> None:
    """Let everything reach ``port`` of ``program``.

    The API server calls from the control plane's network interfaces, which no selector names.
    """
    _define_policy(scope, program=program, port=port)


def define_metrics_policy(scope: Construct, *, program: str, port: int) -> None:
    """Let everything scrape ``port`` of ``program``.

    A selector of all pods would have EKS list each pod of the cluster for every node.
    """
    _define_policy(scope, program=program, port=port)


def _define_policy(scope: Construct, *, program: str, port: int) -> None:
    rule = kube.NetworkPolicyIngressRule(
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
