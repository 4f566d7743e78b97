"""The values of Karpenter's chart."""

from ultrascale.plan import names
from ultrascale.plan.model import KarpenterPlan


def controller_values(plan: KarpenterPlan, *, cluster_name: str) -> dict[str, object]:
    """Return the values of the chart `karpenter`.

    The chart's own affinity stays: never on a node that Karpenter launched, one replica a node.

    Source: https://github.com/aws/karpenter-provider-aws/blob/v1.14.1/charts/karpenter/values.yaml
    """
    return {
        "replicas": plan.replicas,
        "serviceAccount": {"name": names.KARPENTER_ACCOUNT},
        "nodeSelector": {names.ROLE_LABEL: names.SYSTEM_ROLE},
        "topologySpreadConstraints": [_zone_spread()],
        "controller": {
            "env": [
                {"name": "KUBE_CLIENT_QPS", "value": str(plan.client_qps)},
                {"name": "KUBE_CLIENT_BURST", "value": str(plan.client_burst)},
            ],
            # No limit of CPU: a throttled controller is late for every interruption. How much it
            # does at a time the chart derives from the request.
            "resources": {
                "requests": {"cpu": plan.cpu, "memory": plan.memory},
                "limits": {"memory": plan.memory},
            },
        },
        "settings": {
            "clusterName": cluster_name,
            "interruptionQueue": plan.interruption_queue,
            "batchIdleDuration": plan.batch_idle_duration,
            "batchMaxDuration": plan.batch_max_duration,
            "preferencePolicy": "Ignore" if plan.ignores_preferences else "Respect",
            "disableClusterStateObservability": plan.hides_cluster_state,
            # Prices and IAM have no endpoint in the VPC; the NAT gateways lead there.
            "isolatedVPC": False,
            "featureGates": {_camel(gate): on for gate, on in plan.feature_gates.items()},
        },
    }


def _zone_spread() -> dict[str, object]:
    """Prefer two zones, and yet run both replicas where one zone has lost its system nodes.

    The chart would rather leave one pending.
    """
    return {
        "maxSkew": 1,
        "topologyKey": names.ZONE_LABEL,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "karpenter"}},
    }


def _camel(gate: str) -> str:
    return gate[0].lower() + gate[1:]
