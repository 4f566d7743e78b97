"""Connections allowed to the controllers of services, and the budget of LeaderWorkerSet.

Their namespaces refuse all others. The kubelet's probes need no rule: a node always reaches its own
pods.

Sources:
    https://github.com/kedacore/charts/tree/1444d00/keda/templates
    https://github.com/kubernetes-sigs/lws/tree/v0.10.0/charts/lws/templates
"""

import cdk8s
from cdk8s_plus_27 import k8s as kube
from constructs import Construct

from ultrascale.plan import names
from ultrascale.plan.model import ServingControllersPlan
from ultrascale_k8s._pods import metadata, selector

_LWS = "lws"
_LWS_WEBHOOK = 9443


class ServingControllersChart(cdk8s.Chart):
    """Lets the API server reach the controllers, and KEDA's programs each other.

    The API server calls from the control plane's network interfaces, which no selector names. While
    KEDA's metrics do not answer, no namespace can be deleted.

    Source: https://kubernetes.io/docs/tasks/extend-kubernetes/configure-aggregation-layer/
    """

    def __init__(self, scope: Construct, id: str, *, plan: ServingControllersPlan) -> None:
        super().__init__(scope, id, disable_resource_name_hashes=True)
        if plan.keda is not None:
            metrics_server = kube.NetworkPolicyPeer(pod_selector=_app(names.KEDA_METRICS_SERVER))
            _keda(self, names.KEDA_OPERATOR, names.KEDA_OPERATOR_PORT, source=metrics_server)
            _keda(self, names.KEDA_METRICS_SERVER, names.KEDA_METRICS_PORT)
            _keda(self, names.KEDA_WEBHOOKS, names.KEDA_WEBHOOK_PORT)
        if plan.leader_worker_set is not None:
            _policy(self, _LWS, names.LWS_NAMESPACE, selector(_LWS), _LWS_WEBHOOK)
            # The chart has none. Without the controller's webhooks no pod of a replica starts.
            kube.KubePodDisruptionBudget(
                self,
                "lws-budget",
                metadata=metadata(_LWS, namespace=names.LWS_NAMESPACE),
                spec=kube.PodDisruptionBudgetSpec(
                    min_available=kube.IntOrString.from_number(1),
                    selector=selector(_LWS),
                    unhealthy_pod_eviction_policy="AlwaysAllow",
                ),
            )


def _keda(
    scope: Construct, app: str, port: int, *, source: kube.NetworkPolicyPeer | None = None
) -> None:
    _policy(scope, app, names.KEDA_NAMESPACE, _app(app), port, source)


def _policy(
    scope: Construct,
    program: str,
    namespace: str,
    pods: kube.LabelSelector,
    port: int,
    source: kube.NetworkPolicyPeer | None = None,
) -> None:
    rule = kube.NetworkPolicyIngressRule(
        from_=None if source is None else [source],
        ports=[kube.NetworkPolicyPort(port=kube.IntOrString.from_number(port), protocol="TCP")],
    )
    kube.KubeNetworkPolicy(
        scope,
        f"{program}-ingress",
        metadata=metadata(f"{program}-ingress", namespace=namespace, component=program),
        spec=kube.NetworkPolicySpec(pod_selector=pods, policy_types=["Ingress"], ingress=[rule]),
    )


def _app(name: str) -> kube.LabelSelector:
    return kube.LabelSelector(match_labels={names.KEDA_APP_LABEL: name})
