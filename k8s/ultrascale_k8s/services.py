"""Connections that controllers of services accept, and LeaderWorkerSet's disruption budget.

The controllers' namespaces refuse all other connections.

Sources:
    https://github.com/kedacore/charts/tree/1444d00/keda/templates
    https://github.com/kubernetes-sigs/lws/tree/v0.10.0/charts/lws/templates
"""

from collections.abc import Iterator, Mapping, Sequence

from ultrascale.documents import Json, JsonObject
from ultrascale.parts.services import keda
from ultrascale.parts.services.model import Plan
from ultrascale.plan import names
from ultrascale_k8s._platform_chart import PlatformChart
from ultrascale_k8s._pods import selector
from ultrascale_k8s.namespaces import program_policy
from ultrascale_k8s.objects import manifest

_LWS = "lws"
_LWS_WEBHOOK = 9443


def charts(plan: Plan) -> Mapping[str, Sequence[PlatformChart]]:
    """Return the chart for the controllers of services, by the layer whose stack applies it."""
    # Even after services have left the file, Helm's charts stay, and their webhooks must be
    # reachable.
    chart = PlatformChart(name="serving-controllers", published=[*_objects(plan)], retained=True)
    return {"platform": [chart]}


def _objects(plan: Plan) -> Iterator[JsonObject]:
    """Yield policies: the API server reaches the controllers, and KEDA's programs each other.

    While KEDA's metrics do not answer, no namespace can be deleted.

    Source: https://kubernetes.io/docs/tasks/extend-kubernetes/configure-aggregation-layer/
    """
    if plan.keda is not None:
        metrics_server: Json = {"podSelector": _app_selector(keda.METRICS_SERVER)}
        for program, port, sources in (
            (keda.OPERATOR, keda.OPERATOR_PORT, [metrics_server]),
            (keda.METRICS_SERVER, keda.METRICS_PORT, []),
            (keda.WEBHOOKS, keda.WEBHOOK_PORT, []),
        ):
            yield program_policy(
                program, keda.NAMESPACE, [port], pods=_app_selector(program), sources=sources
            )
    if plan.leader_worker_set is not None:
        yield program_policy(_LWS, names.LWS_NAMESPACE, [_LWS_WEBHOOK])
        # The chart has no budget. Without the controller's webhooks no pod of a replica starts.
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


def _app_selector(name: str) -> JsonObject:
    return {"matchLabels": {keda.APP_LABEL: name}}
