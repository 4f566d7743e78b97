"""Plan of a job on the cluster that it runs in."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

from ultrascale import config
from ultrascale.catalog import jobset, kubeflow, training_operator, volcano
from ultrascale.documents import JsonObject
from ultrascale.plan import capacity
from ultrascale.plan.jobs import (
    autoscale,
    checkpoints,
    claims,
    command,
    dev,
    gate,
    governance,
    mistakes,
    nodes,
    output,
    queueing,
    recipes,
    rendezvous,
    scratch,
    service,
    tiers,
    topology,
)
from ultrascale.plan.jobs.command import CachePlan, Meeting
from ultrascale.plan.jobs.deadline import with_deadline
from ultrascale.plan.jobs.nodes import NodeShare
from ultrascale.plan.jobs.notes import notes_of
from ultrascale.plan.jobs.parts import divide
from ultrascale.plan.jobs.pods import plan_pod, shutdown_seconds
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.jobs.restarts import restarts_of
from ultrascale.plan.jobs.roles import job_of, of_all_roles, of_role, unite
from ultrascale.plan.jobs.topology import topology_of
from ultrascale.plan.model import JobPlan, PoolPlan
from ultrascale.plan.model.jobs import (
    ArrayPlan,
    Controller,
    ElasticPlan,
    LogRulePlan,
    OperatorPlan,
    PodPlan,
    RolePlan,
)
from ultrascale.plan.models import served

_RETRIES, _RETRIES_ON_SPOT = 3, 100
_CONTAINER = "main"

# Keys by which a job says on what nodes it runs.
_OF_NODES = frozenset({"pool", "node_selector", "prefer", "team", "resources", "capacity"})


def mistakes_of(request: JobRequest, wrong: Collection[str] = ()) -> Iterator[config.Mistake]:
    """Yield what is wrong with a job where it is to run.

    Args:
        request: The job.
        wrong: Keys of the job with mistakes that are known: what rests on them is not judged.

    Raises:
        CatalogError: No source states a value of an instance type.
    """
    if parts := request.roles:
        yield from _of_roles(request, parts, wrong)
        return
    request = recipes.named(request)
    job = request.job
    yield from mistakes.name_is_free(request)
    yield from mistakes.pod_names_fit(request)
    yield from mistakes.rows_take_turns(request)
    yield from mistakes.program_is_named(job)
    yield from mistakes.words_are_short(job)
    yield from claims.mistakes_of(request)
    yield from mistakes.claims_have_a_place_each(request)
    yield from mistakes.image_can_be_pulled(request)
    if not request.operated:
        yield from mistakes.image_knows_the_rendezvous(request)
    yield from mistakes.graphs_have_a_cache(request)
    if request.role is None:
        yield from output.mistakes_of(request)
    yield from mistakes.queue_is_named(request)
    if isinstance(job, config.ServiceJob):
        yield from service.mistakes_of(request, job)
        yield from served.path_mistakes(request, job)
    if isinstance(job, config.TrainingJob):
        if not request.operated:
            yield from rendezvous.mistakes_of(
                job, request.backend, request.engine, pods_come_back=request.pods_come_back
            )
        yield from mistakes.elastic_job_is_one(job, request.engine)
        yield from mistakes.stragglers_restart_jobs(request)
    if not _OF_NODES.isdisjoint(wrong):
        return
    yield from governance.mistakes_of(request, request.nodes)
    if tiers.lacks_queue(request):
        return
    of_queue = [*queueing.mistakes_of(request)]
    unnamed = of_queue or [*mistakes.nodes_are_named(request, request.nodes)]
    yield from unnamed
    if not unnamed:
        # Tiers may have a mistake in common.
        every = [_of_nodes(each, wrong) for each in tiers.on_each_tier(request)]
        yield from dict.fromkeys(mistake for found in every for mistake in found)


def _of_roles(
    request: JobRequest, parts: Sequence[JobRequest], wrong: Collection[str]
) -> Iterator[config.Mistake]:
    """Yield what is wrong with roles one by one, and then with all of them together."""
    if "roles" in wrong:
        return
    found = [of_role(request, each, mistakes_of(each, wrong)) for each in parts]
    found.append(of_role(request, parts[0], output.mistakes_of(parts[0])))
    known = tuple(dict.fromkeys(mistake for each in found for mistake in each))
    yield from known
    if not known and _OF_NODES.isdisjoint(wrong):
        yield from of_all_roles(request)


def _of_nodes(request: JobRequest, wrong: Collection[str]) -> Iterator[config.Mistake]:
    """Yield what is wrong with a job on the nodes that it is to run on."""
    job, pools = request.job, request.nodes
    yield from mistakes.image_suits_nodes(request, pools)
    share = nodes.node_share(job, pools)
    too_small = [*mistakes.nodes_have_memory(share, pools)]
    yield from too_small
    if too_small:
        return
    yield from mistakes.nodes_take_its_pods(job, share, pools)
    yield from topology.mistakes_of(request, pools)
    yield from mistakes.resources_fit(job, share, pools)
    yield from mistakes.efa_is_used(job, share)
    yield from served.mistakes_of(request, share, pools)
    yield from autoscale.mistakes_of(request, share, pools)
    yield from scratch.mistakes_of(request, pools)
    yield from gate.mistakes_of(request, pools)
    if "nodes" not in wrong:
        if request.cluster_queue is None:
            yield from mistakes.nodes_are_there(job, share, pools)
        yield from governance.quota_holds(request, pools, share)
    if isinstance(job, config.TrainingJob):
        yield from _of_training(request, job, share, wrong)
    if isinstance(job, config.ServiceJob):
        yield from service.mistakes_on(request, job, share)
    requests = nodes.requests_of(job, share)
    if request.role is None:
        yield from mistakes.queue_holds(request, [(requests, _least_pods(job))])
    yield from queueing.mistakes_on(request, pools, requests)


def _of_training(
    request: JobRequest, job: config.TrainingJob, share: NodeShare, wrong: Collection[str]
) -> Iterator[config.Mistake]:
    """Yield what is wrong with pods that start together on the nodes that they are to run on."""
    pools = request.nodes
    yield from recipes.mistakes_of(request, share, pools, wrong)
    gang, governed = request.engine != "none", bool(request.teams)
    yield from mistakes.pods_start_together(job, share, pools, gang=gang, governed=governed)
    if request.cluster_queue is None:
        yield from mistakes.efa_stays_in_its_pool(job, share, pools)
    match _controller(request, pools):
        case "pytorch":
            yield from mistakes.pytorch_job_is_plain(job)
        case "hyperpod":
            yield from mistakes.operated_job_is_plain(request, job)
        case "indexed":
            yield from mistakes.fewer_nodes_can_end(request)
        case _:
            pass


def plan_job(request: JobRequest) -> JobPlan:
    """Plan a job that has no mistakes, and a tier where `tiers.needs_one`.

    Raises:
        CatalogError: No source states a value of an instance type.
    """
    launches = any(pool.sized_by in capacity.SIZED_BY_PODS for pool in request.nodes)
    match request.job:
        case config.ServiceJob() as job:
            plan = service.plan_service(request, job)
        case config.BatchJob() as job:
            plan = plan_batch(request, job)
        case config.DevJob() as job:
            plan = dev.plan_dev(request, job)
        case config.TrainingJob() as job:
            plan = _gated(request, job, plan_train(request, job))
    return with_deadline(
        replace(plan, launches=launches, patch=_patch(request.job), row=request.row), request.job
    )


def _gated(request: JobRequest, job: config.TrainingJob, plan: JobPlan) -> JobPlan:
    """Return the plan of a job with the checks of its nodes."""
    checks = gate.plan_gate(request, job, plan_train)
    if checks is None:
        return plan
    return replace(plan, gate=checks, notes=(*plan.notes, *gate.notes_of(checks)))


def _patch(job: config.AnyJob) -> Mapping[str, JsonObject]:
    # What YAML reads is JSON.
    return cast("Mapping[str, JsonObject]", job.patch)


def plan_batch(request: JobRequest, job: config.BatchJob) -> JobPlan:
    """Plan a batch job: one pod, or an array of them, that runs to its end."""
    pools = request.nodes
    share = nodes.node_share(job, pools)
    controller = _controller(request, pools)
    division = divide(name=request.name, role=_CONTAINER, pods=1, min_available=1)
    pod = plan_pod(request, pools, share)
    if controller == "indexed" and request.queue is not None:
        pod = queueing.in_volcano_queue(pod, request.queue, _CONTAINER)
    return JobPlan(
        name=request.name,
        namespace=request.namespace,
        kind=job.kind,
        controller=controller,
        roles=(
            RolePlan(
                name=_CONTAINER,
                pods=request.admitted_pods,
                container=_CONTAINER,
                pod=pod,
            ),
        ),
        parts=division.parts if controller == "volcano" else (),
        queue=request.queue,
        local_queue=queueing.local_queue_of(request),
        array=_array(request, job),
        restarts=_retries(job, controller, pools),
        ttl_seconds_after_finished=job.ttl_seconds_after_finished,
        notes=tuple(notes_of(request, pools, share, controller)),
    )


def plan_train(request: JobRequest, job: config.TrainingJob) -> JobPlan:
    """Plan a training job: pods that meet, start together and go on after faults."""
    if parts := request.roles:
        plans = [plan_train(part, job_of(part)) for part in parts]
        return unite(request, plans)
    pools = request.nodes
    share = nodes.node_share(job, pools)
    recipe = recipes.plan_recipe(request, share, pools)
    request = recipes.applied(request, share, pools)
    job = job_of(request)
    controller = _controller(request, pools)
    pytorch, operated = controller == "pytorch", controller == "hyperpod"
    division = divide(
        name=request.name, role=job.role, pods=job.nodes, min_available=_least_pods(job)
    )
    host_list = request.gang and division.parts[0].host_list
    host = _first_pod(request, job, controller, host_list=host_list)
    # A JobSet makes its own, and HyperPod's operator tells the agents where they meet.
    makes_service = controller in ("jobset", "hyperpod")
    needs_service = job.nodes > 1 and not host_list and not makes_service
    place = output.plan_output(request)
    saves = checkpoints.plan_checkpoints(
        request,
        place,
        size=recipe.checkpoint_bytes if recipe is not None else 0,
        processes=job.processes_per_node or share.processes,
    )
    job = checkpoints.with_interval(job, recipe, saves)
    request = replace(request, job=job)
    pod = output.with_output(plan_pod(request, pools, share), job, place)
    if operated:
        pod = _with_agent(request, job, pod, share)
    elif job.script is not None:
        whole = len(division.parts) == 1
        meeting = _meeting(request, job, controller, host=host, whole=whole)
        run = _command(request, job, share, meeting)
        ordered = meeting is not None and meeting.ordered
        pod = replace(pod, command=run, reads_node=ordered)
    elif job.nodes > 1:
        pod = replace(pod, env={command.RANK_ZERO_HOST: host, **pod.env})
    ends_at_once = job.script is not None and not pytorch and not operated
    notes = notes_of(request, pools, share, controller)
    return JobPlan(
        name=request.name,
        namespace=request.namespace,
        kind=job.kind,
        controller=controller,
        roles=(
            RolePlan(
                name=job.role,
                pods=job.nodes,
                container=kubeflow.CONTAINER if pytorch else job.role,
                pod=replace(pod, fields={**_fields(controller), **output.fields()}),
                mistake_exit_code=command.MISTAKE_EXIT_CODE if ends_at_once else None,
                restarts_alone=controller == "jobset" and job.min_nodes is not None,
                restarts_together=request.restarts_together,
            ),
        ),
        parts=division.parts if request.gang else (),
        service_port=command.RENDEZVOUS_PORT if needs_service else None,
        queue=request.queue,
        local_queue=queueing.local_queue_of(request),
        resumed=pytorch and governance.is_resumed(request),
        restarts=restarts_of(request, job, pools),
        elastic=job.min_nodes is not None,
        # torchrun's agents end together, with the last step: a pod that found no node is not
        # waited for. Those of another program may each have work left.
        min_success=job.min_nodes if job.script is not None else None,
        topology=topology_of(request, pools),
        operator=_operator(request, job, share, pools) if operated else None,
        ttl_seconds_after_finished=job.ttl_seconds_after_finished,
        notes=(
            *(division.notes if request.gang else ()),
            *notes,
            *recipes.notes_of(recipe),
            *checkpoints.notes_of(
                saves, job, place, existing_buckets=request.cluster.storage.existing_buckets
            ),
        ),
        recipe=recipe,
        output=place,
        checkpoints=saves,
    )


def _array(request: JobRequest, job: config.BatchJob) -> ArrayPlan | None:
    if job.array is None:
        return None
    return ArrayPlan(
        size=job.array.size,
        parallelism=request.admitted_pods,
        max_failed=job.array.max_failed,
    )


def _controller(request: JobRequest, pools: Sequence[PoolPlan]) -> Controller:
    if isinstance(request.job, config.ServiceJob):
        return service.controller_of(request.job)
    if isinstance(request.job, config.DevJob):
        return "indexed"
    if isinstance(request.job, config.BatchJob) and request.job.array is not None:
        # A Job of Volcano makes all of its pods at once, and knows no limit of failed ones.
        return "indexed"
    if request.gang:
        # Two schedulers on the same nodes would give out the same GPUs twice.
        return "volcano"
    training = isinstance(request.job, config.TrainingJob)
    if request.engine == "kueue":
        together = request.pods > 1 or request.role is not None
        return "jobset" if training and together else "indexed"
    if not request.is_hyperpods:
        return "indexed"
    return "hyperpod" if request.operated else "pytorch"


def _retries(job: config.BatchJob, controller: Controller, pools: Sequence[PoolPlan]) -> int:
    if job.retries is not None:
        return job.retries
    # Volcano counts the loss of a node too; Kubernetes' own Job does not.
    spot = any(pool.capacity_type == "spot" for pool in pools)
    return _RETRIES_ON_SPOT if spot and controller == "volcano" else _RETRIES


def _fields(controller: Controller) -> Mapping[str, str]:
    if controller == "volcano":
        return command.volcano_fields()
    if controller == "jobset":
        return command.jobset_fields()
    if controller == "hyperpod":
        return command.operated_fields()
    return command.pytorch_fields() if controller == "pytorch" else command.indexed_fields()


def _least_pods(job: config.AnyJob) -> int:
    if not isinstance(job, config.TrainingJob):
        return 1
    return job.nodes if job.min_nodes is None else job.min_nodes


def _meeting(
    request: JobRequest, job: config.TrainingJob, controller: Controller, *, host: str, whole: bool
) -> Meeting | None:
    if job.nodes == 1:
        return None
    # Parts of a job count their restarts for themselves, and meet under one name.
    run = request.name
    if request.gang and whole:
        attempted = job.min_nodes is None and not request.pods_come_back
        run = command.run_of_volcano(run, attempted=attempted)
    if controller == "jobset":
        run = command.run_of_jobset(run)
    if request.role is not None:
        run = f"{run}-{request.role}"
    if request.backend not in ("static", "c10d"):
        return command.meeting_of_etcd(request.namespace, run=run, backend=request.backend)
    index = command.VOLCANO_INDEX if request.gang else command.INDEXED_INDEX
    port = command.RENDEZVOUS_PORT
    return Meeting(
        backend=request.backend,
        host=host,
        port=port,
        index=index,
        run=run,
        ordered=topology.ranks_by_labels(request, request.nodes),
    )


def _first_pod(
    request: JobRequest, job: config.TrainingJob, controller: Controller, *, host_list: bool
) -> str:
    """Return the host name by which all pods of a job reach the one of index 0."""
    name = request.name
    if controller == "indexed":
        return f"{name}-0.{name}"
    if controller == "jobset":
        return jobset.host(name, job.role, 0)
    return volcano.host(name, job.role, 0) if host_list else name


def _with_agent(
    request: JobRequest, job: config.TrainingJob, pod: PodPlan, share: NodeShare
) -> PodPlan:
    """Return the pods of a job with the agent through which HyperPod's operator runs it."""
    if job.min_nodes is not None:
        name, value = training_operator.ELASTIC_EVENTS
        pod = replace(pod, env={name: value, **pod.env})
    if job.script is None:
        return pod
    processes = job.processes_per_node or share.processes
    cache, extra = _cache(request, job, processes)
    run = command.hyperpodrun(
        job,
        name=request.name,
        processes=processes,
        shutdown_seconds=shutdown_seconds(job),
        cache=cache,
        args=(*job.args, *extra),
        traces=_traces(request),
        watched=any(_log_rules(job)),
    )
    return replace(pod, command=run)


