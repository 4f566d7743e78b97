"""Second scheduler and extender, by which a pod gets contiguous Neuron devices."""

import json
from collections.abc import Iterator

from ultrascale.documents import Json, JsonObject
from ultrascale.plan.model import NeuronSchedulerExtensionPlan
from ultrascale.plan.names import NEURON_CORE, NEURON_DEVICE, SYSTEM_NAMESPACE
from ultrascale_k8s._pods import (
    deployment,
    environment,
    planned_resources,
    resources,
    restricted_container,
    selector,
    service,
    system_pod,
    unprivileged_container,
)
from ultrascale_k8s._rbac import account_binding, account_with_rules, rule
from ultrascale_k8s.namespaces import ingress_policy, ingress_rule
from ultrascale_k8s.objects import config_map, name_of

_EXTENDER = "k8s-neuron-scheduler"
_EXTENDER_PORT = 12345
_CONFIG_DIRECTORY = "/etc/kubernetes/neuron-scheduler"
_CONFIG_FILE = "config.yaml"
_SCHEDULER_PORT = 10259
# The `nonroot` user of the distroless images that Kubernetes builds its components on.
_NONROOT = 65532
# Source: https://github.com/aws-neuron/neuron-helm-charts/tree/main/charts/neuron-helm-chart
_EXTENDER_RULES = (
    rule("nodes", verbs=("get", "list", "watch")),
    rule("nodes/status", verbs=("get", "list", "watch", "patch", "update")),
    rule("events", verbs=("create", "patch")),
    rule("pods", verbs=("get", "list", "watch", "patch", "update")),
    rule("bindings", "pods/binding", verbs=("create",)),
)


def neuron_scheduler_objects(plan: NeuronSchedulerExtensionPlan) -> Iterator[JsonObject]:
    """Yield the extender and a kube-scheduler that asks it about every Neuron pod.

    Only pods whose ``schedulerName`` is the plan's use this scheduler. Volcano does not ask the
    extender.

    Source: https://awsdocs-neuron.readthedocs-hosted.com/en/latest/containers/tutorials/k8s-neuron-scheduler.html
    """
    yield from _accounts(plan)
    yield from _extender(plan)
    yield from _scheduler(plan)


def scheduler_config(plan: NeuronSchedulerExtensionPlan) -> str:
    """Return the second scheduler's configuration as JSON, which is YAML as well.

    Source: https://kubernetes.io/docs/reference/config-api/kube-scheduler-config.v1/
    """
    extender = {
        "urlPrefix": f"http://{_EXTENDER}.{SYSTEM_NAMESPACE}.svc.cluster.local:{_EXTENDER_PORT}",
        "filterVerb": "filter",
        "bindVerb": "bind",
        "enableHTTPS": False,
        "nodeCacheCapable": True,
        # A Neuron pod waits for the extender; it is never placed without it.
        "ignorable": False,
        "managedResources": [
            {"name": name, "ignoredByScheduler": False} for name in (NEURON_DEVICE, NEURON_CORE)
        ],
    }
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {
            "leaderElect": True,
            "resourceName": plan.scheduler_name,
            "resourceNamespace": SYSTEM_NAMESPACE,
        },
        "profiles": [{"schedulerName": plan.scheduler_name}],
        "extenders": [extender],
    }
    return json.dumps(config, indent=2, sort_keys=True)


def _accounts(plan: NeuronSchedulerExtensionPlan) -> Iterator[JsonObject]:
    account = plan.scheduler_name
    yield from account_with_rules(_EXTENDER, cluster=_EXTENDER_RULES, gives_token=False)
    yield from account_with_rules(
        account,
        gives_token=False,
        # `system:kube-scheduler` covers only the default scheduler's lease.
        own=(
            rule("leases", verbs=("create",), group="coordination.k8s.io"),
            rule("leases", verbs=("get", "update"), group="coordination.k8s.io", names=(account,)),
        ),
    )
    for role in ("kube-scheduler", "volume-scheduler"):
        yield account_binding(f"{account}-as-{role}", account, role=f"system:{role}")
    yield account_binding(
        f"{account}-authentication-reader",
        account,
        role="extension-apiserver-authentication-reader",
        role_kind="Role",
        namespace=SYSTEM_NAMESPACE,
    )


def _extender(plan: NeuronSchedulerExtensionPlan) -> Iterator[JsonObject]:
    container: JsonObject = {
        "name": "neuron-scheduler",
        "image": plan.extender_image,
        "env": environment({"PORT": str(_EXTENDER_PORT)}),
        "ports": [{"name": "http", "containerPort": _EXTENDER_PORT}],
        # No page states which user AWS's image runs as, or that the program writes no files.
        "securityContext": unprivileged_container(seccompProfile={"type": "RuntimeDefault"}),
        "resources": resources(cpu="100m", memory="128Mi", memory_limit="1Gi"),
    }
    yield deployment(
        _EXTENDER,
        # No schedulerName: placed by the scheduler that waits for the extender, neither would ever
        # start.
        system_pod([container], account=_EXTENDER, user=None),
        replicas=1,
        # The extender keeps allocations in memory, so two replicas must never answer at the same
        # time.
        strategy={"type": "Recreate"},
    )
    yield service(_EXTENDER, _EXTENDER, {"name": "http", "port": _EXTENDER_PORT})
    # Only the scheduler may reach the extender, which binds any pod for any caller.
    scheduler: Json = {"podSelector": selector(plan.scheduler_name)}
    yield ingress_policy(
        _EXTENDER,
        SYSTEM_NAMESPACE,
        [ingress_rule([_EXTENDER_PORT], [scheduler])],
        pods=selector(_EXTENDER),
    )


def _scheduler(plan: NeuronSchedulerExtensionPlan) -> Iterator[JsonObject]:
    name = plan.scheduler_name
    data = {_CONFIG_FILE: scheduler_config(plan)}
    config = config_map(name, namespace=SYSTEM_NAMESPACE, component=name, data=data)
    healthy = {"path": "/healthz", "port": _SCHEDULER_PORT, "scheme": "HTTPS"}
    container: JsonObject = {
        "name": "kube-scheduler",
        "image": plan.scheduler_image,
        "command": ["/usr/local/bin/kube-scheduler"],
        "args": [f"--config={_CONFIG_DIRECTORY}/{_CONFIG_FILE}"],
        "ports": [{"name": "https", "containerPort": _SCHEDULER_PORT}],
        "livenessProbe": {"httpGet": healthy, "initialDelaySeconds": 15},
        "readinessProbe": {"httpGet": healthy},
        "securityContext": restricted_container(),
        "resources": planned_resources(plan.scheduler_resources),
        "volumeMounts": [{"name": "config", "mountPath": _CONFIG_DIRECTORY, "readOnly": True}],
    }
    volume = {"name": "config", "configMap": {"name": name_of(config)}}
    yield config
    yield deployment(
        name,
        system_pod([container], account=name, user=_NONROOT, volumes=[volume]),
        replicas=2,  # one leads; the other takes over when the leader's node ends
    )
