"""The second scheduler and the extender that keep a pod's Neuron devices contiguous."""

import json

import cdk8s
import cdk8s_plus_27 as kplus
from cdk8s_plus_27 import k8s as kube
from constructs import Construct

from ultrascale.plan.model import NeuronSchedulerExtensionPlan
from ultrascale.plan.names import NEURON_CORE, NEURON_DEVICE, SYSTEM_NAMESPACE
from ultrascale_k8s._pods import (
    REVISIONS,
    SYSTEM_CLUSTER_CRITICAL,
    labels,
    metadata,
    planned_resources,
    resources,
    restricted_container,
    restricted_pod,
    selector,
    system_affinity,
    tolerations,
)
from ultrascale_k8s._rbac import bind_cluster_role, bind_role, rule
from ultrascale_k8s.objects import define_config_map

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


class NeuronSchedulerChart(cdk8s.Chart):
    """Defines the extender and a kube-scheduler that asks it about every Neuron pod.

    Only pods whose ``schedulerName`` is the plan's go through it. Volcano does not know it.

    Source: https://awsdocs-neuron.readthedocs-hosted.com/en/latest/containers/tutorials/k8s-neuron-scheduler.html
    """

    def __init__(self, scope: Construct, id: str, *, plan: NeuronSchedulerExtensionPlan) -> None:
        super().__init__(scope, id, disable_resource_name_hashes=True)
        _accounts(self, plan)
        _extender(self, plan)
        _close_extender(self, plan)
        _scheduler(self, plan)


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
        # A Neuron pod waits rather than being placed without the extender's word.
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


def _accounts(scope: Construct, plan: NeuronSchedulerExtensionPlan) -> None:
    for id, name in (("ExtenderAccount", _EXTENDER), ("SchedulerAccount", plan.scheduler_name)):
        kplus.ServiceAccount(
            scope,
            id,
            metadata=cdk8s.ApiObjectMetadata(
                name=name, namespace=SYSTEM_NAMESPACE, labels=labels(name)
            ),
        )
    kube.KubeClusterRole(
        scope, "ExtenderRole", metadata=metadata(_EXTENDER), rules=list(_EXTENDER_RULES)
    )
    bind_cluster_role(scope, "ExtenderBinding", name=_EXTENDER, role=_EXTENDER, account=_EXTENDER)
    account = plan.scheduler_name
    for role in ("kube-scheduler", "volume-scheduler"):
        bind_cluster_role(
            scope, role, name=f"{account}-as-{role}", role=f"system:{role}", account=account
        )
    # `system:kube-scheduler` covers the default scheduler's lease only.
    kube.KubeRole(
        scope,
        "LeaseRole",
        metadata=metadata(account, namespace=SYSTEM_NAMESPACE),
        rules=[
            rule("leases", verbs=("create",), group="coordination.k8s.io"),
            rule("leases", verbs=("get", "update"), group="coordination.k8s.io", names=(account,)),
        ],
    )
    bind_role(scope, "LeaseBinding", name=account, role=account, account=account)
    bind_role(
        scope,
        "AuthenticationBinding",
        name=f"{account}-authentication-reader",
        role="extension-apiserver-authentication-reader",
        account=account,
    )


def _extender(scope: Construct, plan: NeuronSchedulerExtensionPlan) -> None:
    kube.KubeDeployment(
        scope,
        "Extender",
        metadata=metadata(_EXTENDER, namespace=SYSTEM_NAMESPACE),
        spec=kube.DeploymentSpec(
            revision_history_limit=REVISIONS,
            replicas=1,
            # It keeps the allocations in memory, so two must never answer at once.
            strategy=kube.DeploymentStrategy(type="Recreate"),
            selector=selector(_EXTENDER),
            template=kube.PodTemplateSpec(
                metadata=kube.ObjectMeta(labels=labels(_EXTENDER)),
                spec=_extender_pod(plan.extender_image),
            ),
        ),
    )
    kube.KubeService(
        scope,
        "ExtenderService",
        metadata=metadata(_EXTENDER, namespace=SYSTEM_NAMESPACE),
        spec=kube.ServiceSpec(
            selector=selector(_EXTENDER).match_labels,
            ports=[kube.ServicePort(name="http", port=_EXTENDER_PORT)],
        ),
    )


