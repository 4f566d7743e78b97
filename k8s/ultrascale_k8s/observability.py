"""Rights of the measuring functions, given to the groups of their access entries."""

from collections.abc import Iterator, Mapping, Sequence

from ultrascale.documents import Json, JsonObject
from ultrascale.parts.observability.model import FleetMetricsPlan, Plan, WriteLatencyPlan
from ultrascale.plan.model import NamespacePlan
from ultrascale_k8s._platform_chart import PlatformChart
from ultrascale_k8s._rbac import binding, groups, role, rule
from ultrascale_k8s.namespaces import namespace_objects
from ultrascale_k8s.objects import manifest

_TOPOLOGY_GROUP = "topology.volcano.sh"
_FLEET, _CANARY = "fleet-metrics", "write-canary"
_SERVICES = "service-metrics"


def charts(plan: Plan) -> Mapping[str, Sequence[PlatformChart]]:
    """Return charts of the measuring functions' rights; teams' namespaces have their own chart."""
    function = plan.fleet_metrics
    return {
        "platform": [
            PlatformChart(name=_FLEET, published=_fleet_objects(function)),
            *_service_charts(function.group, function.service_namespaces),
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
