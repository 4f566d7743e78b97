"""Plan of a training job: pods that meet, start together and go on after faults."""

from msgspec.structs import replace

from ultrascale import config
from ultrascale.plan.jobs import checkpoints, command, nodes, output, queueing, topology
from ultrascale.plan.jobs.command import Meeting
from ultrascale.plan.jobs.controllers import JobController, controller_of, least_pods
from ultrascale.plan.jobs.nodes import NodeShare
from ultrascale.plan.jobs.notes import notes_of
from ultrascale.plan.jobs.pods import plan_pod
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.jobs.restarts import restarts_of
from ultrascale.plan.jobs.roles import job_of, unite
from ultrascale.plan.jobs.topology import topology_of
from ultrascale.plan.model import JobPlan
from ultrascale.plan.model.jobs import (
    PodPlan,
    RolePlan,
)


def plan_train(request: JobRequest, job: config.TrainingJob) -> JobPlan:
    """Plan a training job: pods that meet, start together and go on after faults."""
    if parts := request.roles:
        plans = [plan_train(part, job_of(part)) for part in parts]
        return unite(request, plans)
    pools = request.nodes
    share = nodes.node_share(job, pools)
    program = request.program(share)
    request = request.with_program(program)
    job = job_of(request)
    controller = controller_of(request)
    division = controller.divide(
        name=request.name, role=job.role, pods=job.nodes, min_available=least_pods(job)
    )
    parts, whole = division.parts if division is not None else (), True
    host = controller.host(request.name, job.role, 0)
    host_list = False
    if parts:
        whole, host_list = len(parts) == 1, parts[0].host_list
        host = host if host_list else request.name
    needs_service = job.nodes > 1 and not host_list and not controller.makes_service
    place = output.plan_output(request)
    saves = checkpoints.plan_checkpoints(request, job, place, program, share)
    job = checkpoints.with_interval(job, program, saves)
    request = replace(request, job=job)
    pod = output.with_output(plan_pod(request, pools, share), job, place)
    pod = _with_program(request, job, pod, share, controller, host=host, whole=whole)
    # Pods of a role may each serve alone, and a check judges what NCCL takes.
    is_own = job.script is None and request.role is None and not request.is_check
    looks = is_own and nodes.nccl_uses_efa(job, share)
    pod = command.with_look(pod) if looks else pod
    return JobPlan(
        name=request.name,
        namespace=request.namespace,
        kind=job.kind,
        controller=controller.name,
        roles=(_role(request, job, pod, controller, looks=looks),),
        parts=parts,
        service_port=command.RENDEZVOUS_PORT if needs_service else None,
        queue=request.queue,
        local_queue=queueing.local_queue_of(request),
        restarts=restarts_of(request, job, pools),
        elastic=job.min_nodes is not None,
        # torchrun's agents end together, with the last step: nothing waits for a pod without a
        # node. Any other program's pods may each have work left.
        min_success=job.min_nodes if job.script is not None else None,
        topology=topology_of(request, pools),
        operator=controller.own_plan(request, job, share),
        ttl_seconds_after_finished=job.ttl_seconds_after_finished,
        notes=(
            *(division.notes if division is not None else ()),
            *notes_of(request, pools, share, controller),
            *(program.notes if program is not None else ()),
            *checkpoints.notes_of(
                saves, job, place, existing_buckets=request.cluster.storage.existing_buckets
            ),
        ),
        output=place,
        checkpoints=saves,
    )


def _with_program(
    request: JobRequest,
    job: config.TrainingJob,
    pod: PodPlan,
    share: NodeShare,
    controller: JobController,
    *,
    host: str,
    whole: bool,
) -> PodPlan:
    """Return the pods of a job with the command that starts its program.

    Args:
        request: The job.
        job: Its keys.
        pod: Its pods.
        share: Each pod's share of a node.
        controller: The controller of its pods.
        host: Host name of the pod of index 0.
        whole: Whether it is one part.
    """
    if (own := controller.program(request, job, pod, share)) is not None:
        return own
    if job.script is not None:
        meeting = _meeting(request, job, controller, host=host, whole=whole)
        run = _command(request, job, share, meeting)
        return replace(pod, command=run, reads_node=meeting is not None and meeting.ordered)
    if job.nodes > 1:
        return replace(pod, env={command.RANK_ZERO_HOST: host, **pod.env})
    return pod


def _role(
    request: JobRequest,
    job: config.TrainingJob,
    pod: PodPlan,
    controller: JobController,
    *,
    looks: bool,
) -> RolePlan:
    code = command.NO_PLUGIN_EXIT_CODE if looks else None
    code = command.MISTAKE_EXIT_CODE if job.script is not None else code
    return RolePlan(
        name=job.role,
        pods=job.nodes,
        container=controller.container or job.role,
        pod=replace(pod, fields={**controller.fields(), **output.fields()}),
        mistake_exit_code=code if controller.ends_at_mistakes else None,
        restarts_alone=controller.replaces_pods and job.min_nodes is not None,
        restarts_together=request.restarts_together,
    )


def _meeting(
    request: JobRequest,
    job: config.TrainingJob,
    controller: JobController,
    *,
    host: str,
    whole: bool,
) -> Meeting | None:
    if job.nodes == 1:
        return None
    # Parts of a job count their restarts for themselves, and meet under one name.
    run = request.name
    if whole:
        attempted = job.min_nodes is None and not request.pods_come_back
        run = controller.run(run, attempted=attempted)
    if request.role is not None:
        run = f"{run}-{request.role}"
    if request.backend not in ("static", "c10d"):
        return command.etcd_meeting(request.namespace, run=run, backend=request.backend)
    port = command.RENDEZVOUS_PORT
    return Meeting(
        backend=request.backend,
        host=host,
        port=port,
        index=controller.index,
        run=run,
        ordered=topology.ranks_by_labels(request, request.nodes),
    )


def _command(
    request: JobRequest, job: config.TrainingJob, share: NodeShare, meeting: Meeting | None
) -> tuple[str, ...]:
    processes = job.processes_per_node or share.processes
    cache, extra = command.cache_of(request, job, processes)
    return command.torchrun(
        job,
        name=request.name,
        processes=processes,
        meeting=meeting,
        cache=cache,
        args=(*job.args, *extra),
        pods_come_back=request.pods_come_back,
        traces=output.traces_of(request),
        over_efa=nodes.nccl_uses_efa(job, share),
    )
