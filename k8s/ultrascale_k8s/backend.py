"""The backend: its service account, its rights, and its Deployment if it has one."""

from collections.abc import Iterable, Sequence

import cdk8s
from cdk8s_plus_27 import k8s as kube
from constructs import Construct

from ultrascale.plan.model import ApplicationPlan, BackendPlan
from ultrascale.plan.names import BACKEND_ACCOUNT
from ultrascale_k8s._pods import (
    REVISIONS,
    keep_apart,
    labels,
    metadata,
    resources,
    restricted_container,
    restricted_pod,
    selector,
    system_affinity,
    tolerations,
)
from ultrascale_k8s._rbac import bind_cluster_role, bind_role, rules
from ultrascale_k8s.network_policy import address_peers
from ultrascale_k8s.objects import define_config_map

# Cluster-wide objects, and those in namespaces of jobs, share these names with nobody's.
_RIGHTS = "ultrascale-backend"
# As in `images/backend/Dockerfile`; no file of the image belongs to it.
_USER = 10000
_PORT_NAME = "http"
_SERVICE_PORT = 80
_NAMESPACE_LABEL = "kubernetes.io/metadata.name"


class BackendChart(cdk8s.Chart):
    """Defines the backend's account, what it may read of the cluster, and who may reach it.

    With an application it defines the Deployment as well.
    """

    def __init__(
        self, scope: Construct, id: str, *, plan: BackendPlan, job_ranges: Sequence[str] = ()
    ) -> None:
        """Define it.

        Args:
            scope: The cdk8s app.
            id: Id of the chart, and name of its file.
            plan: The backend.
            job_ranges: Ranges that stand for the pods of other namespaces; empty: their pods.
        """
        super().__init__(scope, id, disable_resource_name_hashes=True)
        kube.KubeServiceAccount(
            self, "ServiceAccount", metadata=metadata(BACKEND_ACCOUNT, namespace=plan.namespace)
        )
        kube.KubeClusterRole(
            self,
            "ClusterRole",
            metadata=metadata(_RIGHTS, component=BACKEND_ACCOUNT),
            rules=rules(plan.cluster_rights),
        )
        bind_cluster_role(
            self,
            "ClusterRoleBinding",
            name=_RIGHTS,
            role=_RIGHTS,
            account=BACKEND_ACCOUNT,
            account_namespace=plan.namespace,
        )
        _allow_callers(self, plan, job_ranges)
        if plan.application is not None:
            _application(self, plan, plan.application)


class BackendRightsChart(cdk8s.Chart):
    """Defines what the backend may do in namespaces of jobs, which must be there."""

    def __init__(
        self, scope: Construct, id: str, *, plan: BackendPlan, namespaces: Iterable[str]
    ) -> None:
        super().__init__(scope, id, disable_resource_name_hashes=True)
        for namespace in namespaces:
            kube.KubeRole(
                self,
                f"{namespace}-role",
                metadata=metadata(_RIGHTS, namespace=namespace, component=BACKEND_ACCOUNT),
                rules=rules(plan.rights),
            )
            bind_role(
                self,
                f"{namespace}-binding",
                name=_RIGHTS,
                role=_RIGHTS,
                account=BACKEND_ACCOUNT,
                namespace=namespace,
                account_namespace=plan.namespace,
            )


def _allow_callers(chart: cdk8s.Chart, plan: BackendPlan, job_ranges: Sequence[str]) -> None:
    """Let pods of the backend's namespace, and of those that the file names, reach its pods."""
    own = kube.NetworkPolicyPeer(pod_selector=kube.LabelSelector())
    others = [
        kube.NetworkPolicyPeer(
            namespace_selector=kube.LabelSelector(match_labels={_NAMESPACE_LABEL: name})
        )
        for name in plan.allow_from
    ]
    if others and job_ranges:
        others = address_peers(job_ranges)
    kube.KubeNetworkPolicy(
        chart,
        "NetworkPolicy",
        metadata=metadata("allow-callers", namespace=plan.namespace, component=BACKEND_ACCOUNT),
        spec=kube.NetworkPolicySpec(
            pod_selector=kube.LabelSelector(),
            policy_types=["Ingress"],
            ingress=[kube.NetworkPolicyIngressRule(from_=[own, *others])],
        ),
    )