def _close_extender(scope: Construct, plan: NeuronSchedulerExtensionPlan) -> None:
    """Let the scheduler alone reach the extender, which binds any pod for whoever asks it to."""
    scheduler = kube.NetworkPolicyPeer(pod_selector=selector(plan.scheduler_name))
    port = kube.NetworkPolicyPort(protocol="TCP", port=kube.IntOrString.from_number(_EXTENDER_PORT))
    kube.KubeNetworkPolicy(
        scope,
        "ExtenderPolicy",
        metadata=metadata(_EXTENDER, namespace=SYSTEM_NAMESPACE),
        spec=kube.NetworkPolicySpec(
            pod_selector=selector(_EXTENDER),
            policy_types=["Ingress"],
            ingress=[kube.NetworkPolicyIngressRule(from_=[scheduler], ports=[port])],
        ),
    )


def _extender_pod(image: str) -> kube.PodSpec:
    container = kube.Container(
        name="neuron-scheduler",
        image=image,
        env=[kube.EnvVar(name="PORT", value=str(_EXTENDER_PORT))],
        ports=[kube.ContainerPort(name="http", container_port=_EXTENDER_PORT)],
        # No page says which user AWS's image runs as, or that it writes nothing.
        security_context=kube.SecurityContext(
            allow_privilege_escalation=False,
            capabilities=kube.Capabilities(drop=["ALL"]),
            seccomp_profile=kube.SeccompProfile(type="RuntimeDefault"),
        ),
        resources=resources(cpu="100m", memory="128Mi", memory_limit="1Gi"),
    )
    # No schedulerName: placed by the scheduler that waits for it, neither would start.
    return kube.PodSpec(
        service_account_name=_EXTENDER,
        automount_service_account_token=True,
        priority_class_name=SYSTEM_CLUSTER_CRITICAL,
        affinity=system_affinity(),
        tolerations=tolerations(),
        containers=[container],
    )


def _scheduler(scope: Construct, plan: NeuronSchedulerExtensionPlan) -> None:
    name = plan.scheduler_name
    config = define_config_map(
        scope,
        "SchedulerConfig",
        name=name,
        namespace=SYSTEM_NAMESPACE,
        component=name,
        data={_CONFIG_FILE: scheduler_config(plan)},
    )
    pod = kube.PodSpec(
        service_account_name=name,
        automount_service_account_token=True,
        priority_class_name=SYSTEM_CLUSTER_CRITICAL,
        affinity=system_affinity(),
        tolerations=tolerations(),
        security_context=restricted_pod(_NONROOT),
        containers=[_scheduler_container(plan)],
        volumes=[kube.Volume(name="config", config_map=kube.ConfigMapVolumeSource(name=config))],
    )
    kube.KubeDeployment(
        scope,
        "Scheduler",
        metadata=metadata(name, namespace=SYSTEM_NAMESPACE),
        spec=kube.DeploymentSpec(
            revision_history_limit=REVISIONS,
            replicas=2,  # one leads, the other takes over when its node goes
            selector=selector(name),
            template=kube.PodTemplateSpec(metadata=kube.ObjectMeta(labels=labels(name)), spec=pod),
        ),
    )


def _scheduler_container(plan: NeuronSchedulerExtensionPlan) -> kube.Container:
    healthy = kube.HttpGetAction(
        path="/healthz", port=kube.IntOrString.from_number(_SCHEDULER_PORT), scheme="HTTPS"
    )
    return kube.Container(
        name="kube-scheduler",
        image=plan.scheduler_image,
        command=["/usr/local/bin/kube-scheduler"],
        args=[f"--config={_CONFIG_DIRECTORY}/{_CONFIG_FILE}"],
        ports=[kube.ContainerPort(name="https", container_port=_SCHEDULER_PORT)],
        liveness_probe=kube.Probe(http_get=healthy, initial_delay_seconds=15),
        readiness_probe=kube.Probe(http_get=healthy),
        security_context=restricted_container(),
        resources=planned_resources(plan.scheduler_resources),
        volume_mounts=[
            kube.VolumeMount(name="config", mount_path=_CONFIG_DIRECTORY, read_only=True)
        ],
    )
