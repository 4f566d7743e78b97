"""KEDA and LeaderWorkerSet, the controllers of services.

Sources:
    https://github.com/kedacore/charts/blob/1444d00/keda/values.yaml
    https://github.com/kubernetes-sigs/lws/blob/v0.10.0/charts/lws/values.yaml
"""

from collections.abc import Mapping, Sequence

from ultrascale.parts.services import keda
from ultrascale.parts.services.model import KedaPlan, LeaderWorkerSetPlan, Plan
from ultrascale.plan import names
from ultrascale.plan.stacks import LayerId, StackName
from ultrascale_constructs.platform import (
    PRIORITY,
    SYSTEM_NODES,
    SYSTEM_TOLERATIONS,
    ManifestApplier,
    image_values,
    kept_apart,
    resources_of,
    spread_over,
)
from ultrascale_stacks.cluster import Builder, ClusterStacks, LayerStack

# KEDA's programs, by their names in each part of the values.
_OPERATOR, _METRICS, _WEBHOOKS = "operator", "metricServer", "webhooks"
_SPREAD = {
    _OPERATOR: keda.OPERATOR,
    "metricsServer": keda.METRICS_SERVER,
    _WEBHOOKS: keda.WEBHOOKS,
}


class ServicesStack(LayerStack):
    """Stack that installs the charts of KEDA and LeaderWorkerSet.

    Both charts stay when the stack is deleted: replicas of several nodes and scaling rules would be
    deleted with their CRDs, or wait for finalizers that no controller removes.
    """

    def __init__(self, cluster: ClusterStacks, name: StackName) -> None:
        super().__init__(cluster, name)
        serving = cluster.part(Plan)
        charts = ManifestApplier(self, "Charts", cluster=cluster.context)
        if serving.leader_worker_set is not None:
            charts.install_chart(
                "LeaderWorkerSet",
                repository=serving.leader_worker_set.chart,
                version=serving.leader_worker_set.version,
                namespace=names.LWS_NAMESPACE,
                values=leader_worker_set_values(serving.leader_worker_set),
                retain=True,
                # Its webhooks check every pod of a replica, and Kueue looks for the kind
                # LeaderWorkerSet.
                wait=True,
            )
        if serving.keda is not None:
            charts.install_chart(
                "Keda",
                repository=serving.keda.chart,
                version=serving.keda.version,
                namespace=keda.NAMESPACE,
                values=keda_values(serving.keda, cluster_name=cluster.plan.name),
                retain=True,
                wait=True,
            )


def keda_values(plan: KedaPlan, *, cluster_name: str) -> dict[str, object]:
    """Return the values of the chart `keda`.

    Args:
        plan: KEDA.
        cluster_name: Name of the cluster, for its messages.
    """
    rates = {
        "kube-api-qps": str(plan.operator.client_qps),
        "kube-api-burst": str(plan.operator.client_burst),
    }
    return {
        "clusterName": cluster_name,
        # Otherwise Helm would delete the CRDs with the release, and with them the scaling rules of
        # all services.
        "crds": {"additionalAnnotations": {"helm.sh/resource-policy": "keep"}},
        "image": {
            "keda": _image(plan.operator_image),
            "metricsApiServer": _image(plan.metrics_image),
            "webhooks": _image(plan.webhooks_image),
            "pullPolicy": "IfNotPresent",
        },
        "watchNamespace": ",".join(plan.namespaces),
        "operator": {"replicaCount": plan.operator.replicas},
        "metricsServer": {"replicaCount": plan.server.replicas},
        "webhooks": {"replicaCount": plan.server.replicas},
        "resources": {
            _OPERATOR: resources_of(plan.operator, chart_limits_cpu=True),
            _METRICS: resources_of(plan.server, chart_limits_cpu=True),
            _WEBHOOKS: resources_of(plan.server, chart_limits_cpu=True),
        },
        "podDisruptionBudget": {
            part: {"minAvailable": 1} for part in (_OPERATOR, _METRICS, _WEBHOOKS)
        },
        # A system node may have no room for another pod of KEDA.
        "upgradeStrategy": {
            part: {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
            }
            for part in (_OPERATOR, "metricsApiServer", _WEBHOOKS)
        },
        "topologySpreadConstraints": {part: _spread(app) for part, app in _SPREAD.items()},
        "priorityClassName": PRIORITY,
        "nodeSelector": SYSTEM_NODES,
        "tolerations": SYSTEM_TOLERATIONS,
        "rbac": {
            # The chart's own rule would allow every kind of every API group.
            "scaledRefKinds": [{"apiGroup": "leaderworkerset.x-k8s.io", "kind": "leaderworkersets"}]
        },
        # Off: these Services would show the programs' state to anybody who can reach them.
        "permissions": {
            _OPERATOR: {"restrict": {"secret": True}},
            _METRICS: {"restrict": {"secret": True}},
        },
        "extraArgs": {"keda": rates},
    }


def leader_worker_set_values(plan: LeaderWorkerSetPlan) -> dict[str, object]:
    """Return the values of the chart `lws`."""
    return {
        "replicaCount": plan.manager.replicas,
        "image": {"manager": {**image_values(plan.image), "pullPolicy": "IfNotPresent"}},
        # The namespace requires this value, and the chart lacks it.
        "podSecurityContext": {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "resources": resources_of(plan.manager, chart_limits_cpu=False),
        "priorityClassName": PRIORITY,
        "nodeSelector": SYSTEM_NODES,
        "tolerations": SYSTEM_TOLERATIONS,
        "affinity": kept_apart({"app.kubernetes.io/name": "lws"}),
    }


def _image(reference: str) -> dict[str, str]:
    """Return an image as KEDA's chart wants it, with the registry as a separate value."""
    values = image_values(reference)
    registry, _, repository = values["repository"].partition("/")
    return {"registry": registry, "repository": repository, "tag": values["tag"]}


def _spread(app: str) -> Sequence[Mapping[str, object]]:
    labels = {keda.APP_LABEL: app}
    return [
        spread_over(names.HOSTNAME_LABEL, "DoNotSchedule", labels),
        spread_over(names.ZONE_LABEL, "ScheduleAnyway", labels),
    ]


STACKS: Mapping[LayerId, Builder] = {"serving-controllers": ServicesStack}
