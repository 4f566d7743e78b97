"""Route from the front to a service, by the names of its models.

Sources:
    https://gateway-api.sigs.k8s.io/api-types/httproute/
    https://github.com/envoyproxy/gateway/tree/v1.9.0/examples/kubernetes
"""

from ultrascale.catalog.gateway_api import MATCHES_OF_A_RULE
from ultrascale.documents import Json
from ultrascale.jobs.pod_template import queued_metadata
from ultrascale.plan import names
from ultrascale.plan.model import FrontRoutePlan, JobPlan, ServingPlan


def route_object(plan: JobPlan, serving: ServingPlan, front: FrontRoutePlan) -> dict[str, Json]:
    """Return the HTTPRoute of a service: Envoy sends its requests to the pods that are ready."""
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {
            **queued_metadata(plan),
            # The front lists them.
            "annotations": {names.MODELS_ANNOTATION: " ".join(front.models)},
        },
        "spec": {
            "parentRefs": [{"name": front.gateway, "namespace": front.namespace}],
            "rules": [
                {
                    "matches": [
                        _match(model) for model in front.models[start:][:MATCHES_OF_A_RULE]
                    ],
                    "backendRefs": [{"name": plan.name, "port": serving.port}],
                }
                for start in range(0, len(front.models), MATCHES_OF_A_RULE)
            ],
        },
    }


def _match(model: str) -> dict[str, Json]:
    return {
        "path": {"type": "PathPrefix", "value": names.OPENAI_PATHS},
        "headers": [{"type": "Exact", "name": names.MODEL_HEADER, "value": model}],
    }
