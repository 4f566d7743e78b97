"""Connections allowed to the controllers of services, and the budget of LeaderWorkerSet.

Their namespaces refuse all others.

Sources:
    https://github.com/kedacore/charts/tree/1444d00/keda/templates
    https://github.com/kubernetes-sigs/lws/tree/v0.10.0/charts/lws/templates
"""

from collections.abc import Iterator

from ultrascale.documents import Json, JsonObject
from ultrascale.plan import names
from ultrascale.plan.model import ServingControllersPlan
from ultrascale_k8s._pods import selector
from ultrascale_k8s.network_policy import program_policy
from ultrascale_k8s.objects import manifest

_LWS = "lws"
_LWS_WEBHOOK = 9443


def serving_controller_objects(plan: ServingControllersPlan) -> Iterator[JsonObject]:
    """Let the API server reach the controllers, and KEDA's programs each other.

    While KEDA's metrics do not answer, no namespace can be deleted.

    Source: https://kubernetes.io/docs/tasks/extend-kubernetes/configure-aggregation-layer/
    """
    if plan.keda is not None:
        metrics_server: Json = {"podSelector": _app(names.KEDA_METRICS_SERVER)}
        for program, port, sources in (
            (names.KEDA_OPERATOR, names.KEDA_OPERATOR_PORT, [metrics_server]),
            (names.KEDA_METRICS_SERVER, names.KEDA_METRICS_PORT, []),
            (names.KEDA_WEBHOOKS, names.KEDA_WEBHOOK_PORT, []),
        ):
            yield program_policy(
                program, names.KEDA_NAMESPACE, [port], pods=_app(program), sources=sources
            )
    if plan.leader_worker_set is not None:
        yield program_policy(_LWS, names.LWS_NAMESPACE, [_LWS_WEBHOOK])
        # The chart has none. Without the controller's webhooks no pod of a replica starts.
        yield manifest(
            "PodDisruptionBudget",
            _LWS,
            namespace=names.LWS_NAMESPACE,
            spec={
                "minAvailable": 1,
                "selector": selector(_LWS),
                "unhealthyPodEvictionPolicy": "AlwaysAllow",
            },
        )


def _app(name: str) -> JsonObject:
    return {"matchLabels": {names.KEDA_APP_LABEL: name}}