def _application(chart: cdk8s.Chart, plan: BackendPlan, application: ApplicationPlan) -> None:
    files = define_config_map(
        chart,
        "ConfigMap",
        name=BACKEND_ACCOUNT,
        namespace=plan.namespace,
        component=BACKEND_ACCOUNT,
        data=application.files,
    )
    kube.KubeDeployment(
        chart,
        "Deployment",
        metadata=metadata(BACKEND_ACCOUNT, namespace=plan.namespace),
        spec=kube.DeploymentSpec(
            revision_history_limit=REVISIONS,
            replicas=application.replicas,
            selector=selector(BACKEND_ACCOUNT),
            # A new version that does not become ready takes no request from the old one.
            strategy=kube.DeploymentStrategy(
                type="RollingUpdate",
                rolling_update=kube.RollingUpdateDeployment(
                    max_unavailable=kube.IntOrString.from_number(0),
                    max_surge=kube.IntOrString.from_number(1),
                ),
            ),
            template=_template(application, files),
        ),
    )
    kube.KubePodDisruptionBudget(
        chart,
        "PodDisruptionBudget",
        metadata=metadata(BACKEND_ACCOUNT, namespace=plan.namespace),
        spec=kube.PodDisruptionBudgetSpec(
            selector=selector(BACKEND_ACCOUNT),
            max_unavailable=kube.IntOrString.from_number(1),
        ),
    )
    _service(chart, plan.namespace)


def _service(chart: cdk8s.Chart, namespace: str) -> None:
    port = kube.ServicePort(
        name=_PORT_NAME,
        port=_SERVICE_PORT,
        target_port=kube.IntOrString.from_string(_PORT_NAME),
    )
    kube.KubeService(
        chart,
        "Service",
        metadata=metadata(BACKEND_ACCOUNT, namespace=namespace),
        spec=kube.ServiceSpec(selector=selector(BACKEND_ACCOUNT).match_labels, ports=[port]),
    )


def _template(application: ApplicationPlan, files: str) -> kube.PodTemplateSpec:
    return kube.PodTemplateSpec(
        metadata=kube.ObjectMeta(labels=labels(BACKEND_ACCOUNT)),
        spec=kube.PodSpec(
            service_account_name=BACKEND_ACCOUNT,
            security_context=restricted_pod(_USER),
            affinity=system_affinity(),
            tolerations=tolerations(),
            topology_spread_constraints=keep_apart(BACKEND_ACCOUNT),
            termination_grace_period_seconds=application.grace_period_seconds,
            containers=[_container(application)],
            volumes=[
                kube.Volume(name="files", config_map=kube.ConfigMapVolumeSource(name=files)),
                kube.Volume(name="tmp", empty_dir=kube.EmptyDirVolumeSource()),
            ],
        ),
    )


def _container(application: ApplicationPlan) -> kube.Container:
    return kube.Container(
        name=BACKEND_ACCOUNT,
        image=application.image,
        env=[
            kube.EnvVar(name=name, value=value) for name, value in application.environment.items()
        ],
        ports=[kube.ContainerPort(name=_PORT_NAME, container_port=application.port)],
        resources=resources(cpu="250m", memory="512Mi", memory_limit="1Gi"),
        security_context=restricted_container(),
        volume_mounts=[
            kube.VolumeMount(name="files", mount_path=application.folder, read_only=True),
            kube.VolumeMount(name="tmp", mount_path="/tmp"),
        ],
        # The first start waits for the migrations of the database.
        startup_probe=_probe("/healthz", period_seconds=2, failures=60),
        # Says nothing of the database: to restart both replicas would bring none back.
        liveness_probe=_probe("/healthz", period_seconds=10, failures=3),
        readiness_probe=_probe("/readyz", period_seconds=5, failures=2),
    )


def _probe(path: str, *, period_seconds: int, failures: int) -> kube.Probe:
    return kube.Probe(
        http_get=kube.HttpGetAction(path=path, port=kube.IntOrString.from_string(_PORT_NAME)),
        period_seconds=period_seconds,
        timeout_seconds=3,
        failure_threshold=failures,
    )
