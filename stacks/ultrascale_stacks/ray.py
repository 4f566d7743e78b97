"""KubeRay's operator.

Source: https://github.com/ray-project/kuberay/blob/v1.7.0/helm-chart/kuberay-operator/values.yaml
"""

from collections.abc import Mapping

from ultrascale.parts.ray import facts
from ultrascale.parts.ray.model import Plan
from ultrascale.plan.stacks import LayerId, StackName
from ultrascale_constructs.platform import (
    PRIORITY,
    SYSTEM_NODES,
    SYSTEM_TOLERATIONS,
    ManifestApplier,
    image_values,
    kept_apart,
    resources_of,
)
from ultrascale_stacks.cluster import Builder, ClusterStacks, LayerStack


class RayStack(LayerStack):
    """Stack that installs the chart of KubeRay's operator.

    The chart stays when the stack is deleted: jobs of Ray would wait for a finalizer that no
    operator removes.
    """

    def __init__(self, cluster: ClusterStacks, name: StackName) -> None:
        super().__init__(cluster, name)
        plan = cluster.part(Plan)
        charts = ManifestApplier(self, "Charts", cluster=cluster.context)
        charts.install_chart(
            "KubeRay",
            repository=plan.chart,
            version=plan.version,
            namespace=facts.NAMESPACE,
            values=operator_values(plan),
            retain=True,
            # Kueue looks for the kind RayJob as it starts.
            wait=True,
        )


def operator_values(plan: Plan) -> dict[str, object]:
    """Return the values of the chart `kuberay-operator`."""
    return {
        "replicas": plan.operator.replicas,
        "image": {**image_values(plan.image), "pullPolicy": "IfNotPresent"},
        # Both together make Roles in the namespaces of jobs. Otherwise a ClusterRole could read
        # the Secrets of every namespace, and make pods there.
        "singleNamespaceInstall": True,
        "crNamespacedRbacEnable": True,
        "watchNamespace": list(plan.namespaces),
        "batchScheduler": {"name": plan.batch_scheduler},
        "kubeClient": {"qps": plan.operator.client_qps, "burst": plan.operator.client_burst},
        "resources": resources_of(plan.operator, chart_limits_cpu=True),
        # The namespace requires these values, and the chart has them for the container alone.
        "podSecurityContext": {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "priorityClassName": PRIORITY,
        "nodeSelector": SYSTEM_NODES,
        "tolerations": SYSTEM_TOLERATIONS,
        "affinity": kept_apart({"app.kubernetes.io/name": facts.OPERATOR}),
    }


STACKS: Mapping[LayerId, Builder] = {"ray-operator": RayStack}
