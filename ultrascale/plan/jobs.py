"""What follows from a job and the cluster that it runs in."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from ultrascale import config
from ultrascale.plan import capacity, job_command, job_mistakes, job_nodes
from ultrascale.plan.job_command import CachePlan, Meeting
from ultrascale.plan.job_nodes import NodeShare
from ultrascale.plan.job_parts import divide
from ultrascale.plan.job_pods import plan_pod
from ultrascale.plan.job_request import JobRequest
from ultrascale.plan.model import JobPlan, PoolPlan, ServingPlan

# EC2 takes Spot nodes at any time, and each of them restarts the job.
_RESTARTS, _RESTARTS_ON_SPOT, _RETRIES = 10, 100, 3
_RESTARTS_OF_COMPILER = 2
_MAX_UNAVAILABLE = 1
_CONTAINER = "main"
_INDEXED_FIELDS: Mapping[str, str] = {job_command.POD_IP: "status.podIP"}


# Keys by which a job says on what nodes it runs.
_OF_NODES = frozenset({"pool", "node_selector", "prefer", "resources", "capacity"})


def mistakes_of(request: JobRequest, wrong: Collection[str] = ()) -> Iterator[config.Mistake]:
    """Yield what is wrong with a job where it is to run.

    Args:
        request: The job.
        wrong: Keys of the job with mistakes that are known: what rests on them is not judged.

    Raises:
        CatalogError: No source states a value of an instance type.
    """
    job = request.job
    pools = job_nodes.nodes_of(job, request.pools)
    yield from job_mistakes.nothing_is_left_out(job)
    yield from job_mistakes.name_is_free(request)
    yield from job_mistakes.program_is_named(job)
    yield from job_mistakes.words_are_short(job)
    yield from job_mistakes.claims_have_a_place_each(request)
    yield from job_mistakes.image_can_be_pulled(request)
    yield from job_mistakes.image_knows_the_rendezvous(request)
    yield from job_mistakes.graphs_have_a_cache(request)
    if isinstance(job, config.TrainingJob):
        yield from job_mistakes.meets_anew(job, request.backend, gang=request.gang)
        yield from job_mistakes.elastic_job_is_one(job)
    if not _OF_NODES.isdisjoint(wrong):
        return
    unnamed = [*job_mistakes.nodes_are_named(job, pools)]
    yield from unnamed
    if unnamed:
        return
    yield from job_mistakes.image_suits_nodes(request, pools)
    share = job_nodes.node_share(job, pools)
    too_small = [*job_mistakes.nodes_have_memory(share, pools)]
    yield from too_small
    if too_small:
        return
    yield from job_mistakes.resources_fit(job, share, pools)
    if "nodes" not in wrong:
        yield from job_mistakes.nodes_are_there(job, share, pools)
    if isinstance(job, config.TrainingJob):
        yield from job_mistakes.pods_start_together(job, share, pools, gang=request.gang)
        yield from job_mistakes.efa_stays_in_its_pool(job, share, pools)
    requests = job_nodes.requests_of(job, share)
    yield from job_mistakes.queue_holds(request, requests, _least_pods(job))


def plan_job(request: JobRequest) -> JobPlan:
    """Plan a job that has no mistakes.

    Raises:
        CatalogError: No source states a value of an instance type.
    """
    job = request.job
    pools = job_nodes.nodes_of(job, request.pools)
    share = job_nodes.node_share(job, pools)
    plan = JobPlan(
        name=request.name,
        namespace=job.namespace,
        kind=job.kind,
        controller=_controller(request),
        pods=1,
        container=_CONTAINER,
        pod=plan_pod(request, pools, share),
        parts=(),
        service_port=None,
        queue=request.queue,
        restarts=0,
        mistake_exit_code=None,
        elastic=False,
        min_success=None,
        topology=False,
        ttl_seconds_after_finished=0,
        serving=None,
        notes=(),
    )
    match job:
        case config.ServiceJob():
            return _service(job, plan, pools, share)
        case config.BatchJob():
            return _batch(request, job, plan, pools)
        case config.TrainingJob():
            return _training(request, job, plan, pools, share)


def _controller(request: JobRequest) -> Literal["volcano", "indexed", "deployment"]:
    if isinstance(request.job, config.ServiceJob):
        return "deployment"
    return "volcano" if request.gang else "indexed"


def _has_room(pools: Sequence[PoolPlan], share: NodeShare, replicas: int) -> bool:
    """Return whether a pod too many gets a node. Reserved nodes are all taken, or soon will be."""
    if not share.accelerators:
        return True
    grows = any(
        pool.role != "reserved" and pool.sized_by in capacity.SIZED_BY_PODS for pool in pools
    )
    return grows and replicas < job_nodes.most_pods(pools, share)


def _service(
    job: config.ServiceJob, plan: JobPlan, pools: Sequence[PoolPlan], share: NodeShare
) -> JobPlan:
    serving = ServingPlan(
        replicas=job.replicas,
        port=job.port,
        health_path=job.health_path,
        startup_seconds=job.startup_seconds,
        max_unavailable=_MAX_UNAVAILABLE,
        surge=_has_room(pools, share, job.replicas),
        allow_from=job.allow_from,
    )
    return replace(plan, pods=job.replicas, serving=serving)


def _batch(
    request: JobRequest, job: config.BatchJob, plan: JobPlan, pools: Sequence[PoolPlan]
) -> JobPlan:
    division = divide(name=plan.name, role=plan.container, pods=1, min_available=1)
    return replace(
        plan,
        parts=division.parts if request.gang else (),
        restarts=_retries(request, job, pools),
        ttl_seconds_after_finished=job.ttl_seconds_after_finished,
    )


def _retries(request: JobRequest, job: config.BatchJob, pools: Sequence[PoolPlan]) -> int:
    if job.retries is not None:
        return job.retries
    # Volcano counts the loss of a node too; Kubernetes' own Job does not.
    spot = any(pool.capacity_type == "spot" for pool in pools)
    return _RESTARTS_ON_SPOT if spot and request.gang else _RETRIES


def _training(
    request: JobRequest,
    job: config.TrainingJob,
    plan: JobPlan,
    pools: Sequence[PoolPlan],
    share: NodeShare,
) -> JobPlan:
    least = _least_pods(job)
    division = divide(name=plan.name, role=job.role, pods=job.nodes, min_available=least)
    host_list = request.gang and division.parts[0].host_list
    whole = len(division.parts) == 1
    meeting = _meeting(request, job, host_list=host_list, whole=whole)
    pod = plan.pod
    if job.script is not None:
        pod = replace(pod, command=_command(request, job, share, meeting))
    elif job.nodes > 1:
        host = _first_pod(request, job, host_list=host_list)
        pod = replace(pod, env={job_command.RANK_ZERO_HOST: host, **pod.env})
    fields = job_command.volcano_fields() if request.gang else _INDEXED_FIELDS
    spot = any(pool.capacity_type == "spot" for pool in pools)
    restarts = job.restarts.job
    if restarts is None:
        restarts = _RESTARTS_ON_SPOT if spot else _RESTARTS
        # What the compiler refuses it refuses again.
        restarts = _RESTARTS_OF_COMPILER if request.precompile else restarts
        # Volcano counts each pod of an elastic job, and all of them fail with the host of c10d.
        restarts *= 1 if job.min_nodes is None else job.nodes
    return replace(
        plan,
        pods=job.nodes,
        container=job.role,
        pod=replace(pod, fields=fields),
        parts=division.parts if request.gang else (),
        service_port=job_command.RENDEZVOUS_PORT if job.nodes > 1 and not host_list else None,
        restarts=restarts,
        mistake_exit_code=job_command.MISTAKE_EXIT_CODE if job.script is not None else None,
        elastic=job.min_nodes is not None,
        # torchrun's agents end together, with the last step: a pod that found no node is not
        # waited for. Those of another program may each have work left.
        min_success=job.min_nodes if job.script is not None else None,
        topology=request.cluster.scheduling.topology_aware and job.nodes > 1,
        ttl_seconds_after_finished=job.ttl_seconds_after_finished,
        notes=(
            *(division.notes if request.gang else ()),
            *_notes(request, job, pools, share),
        ),
    )


def _least_pods(job: config.AnyJob) -> int:
    if not isinstance(job, config.TrainingJob):
        return 1
    return job.nodes if job.min_nodes is None else job.min_nodes


def _meeting(
    request: JobRequest, job: config.TrainingJob, *, host_list: bool, whole: bool
) -> Meeting | None:
    if job.nodes == 1:
        return None
    # Parts of a job count their restarts for themselves, and meet under one name.
    run = request.name
    if request.gang and whole:
        run = job_command.run_of_volcano(run, attempted=job.min_nodes is None)
    if request.backend != "c10d":
        return job_command.meeting_of_etcd(job, run=run, backend=request.backend)
    index = job_command.VOLCANO_INDEX if request.gang else job_command.INDEXED_INDEX
    host = _first_pod(request, job, host_list=host_list)
    port = job_command.RENDEZVOUS_PORT
    return Meeting(backend="c10d", host=host, port=port, index=index, run=run)


def _first_pod(request: JobRequest, job: config.TrainingJob, *, host_list: bool) -> str:
    """Return the host name by which all pods of a job reach the one of index 0."""
    if not request.gang:
        return f"{request.name}-0.{request.name}"
    return f"{request.name}-{job.role}-0.{request.name}" if host_list else request.name


def _command(
    request: JobRequest, job: config.TrainingJob, share: NodeShare, meeting: Meeting | None
) -> tuple[str, ...]:
    processes = job.processes_per_node or share.processes
    cache, extra = None, ()
    if (said := job.compile_cache) is not None:
        cache = CachePlan(
            path=said.path or f"{request.mounts[0].mount_path}/{job_command.CACHE_FOLDER}",
            model=said.model,
            cores=job.nodes * processes,
            allow_cold=said.allow_cold,
            compiles=request.precompile,
        )
        extra = said.precompile_args if request.precompile else ()
    return job_command.torchrun(
        job,
        name=request.name,
        processes=processes,
        meeting=meeting,
        cache=cache,
        args=(*job.args, *extra),
    )


def _notes(
    request: JobRequest, job: config.TrainingJob, pools: Sequence[PoolPlan], share: NodeShare
) -> Iterator[str]:
    where = " and ".join(sorted({pool.pool for pool in pools}))
    if job.nodes > 1 and share.accelerators and not job_nodes.efa_of(job, share):
        why = next((pool.without_efa for pool in pools if pool.without_efa), "none is asked for")
        yield (
            f"Pods on {where} have no EFA interface ({why}): what they tell each other goes over "
            "TCP, many times slower."
        )
    if not job.min_nodes and any(pool.capacity_type == "spot" for pool in pools) and job.nodes > 1:
        yield (
            f"EC2 takes Spot nodes of {where} one by one, and the job restarts with each; "
            "min_nodes lets it go on with fewer."
        )
    if job.min_nodes is not None and job.script is not None and request.backend == "c10d":
        yield (
            "With c10d the nodes meet at the pod of index 0: when its node is lost, the others end "
            "too and wait for a new one; rendezvous: etcd lets them go on."
        )
