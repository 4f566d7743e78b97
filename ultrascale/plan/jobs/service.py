"""Plan of a service: replicas behind a port, started again whenever they end."""

import math
from collections.abc import Iterator, Sequence

from ultrascale import config
from ultrascale.catalog import cold_start, runtime_environment, serving_memory, vllm
from ultrascale.core.table import all_parts
from ultrascale.plan import capacity, names
from ultrascale.plan.jobs import command, drain, nodes, queueing, replicas, vllm_rules
from ultrascale.plan.jobs.autoscale import plan_autoscale
from ultrascale.plan.jobs.controllers import controller_of
from ultrascale.plan.jobs.nodes import NodeShare
from ultrascale.plan.jobs.notes import notes_of
from ultrascale.plan.jobs.pods import plan_pod
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.jobs.rules import rule
from ultrascale.plan.jobs.topology import topology_of
from ultrascale.plan.jobs.vllm import neuron_release
from ultrascale.plan.model import JobPlan, PoolPlan, RolePlan, RoutePlan, ServingPlan
from ultrascale.plan.model.services import ModelPlan
from ultrascale.plan.network.policies import control_plane_ranges

Mistakes = Iterator[config.Mistake]

_CONTAINER = "main"
_STARTUP_SECONDS = 600
# Nothing says how large the model is.
_STARTUP_OF_ANY_MODEL_SECONDS = 1800


@rule
def service_starts_in_time(
    request: JobRequest, job: config.ServiceJob, share: NodeShare
) -> Mistakes:
    """Yield a service whose replicas Kueue would evict while they load their model."""
    model = request.model(share)
    startup = job.startup_seconds
    if startup is None:
        load = 0.0 if model is None or model.load_seconds is None else model.load_seconds
        startup = _STARTUP_SECONDS + math.ceil(2 * (load + _compile_seconds_of(job, share, model)))
    yield from queueing.starts_in_time(request, startup)


def startup_seconds(job: config.ServiceJob, share: NodeShare, model: ModelPlan | None) -> int:
    """Return the time in which a server has to start.

    Args:
        job: The service.
        share: Each pod's share of a node.
        model: Its model; None where it states none.
    """
    if job.startup_seconds is not None:
        return job.startup_seconds
    compiles = 2 * _compile_seconds_of(job, share, model)
    if model is None:
        unknown = config.server_of(job) == "vllm"
        own = _STARTUP_OF_ANY_MODEL_SECONDS if unknown else _STARTUP_SECONDS
        return own + math.ceil(compiles)
    return _STARTUP_SECONDS + math.ceil(model.slow_load_seconds + compiles)


def _compile_seconds_of(job: config.ServiceJob, share: NodeShare, model: ModelPlan | None) -> float:
    return compile_seconds(job, share, None if model is None else model.weights_bytes)


def compile_seconds(
    job: config.ServiceJob, share: NodeShare, weights_bytes: int | None = None
) -> float:
    """Return the time in which each start compiles graphs for Neuron; 0 where it compiles none.

    Args:
        job: The service.
        share: Each pod's share of a node.
        weights_bytes: Size of the model's weight files; None where unknown.
    """
    if config.server_of(job) != "vllm" or share.accelerator != names.NEURON_DEVICE:
        return 0
    if runtime_environment.COMPILED_GRAPHS in job.env:
        return 0
    release = neuron_release(job)
    if release is not None and release >= serving_memory.NEURON_PLUGIN_SINCE:
        return cold_start.NEURON_PLUGIN_COMPILE_SECONDS
    gigabytes = cold_start.NEURON_MODEL_GB if weights_bytes is None else weights_bytes / 1e9
    return gigabytes * cold_start.NEURON_COMPILE_SECONDS_PER_GB


def plan_service(request: JobRequest, job: config.ServiceJob) -> JobPlan:
    """Plan a service: replicas behind a port, started again whenever they end."""
    pools = request.nodes
    share = nodes.node_share(job, pools)
    controller = controller_of(request)
    model = request.model(share)
    startup = startup_seconds(job, share, model)
    surge, replaced = _update(job, pools, share)
    pod = replicas.with_start(plan_pod(request, pools, share), job)
    pod = command.with_look(pod) if nodes.nccl_uses_efa(job, share) else pod
    serving = ServingPlan(
        replicas=job.least_replicas,
        nodes=job.nodes,
        port=job.port,
        health_path=_health_path(job),
        startup_seconds=startup,
        drain_seconds=drain.forget_seconds(job),
        drain=drain.hook_of(job),
        liveness=drain.liveness_of(job),
        max_unavailable=drain.max_unavailable(job, pools),
        surge=surge,
        replaced=replaced,
        # Where no policy closes the namespace, this one alone would close the service to it.
        allow_from=job.allow_from if request.policies_of_jobs else (),
        measured_from=_measured_from(request, job),
        server=config.server_of(job),
        autoscale=plan_autoscale(request, job, startup_seconds=startup),
        route=_route(request, job),
    )
    return JobPlan(
        name=request.name,
        namespace=request.namespace,
        kind=job.kind,
        controller=controller.name,
        roles=(
            RolePlan(
                name=_CONTAINER,
                pods=job.least_replicas * job.nodes,
                container=_CONTAINER,
                pod=pod,
            ),
        ),
        queue=request.queue,
        local_queue=queueing.local_queue_of(request),
        topology=topology_of(request, pools),
        serving=serving,
        notes=(
            *notes_of(request, pools, share, controller),
            *(() if model is None else model.notes),
            *replicas.notes_of(job, pools),
            *vllm_rules.notes_of(job, share),
        ),
    )


def _route(request: JobRequest, job: config.ServiceJob) -> RoutePlan | None:
    closed = request.policies_of_jobs
    routes = (part.route(request.cluster, job, closed=closed) for part in all_parts())
    return next((route for route in routes if route is not None), None)


def _measured_from(request: JobRequest, job: config.ServiceJob) -> tuple[str, ...]:
    if not request.policies_of_jobs or config.server_of(job) != "vllm":
        return ()
    return control_plane_ranges(request.cluster.network)


def _health_path(job: config.ServiceJob) -> str | None:
    known = vllm.HEALTH_PATH if config.server_of(job) == "vllm" else None
    return job.health_path or known


def _update(
    job: config.ServiceJob, pools: Sequence[PoolPlan], share: NodeShare
) -> tuple[bool, int | str]:
    """Return whether an update adds a replica first, and the most that it may take away before.

    A service that follows the load fills its pools at its most replicas alone: with a share of less
    than one replica, an update takes none away there.
    """
    if job.queue is not None:
        return False, 1
    if _has_room(pools, share, job, job.most_replicas):
        return True, 0
    if _has_room(pools, share, job, job.least_replicas):
        return True, f"{-(-100 // job.most_replicas)}%"
    return False, 1


def _has_room(
    pools: Sequence[PoolPlan], share: NodeShare, job: config.ServiceJob, replicas: int
) -> bool:
    """Return whether another replica gets nodes; reserved ones are taken, or soon will be."""
    if not share.accelerators:
        return True
    grows = any(
        pool.role != "reserved" and pool.sized_by in capacity.SIZED_BY_PODS for pool in pools
    )
    return grows and (replicas + 1) * job.nodes <= nodes.most_pods(pools, share)
