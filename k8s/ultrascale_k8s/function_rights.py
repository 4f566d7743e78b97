"""Rights of AWS Lambda functions in the cluster, by the groups of their access entries."""

from collections.abc import Iterator, Sequence

from ultrascale.documents import Json, JsonObject
from ultrascale.plan.model import FleetMetricsPlan, NodePoolPlan, WriteLatencyPlan
from ultrascale.plan.names import calendar_group
from ultrascale_k8s._rbac import binding, groups, role, rule
from ultrascale_k8s.objects import manifest

_TOPOLOGY_GROUP = "topology.volcano.sh"
_CALENDAR, _FLEET, _CANARY = "block-calendar", "fleet-metrics", "write-canary"
_SERVICES = "service-metrics"


def block_calendar_objects(plan: NodePoolPlan) -> list[JsonObject]:
    """Return the rights of the block calendar of a static NodePool.

    It scales the NodePool, counts its nodes, cordons them and warns. RBAC cannot limit nodes by
    their labels: the function may cordon any node, and cordons those of its pool.
    """
    name = calendar_group(plan.name)
    rules = [
        rule("nodepools", verbs=("get", "patch"), group="karpenter.sh", names=(plan.name,)),
        rule("nodeclaims", verbs=("list",), group="karpenter.sh"),
        rule("nodes", verbs=("list", "patch")),
        rule("pods", verbs=("list",)),
        rule("events", verbs=("create",)),
    ]
    return [
        role(name, rules, component=_CALENDAR),
        binding(name, groups([name]), component=_CALENDAR),
    ]


def fleet_metrics_objects(plan: FleetMetricsPlan) -> list[JsonObject]:
    """Return the rights of the function that measures the fleet.

    It lists nodes, pods, queues and HyperNodes, and touches one of these.
    """
    return [
        role(plan.group, _fleet_rules(plan), component=_FLEET),
        binding(plan.group, groups([plan.group]), component=_FLEET),
    ]


def _fleet_rules(plan: FleetMetricsPlan) -> Iterator[Json]:
    yield rule("nodes", "pods", verbs=("list",))
    for group, kind in plan.queue_kinds.items():
        yield rule(kind, verbs=("list",), group=group)
    if (touched := plan.touched_hyper_node) is not None:
        # RBAC cannot limit what is created by its name.
        yield rule("hypernodes", verbs=("list", "create"), group=_TOPOLOGY_GROUP)
        yield rule("hypernodes", verbs=("delete",), group=_TOPOLOGY_GROUP, names=(touched,))


def service_metrics_objects(
    plan: FleetMetricsPlan, namespaces: Sequence[str]
) -> Iterator[JsonObject]:
    """Yield the right of that function to ask the pods of services, behind the API server.

    Args:
        plan: The function.
        namespaces: Namespaces of the services.
    """
    # RBAC knows neither ports nor paths: to get is to read whatever a pod serves.
    rules = [rule("pods/proxy", verbs=("get",))]
    for namespace in namespaces:
        yield role(_SERVICES, rules, namespace=namespace, component=_FLEET)
        yield _group_binding(_SERVICES, plan.group, namespace, _FLEET)


def write_canary_rights(plan: WriteLatencyPlan) -> list[JsonObject]:
    """Return the Lease that the write canary writes, and its right to it.

    The Lease has no holder, so that applying it again takes it from nobody.
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
