"""ScaledObject of a service: KEDA reads its metrics, and an autoscaler sets its replicas.

KEDA sums a metric over the ready pods, and the autoscaler divides the sum by the target: that many
replicas. Of several metrics the one that asks for most replicas decides.

Sources:
    https://github.com/kedacore/keda/blob/v2.20.2/apis/keda/v1alpha1/scaledobject_types.go
    https://github.com/kedacore/keda/blob/v2.20.2/pkg/scalers/metrics_api_scaler.go
    https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/#configurable-scaling-behavior
"""

from collections.abc import Mapping

from ultrascale.documents import Json
from ultrascale.jobs.pod_template import queued_metadata
from ultrascale.plan.model import AutoscalePlan, JobPlan, ServingPlan, TriggerPlan

_API_VERSION = "keda.sh/v1alpha1"
_METRICS_PATH = "/metrics"
# Reads in a row that fail, one every 15 seconds, before the replicas stay as they are.
_FAILURES = 3
_PERIOD_SECONDS = 60
# In each period at most: twice as many, or some more of few.
_MORE_PERCENT, _MORE = 100, 4
_FEWER_PERCENT, _FEWER = 10, 1


def scaled_object(
    plan: JobPlan, serving: ServingPlan, autoscale: AutoscalePlan, pods: Mapping[str, Json]
) -> dict[str, Json]:
    """Return the ScaledObject of a service.

    Args:
        plan: The service.
        serving: Its address and probes.
        autoscale: Rules by which its replicas follow the load.
        pods: The object that has the replicas.
    """
    target = {key: pods[key] for key in ("apiVersion", "kind")}
    spec: dict[str, Json] = {
        "scaleTargetRef": {**target, "name": plan.name},
        "minReplicaCount": autoscale.least,
        "maxReplicaCount": autoscale.most,
        "advanced": {
            "horizontalPodAutoscalerConfig": {
                "behavior": {
                    "scaleUp": {
                        "stabilizationWindowSeconds": 0,
                        "selectPolicy": "Max",
                        "policies": [_policy("Percent", _MORE_PERCENT), _policy("Pods", _MORE)],
                    },
                    "scaleDown": {
                        "stabilizationWindowSeconds": autoscale.lull_seconds,
                        "selectPolicy": "Max",
                        "policies": [_policy("Percent", _FEWER_PERCENT), _policy("Pods", _FEWER)],
                    },
                }
            }
        },
        "triggers": [_trigger(plan, serving, trigger) for trigger in autoscale.triggers],
    }
    if autoscale.metric != "cpu":
        spec["fallback"] = {
            "failureThreshold": _FAILURES,
            "replicas": autoscale.least,
            "behavior": "currentReplicasIfHigher",
        }
    return {
        "apiVersion": _API_VERSION,
        "kind": "ScaledObject",
        "metadata": queued_metadata(plan),
        "spec": spec,
    }


def _trigger(plan: JobPlan, serving: ServingPlan, trigger: TriggerPlan) -> dict[str, Json]:
    if trigger.series is None:
        value: Json = {"value": f"{trigger.target:g}", "containerName": plan.container}
        return {"type": "cpu", "metricType": "Utilization", "metadata": value}
    # The port is the pods' own: KEDA takes their addresses from the Service, not its address.
    url = f"http://{plan.name}.{plan.namespace}.svc:{serving.port}{_METRICS_PATH}"
    return {
        "type": "metrics-api",
        "metricType": "AverageValue",
        "metadata": {
            "url": url,
            "format": "prometheus",
            "valueLocation": trigger.series,
            "aggregateFromKubeServiceEndpoints": "true",
            "aggregationType": "sum",
            "targetValue": f"{trigger.target:g}",
        },
    }


def _policy(type: str, value: int) -> dict[str, Json]:
    return {"type": type, "value": value, "periodSeconds": _PERIOD_SECONDS}
