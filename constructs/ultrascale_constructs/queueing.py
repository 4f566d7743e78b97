"""Values of the charts of Kueue and JobSet, and the configuration of Kueue's controller.

Sources:
    https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/charts/kueue/values.yaml
    https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/apis/config/v1beta2/configuration_types.go
    https://github.com/kubernetes-sigs/jobset/blob/v0.12.0/charts/jobset/values.yaml
"""

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256

from ultrascale import yaml_writer
from ultrascale.plan import names
from ultrascale.plan.model import KueuePlan, ReadinessPlan
from ultrascale_constructs.chart_values import (
    PRIORITY,
    SYSTEM_NODES,
    SYSTEM_TOLERATIONS,
    image_values,
    kept_apart,
    resources_of,
    spread_over,
)

_KUEUE, _JOBSET = "kueue", "jobset"
_NAME_LABEL = "app.kubernetes.io/name"
_LABELS = {_NAME_LABEL: _KUEUE}
# The names by which the chart calls the Service and the Secret of Kueue's webhooks.
_WEBHOOK_SERVICE, _WEBHOOK_SECRET = "kueue-webhook-service", "kueue-webhook-server-cert"
# Of the digest of a chart.
_DIGITS = 10


def kueue_values(plan: KueuePlan) -> dict[str, object]:
    """Return the values of the chart `kueue`."""
    return {
        "controllerManager": {
            "replicas": plan.manager.replicas,
            # Large clusters have pods of a size of which no system node holds one more, and Helm
            # would wait for it in vain.
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
            },
            "manager": {
                # The API server asks it about every job that is made.
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


def manager_configuration(plan: KueuePlan) -> dict[str, object]:
    """Return the configuration of Kueue's controller.

    All of it: the chart puts it in the place of its own, and adds nothing to it.
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
        # Jobs of ours that prepare file systems name no queue, and others that name none and ask
        # for accelerators are told so as they are made.
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
        # A queue counts accelerators, and each pod asks for memory, CPU and EFA interfaces too.
        "resources": {"quotaCheckStrategy": "IgnoreUndeclared"},
        **(sharing if plan.fair_sharing else {}),
    }


def _readiness(plan: ReadinessPlan) -> Mapping[str, object]:
    return {
        "timeout": f"{plan.timeout_seconds}s",
        # Off. A JobSet that starts again while the time ran kept the quota of a job that was
        # evicted: https://github.com/kubernetes-sigs/kueue/issues/14811
        "recoveryTimeout": "0s",
        "blockAdmission": False,
        "requeuingStrategy": {
            "timestamp": "Eviction",
            "backoffBaseSeconds": plan.backoff_base_seconds,
            "backoffMaxSeconds": plan.backoff_max_seconds,
            "backoffLimitCount": plan.backoff_limit,
        },
    }


def jobset_values(plan: KueuePlan) -> dict[str, object]:
    """Return the values of the chart `jobset`, which has none for a priority class."""
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


def certificate_released(plan: KueuePlan) -> Sequence[Mapping[str, object]]:
    """Return the JSON patch by which nobody owns the certificate of JobSet's webhooks.

    The chart declares its four fields empty, and JobSet's controller fills them. Helm 4 applies the
    chart on the server, which refuses whatever another owns and has otherwise: every deployment
    after the first would fail. Helm empties the fields then, and the controller fills them again.

    It changes with the chart, so that it is done before Helm runs and at no other time. An object
    needs one owner of something, or the server takes all of it for that of a manager of its own.

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
