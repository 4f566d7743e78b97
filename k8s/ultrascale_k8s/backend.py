"""The backend: its service account, its rights, and its Deployment if it has one."""

from collections.abc import Iterable, Iterator, Sequence

from ultrascale.documents import Json, JsonObject
from ultrascale.plan.model import ApplicationPlan, BackendPlan
from ultrascale.plan.names import BACKEND_ACCOUNT
from ultrascale_k8s._pods import (
    budget,
    deployment,
    environment,
    http_probe,
    keep_apart,
    resources,
    restricted_container,
    restricted_pod,
    service,
    system_affinity,
    tolerations,
)
from ultrascale_k8s._rbac import account_binding, role, rules
from ultrascale_k8s.network_policy import address_peers, ingress_policy, ingress_rule
from ultrascale_k8s.objects import config_map, manifest, name_of

# Cluster-wide objects, and those in namespaces of jobs, share these names with nobody's.
_RIGHTS = "ultrascale-backend"
# As in `images/backend/Dockerfile`; no file of the image belongs to it.
_USER = 10000
_PORT_NAME = "http"
_SERVICE_PORT = 80
_NAMESPACE_LABEL = "kubernetes.io/metadata.name"


def backend_objects(plan: BackendPlan, job_ranges: Sequence[str] = ()) -> Iterator[JsonObject]:
    """Yield the backend's account, what it may read of the cluster, and who may reach it.

    With an application it yields the Deployment as well.

    Args:
        plan: The backend.
        job_ranges: Ranges that stand for the pods of other namespaces; empty: their pods.
    """
    yield manifest("ServiceAccount", BACKEND_ACCOUNT, namespace=plan.namespace)
    yield role(_RIGHTS, rules(plan.cluster_rights), component=BACKEND_ACCOUNT)
    yield account_binding(_RIGHTS, BACKEND_ACCOUNT, account_namespace=plan.namespace)
    yield _callers_policy(plan, job_ranges)
    if plan.application is not None:
        yield from _application(plan, plan.application)


def backend_rights_objects(plan: BackendPlan, namespaces: Iterable[str]) -> Iterator[JsonObject]:
    """Yield what the backend may do in namespaces of jobs, which must be there."""
    for namespace in namespaces:
        own = rules(plan.rights)
        yield role(_RIGHTS, own, namespace=namespace, component=BACKEND_ACCOUNT)
        yield account_binding(
            _RIGHTS,
            BACKEND_ACCOUNT,
            role_kind="Role",
            namespace=namespace,
            account_namespace=plan.namespace,
        )


def _callers_policy(plan: BackendPlan, job_ranges: Sequence[str]) -> JsonObject:
    """Let pods of the backend's namespace, and of those that the file names, reach its pods."""
    own: Json = {"podSelector": {}}
    others: list[Json] = [
        {"namespaceSelector": {"matchLabels": {_NAMESPACE_LABEL: name}}} for name in plan.allow_from
    ]
    if others and job_ranges:
        others = address_peers(job_ranges)
    return ingress_policy(
        "allow-callers",
        plan.namespace,
        [ingress_rule([], [own, *others])],
        pods={},
        component=BACKEND_ACCOUNT,
    )


def _application(plan: BackendPlan, application: ApplicationPlan) -> Iterator[JsonObject]:
    files = config_map(
        BACKEND_ACCOUNT,
        namespace=plan.namespace,
        component=BACKEND_ACCOUNT,
        data=application.files,
    )
    pod: JsonObject = {
        "serviceAccountName": BACKEND_ACCOUNT,
        "securityContext": restricted_pod(_USER),
        "affinity": system_affinity(),
        "tolerations": tolerations(),
        "topologySpreadConstraints": keep_apart(BACKEND_ACCOUNT),
        "terminationGracePeriodSeconds": application.grace_period_seconds,
        "containers": [_container(application)],
        "volumes": [
            {"name": "files", "configMap": {"name": name_of(files)}},
            {"name": "tmp", "emptyDir": {}},
        ],
    }
    yield files
    yield deployment(
        BACKEND_ACCOUNT,
        pod,
        namespace=plan.namespace,
        replicas=application.replicas,
        # A new version that does not become ready takes no request from the old one.
        strategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
    )
    yield budget(BACKEND_ACCOUNT, plan.namespace)
    port = {"name": _PORT_NAME, "port": _SERVICE_PORT, "targetPort": _PORT_NAME}
    yield service(BACKEND_ACCOUNT, BACKEND_ACCOUNT, port, namespace=plan.namespace)


def _container(application: ApplicationPlan) -> Json:
    return {
        "name": BACKEND_ACCOUNT,
        "image": application.image,
        "env": environment(application.environment),
        "ports": [{"name": _PORT_NAME, "containerPort": application.port}],
        "resources": resources(cpu="250m", memory="512Mi", memory_limit="1Gi"),
        "securityContext": restricted_container(),
        "volumeMounts": [
            {"name": "files", "mountPath": application.folder, "readOnly": True},
            {"name": "tmp", "mountPath": "/tmp"},
        ],
        # The first start waits for the migrations of the database.
        "startupProbe": _probe("/healthz", period_seconds=2, failures=60),
        # Says nothing of the database: to restart both replicas would bring none back.
        "livenessProbe": _probe("/healthz", period_seconds=10, failures=3),
        "readinessProbe": _probe("/readyz", period_seconds=5, failures=2),
    }


def _probe(path: str, *, period_seconds: int, failures: int) -> JsonObject:
    return http_probe(
        path,
        _PORT_NAME,
        periodSeconds=period_seconds,
        timeoutSeconds=3,
        failureThreshold=failures,
    )
