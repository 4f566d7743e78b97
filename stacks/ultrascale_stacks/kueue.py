"""Kueue and JobSet, and the queues of the cluster file.

Sources:
    https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/charts/kueue/values.yaml
    https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/apis/config/v1beta2/configuration_types.go
    https://github.com/kubernetes-sigs/jobset/blob/v0.12.0/charts/jobset/values.yaml
"""

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256

from ultrascale import yaml_writer
from ultrascale.parts.kueue import Plan, facts, jobset
from ultrascale.plan import names
from ultrascale.plan.model import ReadinessPlan
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

# The chart has no value for the priority class.
_PRIORITY = "/spec/template/spec/priorityClassName"

_KUEUE, _JOBSET = "kueue", "jobset"
_NAME_LABEL = "app.kubernetes.io/name"
_LABELS = {_NAME_LABEL: _KUEUE}
# The chart's names of the Service and the Secret of Kueue's webhooks.
_WEBHOOK_SERVICE, _WEBHOOK_SECRET = "kueue-webhook-service", "kueue-webhook-server-cert"
# Characters of a chart's digest.
_DIGITS = 10


class SchedulingStack(LayerStack):
    """Stack that installs the charts of Kueue and JobSet, then applies the queues.

    Both charts stay when the stack is deleted: Kueue's chart holds its CRDs, with which every queue
    and waiting job would be deleted.

    No job may run when the stack is deleted. Kueue keeps a queue while a job has quota in it, and
    CloudFormation gives up after 15 minutes.
    """

    def __init__(self, cluster: ClusterStacks, name: StackName) -> None:
        super().__init__(cluster, name)
        kueue = cluster.part(Plan)
        manifests = ManifestApplier(self, "Manifests", cluster=cluster.context)
        manifests.patch(
            "JobSetCertificate",
            f"secret/{jobset.CERTIFICATE}",
            certificate_without_owner(kueue),
            namespace=jobset.NAMESPACE,
        )
        # Kueue looks for the kind JobSet when it starts.
        manifests.install_chart(
            "JobSet",
            repository=kueue.jobset_chart,
            version=kueue.jobset_version,
            namespace=jobset.NAMESPACE,
            values=jobset_values(kueue),
            retain=True,
            wait=True,
        )
        # Otherwise users' pods of higher priority could evict the controller's pods, and no JobSet
        # could be made meanwhile.
        manifests.patch(
            "JobSetPriority",
            "deployment/jobset-controller",
            [{"op": "add", "path": _PRIORITY, "value": "system-cluster-critical"}],
            namespace=jobset.NAMESPACE,
        )
        manifests.install_chart(
            "Kueue",
            repository=kueue.chart,
            version=kueue.version,
            namespace=facts.NAMESPACE,
            values=kueue_values(kueue),
            retain=True,
            # The chart is ready once Kueue serves its webhooks, which check every queue.
            wait=True,
        )
        for chart in cluster.charts.of_layers["scheduling"]:
            manifests.apply(chart.name, chart.manifests, retain=chart.retained)


def kueue_values(plan: Plan) -> dict[str, object]:
    """Return the values of the chart `kueue`."""
    return {
        "controllerManager": {
            "replicas": plan.manager.replicas,
            # In large clusters no system node has room for another of these pods, and Helm would
            # wait forever.
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
            },
            "manager": {
                # The API server calls its webhook for every new job.
                "priorityClassName": PRIORITY,
                "image": {**image_values(plan.image), "pullPolicy": "IfNotPresent"},
                "resources": resources_of(plan.manager, chart_limits_cpu=True),
            },
            "nodeSelector": SYSTEM_NODES,
            "tolerations": SYSTEM_TOLERATIONS,
            "topologySpreadConstraints": [
                spread_over(names.HOSTNAME_LABEL, "DoNotSchedule", _LABELS),
                spread_over(names.ZONE_LABEL, "ScheduleAnyway", _LABELS),
            ],
            "podDisruptionBudget": {"enabled": True, "minAvailable": 1},
        },
        "managerConfig": {
            "controllerManagerConfigYaml": yaml_writer.dump(manager_configuration(plan))
        },
    }


