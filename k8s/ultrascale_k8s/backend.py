"""The backend: its service account, its rights, and its Deployment if the file has its image."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ultrascale.documents import Json, JsonObject
from ultrascale.parts.backend.model import ACCOUNT, ApplicationPlan, Plan
from ultrascale_k8s._platform_chart import PlatformChart
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
from ultrascale_k8s.namespaces import address_peers, ingress_policy, ingress_rule
from ultrascale_k8s.objects import config_map, manifest, name_of

# Names of cluster-wide objects, and of objects in jobs' namespaces, that only the backend uses.
_RIGHTS = "ultrascale-backend"
# User as in `images/backend/Dockerfile`; no file of the image belongs to it.
_USER = 10000
_PORT_NAME = "http"
_SERVICE_PORT = 80
_NAMESPACE_LABEL = "kubernetes.io/metadata.name"


def charts(plan: Plan) -> Mapping[str, Sequence[PlatformChart]]:
    """Return the charts of the backend, by the layer that applies them."""
    return {
        "platform": [
            PlatformChart(name="backend", published=[*backend_objects(plan)]),
            *_rights(plan, plan.job_namespaces),
        ],
        "teams": [*_rights(plan, plan.team_namespaces, prefix="team-")],
    }


def _rights(plan: Plan, namespaces: Sequence[str], *, prefix: str = "") -> Iterator[PlatformChart]:
    if namespaces:
        objects = [*backend_rights_objects(plan, namespaces)]
        yield PlatformChart(name=f"{prefix}backend-rights", published=objects)


def backend_objects(plan: Plan) -> Iterator[JsonObject]:
    """Yield the backend's account, rights to read the cluster, and network policies.

    With an application the Deployment follows.
    """
    yield manifest("ServiceAccount", ACCOUNT, namespace=plan.namespace)
    yield role(_RIGHTS, rules(plan.cluster_rights), component=ACCOUNT)
    yield account_binding(_RIGHTS, ACCOUNT, account_namespace=plan.namespace)
    yield _callers_policy(plan)
    if plan.application is not None:
        yield from _application(plan, plan.application)


def backend_rights_objects(plan: Plan, namespaces: Iterable[str]) -> Iterator[JsonObject]:
    """Yield the backend's rights in namespaces of jobs; these must exist."""
    for namespace in namespaces:
        own = rules(plan.rights)
        yield role(_RIGHTS, own, namespace=namespace, component=ACCOUNT)
        yield account_binding(
            _RIGHTS,
            ACCOUNT,
            role_kind="Role",
            namespace=namespace,
            account_namespace=plan.namespace,
        )


def _callers_policy(plan: Plan) -> JsonObject:
    """Return the policy: the backend's namespace, and namespaces in the file, reach its pods."""
    own: Json = {"podSelector": {}}
    others: list[Json] = [
        {"namespaceSelector": {"matchLabels": {_NAMESPACE_LABEL: name}}} for name in plan.allow_from
    ]
    if others and plan.job_ranges:
        others = address_peers(plan.job_ranges)
    return ingress_policy(
        "allow-callers",
        plan.namespace,
        [ingress_rule([], [own, *others])],
        pods={},
        component=ACCOUNT,
    )


def _application(plan: Plan, application: ApplicationPlan) -> Iterator[JsonObject]:
    files = config_map(
        ACCOUNT,
        namespace=plan.namespace,
        component=ACCOUNT,
        data=application.files,
    )
    pod: JsonObject = {
        "serviceAccountName": ACCOUNT,
        "securityContext": restricted_pod(_USER),
        "affinity": system_affinity(),
        "tolerations": tolerations(),
        "topologySpreadConstraints": keep_apart(ACCOUNT),
        "terminationGracePeriodSeconds": application.grace_period_seconds,
        "containers": [_container(application)],
        "volumes": [
            {"name": "files", "configMap": {"name": name_of(files)}},
            {"name": "tmp", "emptyDir": {}},
        ],
    }
    yield files
    yield deployment(
        ACCOUNT,
        pod,
        namespace=plan.namespace,
        replicas=application.replicas,
        # The old version serves until the new version is ready.
        strategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
    )
    yield budget(ACCOUNT, plan.namespace)
    port = {"name": _PORT_NAME, "port": _SERVICE_PORT, "targetPort": _PORT_NAME}
    yield service(ACCOUNT, ACCOUNT, port, namespace=plan.namespace)


def _container(application: ApplicationPlan) -> Json:
    return {
        "name": ACCOUNT,
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
        # The probe does not check the database: to restart both replicas would not bring the
        # database back.
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
