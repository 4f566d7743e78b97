"""Replicas of several nodes: one vLLM over the pods of a LeaderWorkerSet.

Sources:
    https://docs.vllm.ai/en/latest/serving/parallelism_scaling/
    https://github.com/kubernetes-sigs/lws/blob/v0.10.0/pkg/utils/pod/pod_utils.go
"""

from collections.abc import Iterator
from dataclasses import replace

from ultrascale import config
from ultrascale.plan.jobs import command, vllm
from ultrascale.plan.jobs.nodes import NodeShare, efa_of
from ultrascale.plan.jobs.programs import program
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.model import PodPlan

Mistakes = Iterator[config.Mistake]


def with_start(pod: PodPlan, job: config.ServiceJob) -> PodPlan:
    """Return the pods of a service whose vLLM meets over all nodes of its replica.

    Another program gets the variables of LeaderWorkerSet, and starts by itself.
    """
    if job.nodes == 1 or not is_started(job):
        return pod
    words = vllm.serve_command(job)
    if vllm.options_of(job).executor is None:
        words = (*words, "--distributed-executor-backend=mp")
    start = ("python3", "-c", program("start_together"), *words)
    # vLLM would guess it by a route to the internet.
    fields = {**pod.fields, "VLLM_HOST_IP": "status.podIP"}
    return replace(pod, command=tuple(map(command.literal, start)), args=(), fields=fields)


def is_started(job: config.ServiceJob) -> bool:
    """Return whether the pods of a replica are started as one vLLM; else by their own command."""
    if config.server_of(job) != "vllm" or vllm.options_of(job).nnodes is not None:
        return False
    # To the line of a shell no option can be added.
    return not job.command or vllm.starts_vllm(job.command)


def mistakes_of(job: config.ServiceJob) -> Mistakes:
    """Yield why the pods of a replica could not serve together."""
    if job.nodes > 1 and config.server_of(job) != "vllm" and not job.command:
        wrong = "a replica of several nodes, of a program that nothing tells the others' addresses"
        todo = (
            "write server: vllm where it is vLLM, or a command that reads LWS_LEADER_ADDRESS, "
            "LWS_GROUP_SIZE and LWS_WORKER_INDEX"
        )
        yield config.refuse("nodes", wrong, todo, got=str(job.nodes))


def mistakes_on(request: JobRequest, job: config.ServiceJob, share: NodeShare) -> Mistakes:
    """Yield zones between which the pods of a replica could not talk by EFA.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa.html
    """
    if job.nodes == 1:
        return
    named = sorted({pool.pool for pool in request.nodes})
    if len(named) > 1:
        wrong = f"several pools, {', '.join(named)}, for the nodes of one replica"
        yield config.refuse("pool", wrong, "name one of them", got="")
        return
    zones = sorted({zone for pool in request.nodes for zone in pool.zones})
    if len(zones) > 1 and efa_of(job, share):
        wrong = (
            f"a replica of several nodes in zones {', '.join(zones)}, between which no EFA "
            "traffic passes"
        )
        todo = "use a pool of one zone, or write resources: {efa: 0}"
        yield config.refuse("nodes", wrong, todo, got=str(job.nodes))