def _operator(
    request: JobRequest, job: config.TrainingJob, share: NodeShare, pools: Sequence[PoolPlan]
) -> OperatorPlan:
    of_processes, of_job = command.worker_restarts(job), restarts_of(request, job, pools)
    return OperatorPlan(
        processes=job.processes_per_node or share.processes,
        port=training_operator.AGENT_PORT,
        process_restarts=of_processes,
        most_restarts=of_processes * (of_job + 1) + of_job,
        period_seconds=training_operator.RESTART_PERIOD_SECONDS,
        log_rules=tuple(_log_rules(job)),
        elastic=None
        if job.min_nodes is None
        else ElasticPlan(
            least=job.min_nodes,
            most=job.nodes,
            checkpoint_seconds=training_operator.GRACEFUL_SHUTDOWN_SECONDS,
            growth_seconds=training_operator.SCALING_SECONDS,
            fault_seconds=training_operator.FAULTY_SCALE_DOWN_SECONDS,
        ),
    )


def _log_rules(job: config.TrainingJob) -> Iterator[LogRulePlan]:
    """Yield rules on what our programs print; what others print is not known."""
    if job.script not in output.PROGRAMS:
        return
    yield LogRulePlan(
        name="Hang",
        pattern=training_operator.PROGRESS_PATTERN,
        silent_seconds=training_operator.HANG_SECONDS,
    )
    if job.restarts.stragglers == "restart":
        yield LogRulePlan(
            name="Straggler",
            pattern=training_operator.STRAGGLER_PATTERN,
            least=training_operator.STRAGGLER_RATIO,
        )


def _command(
    request: JobRequest, job: config.TrainingJob, share: NodeShare, meeting: Meeting | None
) -> tuple[str, ...]:
    processes = job.processes_per_node or share.processes
    cache, extra = _cache(request, job, processes)
    return command.torchrun(
        job,
        name=request.name,
        processes=processes,
        meeting=meeting,
        cache=cache,
        args=(*job.args, *extra),
        pods_come_back=request.pods_come_back,
        traces=_traces(request),
    )


def _traces(request: JobRequest) -> str | None:
    place = output.plan_output(request)
    return None if place is None else output.folder_of_traces(place)


def _cache(
    request: JobRequest, job: config.TrainingJob, processes: int
) -> tuple[CachePlan | None, tuple[str, ...]]:
    """Return the compiled graphs of a job, and the arguments with which they are made."""
    cache: CachePlan | None = None
    extra: tuple[str, ...] = ()
    if (said := job.compile_cache) is not None:
        cache = CachePlan(
            path=said.path or f"{request.mounts[0].mount_path}/{command.CACHE_FOLDER}",
            model=said.model,
            cores=job.nodes * processes,
            allow_cold=said.allow_cold,
            compiles=request.precompile,
        )
        extra = said.precompile_args if request.precompile else ()
    return cache, extra
