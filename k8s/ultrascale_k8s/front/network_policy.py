"""Connections allowed to the proxies of the front and to their controller.

Their namespace refuses all others. The kubelet's probes need no rule.
"""

from collections.abc import Mapping

import cdk8s
from cdk8s_plus_27 import k8s as kube
from constructs import Construct

from ultrascale.plan.model import FrontPlan
from ultrascale.plan.names import FRONT_GATEWAY, FRONT_NAMESPACE
from ultrascale_k8s._pods import metadata


class FrontIngressChart(cdk8s.Chart):
    """Opens the proxies to clients, and their controller to the proxies.

    Clients are not told apart here: keys and tokens do that, and the load balancer comes from
    addresses that no selector names.
    """

    def __init__(self, scope: Construct, id: str, *, plan: FrontPlan) -> None:
        super().__init__(scope, id, disable_resource_name_hashes=True)
        _define(
            self,
            "proxies",
            plan.proxy_labels,
            kube.NetworkPolicyIngressRule(ports=[_port(plan.proxy_port)]),
        )
        _define(
            self,
            "controller",
            plan.controller_labels,
            kube.NetworkPolicyIngressRule(
                from_=[
                    kube.NetworkPolicyPeer(
                        pod_selector=kube.LabelSelector(match_labels=dict(plan.proxy_labels))
                    )
                ],
                ports=[_port(plan.configuration_port)],
            ),
        )


def _define(
    scope: Construct, name: str, pods: Mapping[str, str], rule: kube.NetworkPolicyIngressRule
) -> None:
    kube.KubeNetworkPolicy(
        scope,
        f"{name}-ingress",
        metadata=metadata(f"{name}-ingress", namespace=FRONT_NAMESPACE, component=FRONT_GATEWAY),
        spec=kube.NetworkPolicySpec(
            pod_selector=kube.LabelSelector(match_labels=dict(pods)),
            policy_types=["Ingress"],
            ingress=[rule],
        ),
    )


def _port(port: int) -> kube.NetworkPolicyPort:
    return kube.NetworkPolicyPort(port=kube.IntOrString.from_number(port), protocol="TCP")
