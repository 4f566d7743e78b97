"""Replicas of several nodes: one program over the pods of a LeaderWorkerSet.

Sources:
    https://docs.vllm.ai/en/latest/serving/parallelism_scaling/
    https://github.com/kubernetes-sigs/lws/blob/v0.10.0/pkg/utils/pod/pod_utils.go
"""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ultrascale import config
from ultrascale.plan import capacity, names
from ultrascale.plan.jobs import command, vllm
from ultrascale.plan.jobs.nodes import NodeShare
from ultrascale.plan.jobs.programs import program
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.jobs.rules import rule
from ultrascale.plan.model import PodPlan, PoolPlan

Mistakes = Iterator[config.Mistake]

# Port of the first pod of a replica, at which the programs of the others meet.
_MEETING_PORT = 29399


# An image without Python is the user's own choice: its pods then start anew one by one.
_WITH_PYTHON = """\
command -v python3 > /dev/null && exec python3 -c "$0" "$@"
echo "without python3 in the image, pods of a replica start anew one by one" >&2
shift 2
exec "$@"
"""


def with_start(pod: PodPlan, job: config.ServiceJob) -> PodPlan:
    """Return the pods of a service whose programs start, end and start anew with their replica's.

    vLLM gets its options for several nodes. Any other program gets the variables of
    LeaderWorkerSet, and is told nothing more.
    """
    if job.nodes == 1:
        return pod
    together = (program("start_together"), str(_MEETING_PORT))
    if not is_started(job):
        start = ("sh", "-c", _WITH_PYTHON, *together, "own")
        return replace(pod, command=(*map(command.literal, start), *pod.command))
    words = vllm.serve_command(job)
    if vllm.options_of(job).distributed_executor_backend is None:
        words = (*words, "--distributed-executor-backend=mp")
    start = ("python3", "-c", *together, "vllm", *words)
    # vLLM would guess it by a route to the internet.
    fields = {**pod.fields, "VLLM_HOST_IP": "status.podIP"}
    return replace(pod, command=tuple(map(command.literal, start)), args=(), fields=fields)


def is_started(job: config.ServiceJob) -> bool:
    """Return whether the pods of a replica start as one vLLM, not by their own command."""
    if config.server_of(job) != "vllm" or vllm.options_of(job).nnodes is not None:
        return False
    # No option can be added to a shell's command line.
    return not job.command or vllm.starts_vllm(job.command)


@rule
def replicas_can_meet(request: JobRequest, job: config.ServiceJob) -> Mistakes:
    """Yield why the pods of a replica could not serve together."""
    yield from _taken_address(request, job)
    if job.nodes > 1 and config.server_of(job) != "vllm" and not job.command:
        wrong = "a program on several nodes gets no address of the other nodes"
        todo = (
            "write server: vllm where it is vLLM, or a command that reads LWS_LEADER_ADDRESS, "
            "LWS_GROUP_SIZE and LWS_WORKER_INDEX"
        )
        yield config.refuse("nodes", wrong, todo, got=str(job.nodes))


def _taken_address(request: JobRequest, job: config.ServiceJob) -> Mistakes:
    """Yield a name that LeaderWorkerSet gives the Service of a service's replica."""
    here = {
        name: other
        for name, other in request.cluster.jobs.items()
        if name != request.name and other.namespace == job.namespace
    }
    base, _, number = request.name.rpartition("-")
    if number.isdecimal() and _has_addresses(here.get(base)):
        wrong = f"pods of a replica of service {base} meet at an address of this name"
        yield config.refuse("name", wrong, "use a name without the number", got=request.name)
    if _has_addresses(job):
        for name in here:
            base, _, number = name.rpartition("-")
            if base == request.name and number.isdecimal():
                wrong = f"pods of its replica {number} meet at the address of job {name}"
                yield config.refuse("name", wrong, f"rename {name}", got=request.name)


def _has_addresses(job: config.Job | None) -> bool:
    return isinstance(job, config.ServiceJob) and (job.nodes > 1 or job.queue is not None)


def notes_of(job: config.ServiceJob, pools: Sequence[PoolPlan]) -> Iterator[str]:
    """Yield the cost of a replica's nodes while one is missing, and of a command before them."""
    if job.nodes > 1 and job.init:
        yield (
            f"init runs on each of the {job.nodes:,} pods of a replica, and again with each pod "
            "that is made anew; the others wait for it on nodes that are paid for."
        )
    growing = sorted({pool.pool for pool in pools if pool.sized_by in capacity.SIZED_BY_PODS})
    if job.nodes > 1 and growing and job.queue is None:
        yield (
            f"A replica serves once all of its {job.nodes} nodes of {' and '.join(growing)} are "
            "there, which are launched one by one: where EC2 has fewer, those that came are paid "
            "for meanwhile."
        )


@rule
def replicas_have_whole_nodes(
    request: JobRequest, job: config.ServiceJob, share: NodeShare
) -> Mistakes:
    """Yield nodes in several pools or zones for one replica, whose every token passes them all."""
    if job.nodes == 1:
        return
    if not share.whole:
        wrong = "a replica on several nodes takes whole nodes, and resources asks for a part"
        yield config.refuse("nodes", wrong, "leave resources out, or use one node")
    if share.accelerator == names.NEURON_DEVICE and is_started(job):
        wrong = "AWS's plugin documents no vLLM over several nodes of Neuron devices"
        todo = "use one node, or a larger instance type"
        yield config.refuse("nodes", wrong, todo, got=str(job.nodes))
    named = sorted({pool.pool for pool in request.nodes})
    if len(named) > 1:
        wrong = f"several pools, {', '.join(named)}, for the nodes of one replica"
        yield config.refuse("pool", wrong, "name one pool", got="")
        return
    zones = sorted({zone for pool in request.nodes for zone in pool.zones})
    if len(zones) > 1 and names.ZONE_LABEL not in job.node_selector:
        wrong = f"a replica of several nodes, which may land in several zones: {', '.join(zones)}"
        todo = f"use a pool of one zone, or write node_selector: {{{names.ZONE_LABEL}: {zones[0]}}}"
        yield config.refuse("nodes", wrong, todo, got=str(job.nodes))
