"""Connections allowed to the controllers of Kueue and JobSet.

Their namespaces refuse all others, and their charts bring no policies. The kubelet's probes need no
rule: a node always reaches its own pods.

Sources:
    https://kubernetes.io/docs/concepts/services-networking/network-policies/
    https://github.com/kubernetes-sigs/kueue/tree/v0.19.2/charts/kueue/templates
    https://github.com/kubernetes-sigs/jobset/tree/v0.12.0/charts/jobset/templates
"""

from collections.abc import Sequence

import cdk8s
from cdk8s_plus_27 import k8s as kube
from constructs import Construct

from ultrascale.plan.names import JOBSET_NAMESPACE, KUEUE_NAMESPACE
from ultrascale_k8s._pods import metadata, selector

_WEBHOOK, _METRICS = 9443, 8443
# The API of jobs that wait, which the API server passes requests on to. While it did not answer, no
# namespace could be deleted.
# Source: https://kubernetes.io/docs/tasks/extend-kubernetes/configure-aggregation-layer/
_VISIBILITY = 8082


class QueueingIngressChart(cdk8s.Chart):
    """Lets everything reach the ports that the two controllers serve.

    The API server calls from the control plane's network interfaces, which no selector names.
    """

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id, disable_resource_name_hashes=True)
        _define(self, "kueue", KUEUE_NAMESPACE, (_WEBHOOK, _METRICS, _VISIBILITY))
        _define(self, "jobset", JOBSET_NAMESPACE, (_WEBHOOK, _METRICS))


def _define(scope: Construct, program: str, namespace: str, ports: Sequence[int]) -> None:
    rule = kube.NetworkPolicyIngressRule(
        ports=[
            kube.NetworkPolicyPort(port=kube.IntOrString.from_number(port), protocol="TCP")
            for port in ports
        ],
    )
    kube.KubeNetworkPolicy(
        scope,
        f"{program}-ingress",
        metadata=metadata(f"{program}-ingress", namespace=namespace, component=program),
        spec=kube.NetworkPolicySpec(
            pod_selector=selector(program), policy_types=["Ingress"], ingress=[rule]
        ),
    )
