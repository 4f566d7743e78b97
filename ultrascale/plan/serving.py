"""Controllers of services: those that services need, and their sizes."""

from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec.structs import replace

from ultrascale import config
from ultrascale.catalog import keda, leaderworkerset
from ultrascale.frozen import Frozen
from ultrascale.plan.model import (
    ControllerPlan,
    KedaPlan,
    LeaderWorkerSetPlan,
    PoolPlan,
    ServingControllersPlan,
)


class ServingSizes(Frozen):
    """Sizes of the controllers in clusters of up to so many nodes."""

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


_CONTROLLERS: tuple[config.ServingController, ...] = ("keda", "leader-worker-set")


def controllers_of(cluster: config.Cluster) -> tuple[config.ServingController, ...]:
    """Return the controllers of services: those that the file names, or that its services need."""
    services = [job for job in cluster.jobs.values() if isinstance(job, config.ServiceJob)]
    return controllers_for(cluster.serving, services)


def controllers_for(
    serving: config.Serving, services: Iterable[config.ServiceJob]
) -> tuple[config.ServingController, ...]:
    """Return the controllers of services: those that the file names, or that ``services`` need."""
    if serving.controllers is not None:
        return tuple(serving.controllers)
    needed = {each for service in services for each in config.controllers_needed(service)}
    return tuple(each for each in _CONTROLLERS if each in needed)


def plan_serving(
    cluster: config.Cluster, pools: Sequence[PoolPlan], namespaces: tuple[str, ...]
) -> ServingControllersPlan | None:
    """Return the controllers of services; None where none is needed.

    Args:
        cluster: The cluster file.
        pools: Its pools, by whose nodes the controllers are sized.
        namespaces: Namespaces whose services may be scaled; empty: all.
    """
    wanted = controllers_of(cluster)
    if not wanted:
        return None
    size = serving_sizes(sum(pool.max_nodes for pool in pools))
    return ServingControllersPlan(
        keda=_keda(size, namespaces) if "keda" in wanted else None,
        leader_worker_set=LeaderWorkerSetPlan(
            chart=leaderworkerset.CHART,
            version=leaderworkerset.VERSION,
            image=f"{leaderworkerset.IMAGE}:v{leaderworkerset.VERSION}",
            manager=size.leader_worker_set,
        )
        if "leader-worker-set" in wanted
        else None,
    )


def serving_sizes(nodes: int) -> ServingSizes:
    """Return the sizes of the controllers of a cluster of ``nodes`` nodes."""
    return next((each for each in _SIZES if nodes <= each.nodes), _SIZES[-1])


def parts_of(
    controllers: Collection[config.ServingController], nodes: int
) -> Iterator[tuple[str, tuple[ControllerPlan, ...]]]:
    """Yield name and programs of each of ``controllers`` in a cluster of ``nodes`` nodes."""
    size = serving_sizes(nodes)
    if "keda" in controllers:
        # Its webhooks are as large as its server of metrics.
        yield "KEDA", (size.operator, size.server, size.server)
    if "leader-worker-set" in controllers:
        yield "LeaderWorkerSet", (size.leader_worker_set,)


def _keda(size: ServingSizes, namespaces: tuple[str, ...]) -> KedaPlan:
    operator, metrics, webhooks = (f"{image}:{keda.VERSION}" for image in keda.IMAGES)
    return KedaPlan(
        chart=keda.CHART,
        version=keda.VERSION,
        operator_image=operator,
        metrics_image=metrics,
        webhooks_image=webhooks,
        namespaces=namespaces,
        operator=size.operator,
        server=size.server,
    )
