"""Rights of the measuring functions, given to the groups of their access entries."""

from collections.abc import Iterator, Mapping, Sequence

from ultrascale.documents import Json, JsonObject
from ultrascale.lambdas.fleet_metrics.settings import IdleSettings
from ultrascale.parts.observability.model import FleetMetricsPlan, Plan, WriteLatencyPlan
from ultrascale.plan.model import NamespacePlan
from ultrascale_k8s import _admission
from ultrascale_k8s._platform_chart import PlatformChart
from ultrascale_k8s._rbac import binding, groups, role, rule
from ultrascale_k8s.namespaces import namespace_objects
from ultrascale_k8s.objects import manifest

_TOPOLOGY_GROUP = "topology.volcano.sh"
_FLEET, _CANARY = "fleet-metrics", "write-canary"
_SERVICES, _IDLE = "service-metrics", "idle-jobs"


def charts(plan: Plan) -> Mapping[str, Sequence[PlatformChart]]:
    """Return charts of the measuring functions' rights; teams' namespaces have their own chart."""
    function = plan.fleet_metrics
    return {
        "platform": [
            PlatformChart(name=_FLEET, published=_fleet_objects(function)),
            *_service_charts(function.group, function.service_namespaces),
            *_idle_charts(plan),
            *_canary_charts(plan.write_latency),
        ],
        "teams": [*_service_charts(function.group, function.team_namespaces, prefix="team-")],
    }


def write_canary_objects(
    plan: WriteLatencyPlan, *, namespace: NamespacePlan, kubernetes_version: str
) -> Sequence[JsonObject]:
    """Return the objects of a write canary, its namespace first.

    Args:
        plan: The canary.
        namespace: Its namespace.
        kubernetes_version: Minor version of the cluster.
    """
    return [*namespace_objects([namespace], kubernetes_version), *_canary_objects(plan)]


def _service_charts(
    group: str, namespaces: Sequence[str], *, prefix: str = ""
) -> Iterator[PlatformChart]:
    if namespaces:
        objects = [*_service_objects(group, namespaces)]
        yield PlatformChart(name=f"{prefix}{_SERVICES}", published=objects)


def _canary_charts(plan: WriteLatencyPlan | None) -> Iterator[PlatformChart]:
    if plan is not None:
        yield PlatformChart(name=_CANARY, published=_canary_objects(plan))


def _fleet_objects(plan: FleetMetricsPlan) -> list[JsonObject]:
    """Return the rights of the function that measures the fleet.

    The function lists nodes, pods, queues and HyperNodes, and makes and deletes one HyperNode.
    """
    return [
        role(plan.group, _fleet_rules(plan), component=_FLEET),
        binding(plan.group, groups([plan.group]), component=_FLEET),
    ]


def _fleet_rules(plan: FleetMetricsPlan) -> Iterator[Json]:
    yield rule("nodes", "pods", verbs=("list",))
    for group, kind in plan.queue_kinds.items():
        yield rule(kind, verbs=("list",), group=group)
    if (touched := plan.touched_group) is not None:
        # RBAC cannot limit the right to create by an object's name.
        yield rule("hypernodes", verbs=("list", "create"), group=_TOPOLOGY_GROUP)
        yield rule("hypernodes", verbs=("delete",), group=_TOPOLOGY_GROUP, names=(touched,))


def _service_objects(group: str, namespaces: Sequence[str]) -> Iterator[JsonObject]:
    """Yield the measuring function's right to read the metrics of services' pods by the API server.

    Args:
        group: Kubernetes group of the function.
        namespaces: Namespaces of the services.
    """
    # RBAC knows neither ports nor paths: the verb `get` allows to read whatever a pod serves.
    rules = [rule("pods/proxy", verbs=("get",))]
    for namespace in namespaces:
        yield role(_SERVICES, rules, namespace=namespace, component=_FLEET)
        yield _group_binding(_SERVICES, group, namespace, _FLEET)


def _idle_charts(plan: Plan) -> Iterator[PlatformChart]:
    if plan.ledger is not None and (idle := plan.ledger.settings.idle) is not None:
        objects = [*_idle_objects(plan.fleet_metrics, idle)]
        yield PlatformChart(name=_IDLE, published=objects)


def _idle_objects(plan: FleetMetricsPlan, idle: IdleSettings) -> Iterator[JsonObject]:
    """Yield the measuring function's right to annotate idle jobs, or to end them."""
    rules = [rule(kind, verbs=("list", "patch"), group=group) for group, kind, _ in idle.kinds]
    if idle.ends and "kueue.x-k8s.io" in plan.queue_kinds:
        rules.append(rule("workloads", verbs=("list", "patch"), group="kueue.x-k8s.io"))
    if idle.ends and "scheduling.volcano.sh" in plan.queue_kinds:
        rules.append(rule("commands", verbs=("create",), group="bus.volcano.sh"))
    for namespace in plan.job_namespaces:
        yield role(_IDLE, rules, namespace=namespace, component=_FLEET)
        yield _group_binding(_IDLE, plan.group, namespace, _FLEET)
    if not idle.ends:
        # RBAC cannot limit a change to annotations.
        asks = f'request.userInfo.groups.exists(group, group == "{plan.group}")'
        kinds = [
            _admission.Kinds(group=group, version=version, resources=(kind,))
            for group, kind, version in idle.kinds
        ]
        yield _admission.policy(
            f"ultrascale-{_IDLE}",
            component=_FLEET,
            kinds=kinds,
            operations=("UPDATE",),
            conditions={"the-function-asks": f"has(request.userInfo.groups) && {asks}"},
            validations=[("object.spec == oldObject.spec", "observability.idle_jobs tells alone")],
            reason="Forbidden",
        )
        yield _admission.binding(
            f"ultrascale-{_IDLE}", component=_FLEET, namespaces=plan.job_namespaces
        )


def _canary_objects(plan: WriteLatencyPlan) -> list[JsonObject]:
    """Return the Lease that the write canary writes, and the right to write it.

    The manifest of the Lease names no holder, so that applying it again changes no holder.
    """
    own = rule("leases", verbs=("patch",), group="coordination.k8s.io", names=(plan.lease,))
    return [
        manifest("Lease", plan.lease, namespace=plan.namespace, component=_CANARY),
        role(plan.lease, [own], namespace=plan.namespace, component=_CANARY),
        _group_binding(plan.lease, plan.function.group, plan.namespace, _CANARY),
    ]


def _group_binding(role: str, group: str, namespace: str, component: str) -> JsonObject:
    return binding(
        role, groups([group]), role_kind="Role", namespace=namespace, component=component
    )
