"""Controllers of services: those that services need, and their sizes."""

from collections.abc import Collection, Mapping

from msgspec.structs import replace

from ultrascale import config
from ultrascale.catalog import leaderworkerset
from ultrascale.frozen import Frozen
from ultrascale.parts.services import keda
from ultrascale.parts.services.model import KedaPlan, LeaderWorkerSetPlan, Plan
from ultrascale.parts.services.section import ServingController, controllers_of
from ultrascale.plan.model import ClusterPlan, ControllerPlan
from ultrascale.plan.namespaces import scaled_namespaces


class ServingSizes(Frozen):
    """Sizes of the controllers in clusters of up to a number of nodes."""

    nodes: int
    operator: ControllerPlan
    server: ControllerPlan
    leader_worker_set: ControllerPlan


# KEDA keeps the EndpointSlices and Deployments of its namespaces in memory, LeaderWorkerSet the
# pods of its replicas. KEDA's rates are its own defaults up to the first size.
# Source: https://github.com/kedacore/keda/blob/v2.20.2/cmd/operator/main.go
_SMALL = ServingSizes(
    nodes=1_000,
    operator=ControllerPlan(replicas=2, cpu="200m", memory="512Mi", client_qps=20, client_burst=30),
    server=ControllerPlan(replicas=2, cpu="100m", memory="256Mi", client_qps=20, client_burst=30),
    leader_worker_set=ControllerPlan(
        replicas=2,
        cpu="500m",
        memory="1Gi",
        client_qps=leaderworkerset.CLIENT_QPS,
        client_burst=leaderworkerset.CLIENT_BURST,
    ),
)
_SIZES = (
    _SMALL,
    ServingSizes(
        nodes=20_000,
        operator=replace(_SMALL.operator, cpu="1", memory="2Gi", client_qps=100, client_burst=200),
        server=replace(_SMALL.server, cpu="200m", memory="512Mi"),
        leader_worker_set=replace(_SMALL.leader_worker_set, cpu="1", memory="4Gi"),
    ),
    ServingSizes(
        nodes=100_000,
        operator=replace(_SMALL.operator, cpu="2", memory="8Gi", client_qps=200, client_burst=400),
        server=replace(_SMALL.server, cpu="500m", memory="1Gi"),
        leader_worker_set=replace(_SMALL.leader_worker_set, cpu="2", memory="16Gi"),
    ),
)


def plan_controllers(cluster: config.Cluster, core: ClusterPlan) -> Plan | None:
    """Return the controllers of services; None where none is needed."""
    wanted = controllers_of(cluster)
    if not wanted:
        return None
    size = serving_sizes(sum(pool.max_nodes for pool in core.all_pools))
    groups = LeaderWorkerSetPlan(
        chart=core.chart(leaderworkerset.CHART),
        version=leaderworkerset.VERSION,
        image=core.image(f"{leaderworkerset.IMAGE}:v{leaderworkerset.VERSION}"),
        manager=size.leader_worker_set,
    )
    return Plan(
        keda=_keda(size, scaled_namespaces(cluster), core) if "keda" in wanted else None,
        leader_worker_set=groups if "leader-worker-set" in wanted else None,
    )


def serving_sizes(nodes: int) -> ServingSizes:
    """Return the sizes of the controllers for ``nodes`` nodes."""
    return next((sizes for sizes in _SIZES if nodes <= sizes.nodes), _SIZES[-1])


def programs_of(
    controllers: Collection[ServingController], nodes: int
) -> Mapping[str, tuple[ControllerPlan, ...]]:
    """Return the programs of each of ``controllers`` for ``nodes`` nodes, by name."""
    size = serving_sizes(nodes)
    programs: dict[str, tuple[ControllerPlan, ...]] = {}
    if "keda" in controllers:
        # Its webhooks are as large as its server of metrics.
        programs["KEDA"] = (size.operator, size.server, size.server)
    if "leader-worker-set" in controllers:
        programs["LeaderWorkerSet"] = (size.leader_worker_set,)
    return programs


def _keda(size: ServingSizes, namespaces: tuple[str, ...], core: ClusterPlan) -> KedaPlan:
    operator, metrics, webhooks = (core.image(f"{image}:{keda.VERSION}") for image in keda.IMAGES)
    return KedaPlan(
        chart=core.chart(keda.CHART),
        version=keda.VERSION,
        operator_image=operator,
        metrics_image=metrics,
        webhooks_image=webhooks,
        namespaces=namespaces,
        operator=size.operator,
        server=size.server,
    )