def manager_configuration(plan: Plan) -> dict[str, object]:
    """Return the configuration of Kueue's controller.

    The configuration is complete: the chart uses it instead of its own, and adds nothing.
    """
    sharing: Mapping[str, object] = {
        "fairSharing": {
            "preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]
        }
    }
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": ":8081"},
        "metrics": {"bindAddress": ":8443"},
        "webhook": {"port": 9443},
        "leaderElection": {"leaderElect": True, "resourceName": "c1f6bfd2.kueue.x-k8s.io"},
        "controller": {
            "groupKindConcurrency": {
                "Job.batch": 5,
                "JobSet.jobset.x-k8s.io": 5,
                "Pod": 5,
                "Workload.kueue.x-k8s.io": 10,
                "LocalQueue.kueue.x-k8s.io": 5,
                "ClusterQueue.kueue.x-k8s.io": 5,
                "ResourceFlavor.kueue.x-k8s.io": 1,
            }
        },
        "clientConnection": {"qps": plan.manager.client_qps, "burst": plan.manager.client_burst},
        "internalCertManagement": {
            "enable": True,
            "webhookServiceName": _WEBHOOK_SERVICE,
            "webhookSecretName": _WEBHOOK_SECRET,
        },
        "waitForPodsReady": _readiness(plan.readiness),
        # Our jobs that prepare file systems name no queue. A policy refuses other jobs without a
        # queue that request accelerators.
        "manageJobsWithoutQueueName": False,
        "managedJobsNamespaceSelector": {
            "matchExpressions": [
                {
                    "key": "kubernetes.io/metadata.name",
                    "operator": "In",
                    "values": list(plan.namespaces),
                }
            ]
        },
        "integrations": {"frameworks": list(plan.frameworks)},
        # A queue counts accelerators, and pods also request memory, CPU and EFA interfaces.
        "resources": {"quotaCheckStrategy": "IgnoreUndeclared"},
        **(sharing if plan.fair_sharing else {}),
    }


def _readiness(plan: ReadinessPlan) -> Mapping[str, object]:
    return {
        "timeout": f"{plan.timeout_seconds}s",
        # Off: a JobSet that restarted while the time ran kept its quota after its eviction, see
        # https://github.com/kubernetes-sigs/kueue/issues/14811
        "recoveryTimeout": "0s",
        "blockAdmission": False,
        "requeuingStrategy": {
            "timestamp": "Eviction",
            "backoffBaseSeconds": plan.backoff_base_seconds,
            "backoffMaxSeconds": plan.backoff_max_seconds,
            "backoffLimitCount": plan.backoff_limit,
        },
    }


def jobset_values(plan: Plan) -> dict[str, object]:
    """Return the values of the chart `jobset`; the chart has no value for a priority class."""
    controller = plan.jobset_manager
    return {
        "image": {**image_values(plan.jobset_image), "pullPolicy": "IfNotPresent"},
        "controller": {
            "replicas": controller.replicas,
            "clientConnection": {"qps": controller.client_qps, "burst": controller.client_burst},
            "resources": resources_of(controller, chart_limits_cpu=True),
            "nodeSelector": SYSTEM_NODES,
            "tolerations": SYSTEM_TOLERATIONS,
            "affinity": kept_apart({_NAME_LABEL: _JOBSET}),
            "podDisruptionBudget": {"enabled": True, "minAvailable": 1},
        },
    }


def certificate_without_owner(plan: Plan) -> Sequence[Mapping[str, object]]:
    """Return the JSON patch that removes all owners of the certificate of JobSet's webhooks.

    The chart declares its four fields empty, and JobSet's controller fills them. Helm 4 applies the
    chart on the server, which refuses to change a field of another owner: every deployment after
    the first would fail. Without owners Helm empties the fields, and the controller fills them
    again.

    The patch changes with the chart's version, so that it is applied only before Helm runs. An
    object needs an owner of at least one field: otherwise the server assigns all fields to a
    manager that the server names itself.

    Sources:
        https://github.com/kubernetes-sigs/jobset/issues/1205
        https://kubernetes.io/docs/reference/using-api/server-side-apply/#clearing-managedfields
    """
    chart = json.dumps([plan.jobset_version, jobset_values(plan)], sort_keys=True)
    label: Mapping[str, object] = {"f:app.kubernetes.io/managed-by": {}}
    owner: Mapping[str, object] = {
        "manager": "ultrascale",
        "operation": "Update",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:labels": label}},
    }
    digest = sha256(chart.encode()).hexdigest()[:_DIGITS]
    return [
        {"op": "add", "path": "/metadata/annotations/ultrascale.dev~1chart", "value": digest},
        {"op": "add", "path": "/metadata/managedFields", "value": [owner]},
    ]


STACKS: Mapping[LayerId, Builder] = {"scheduling": SchedulingStack}
