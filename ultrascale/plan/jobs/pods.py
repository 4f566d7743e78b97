"""The pods of a job: their nodes, their requests there, and their environment."""

from collections.abc import Mapping, Sequence

from ultrascale import config
from ultrascale.catalog import object_keys, runtime_environment
from ultrascale.plan import names
from ultrascale.plan.jobs import command, nodes, tiers, vllm
from ultrascale.plan.jobs.nodes import NodeShare
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.jobs.scratch import plan_scratch
from ultrascale.plan.model import (
    PodPlan,
    PoolPlan,
    PreferencePlan,
    Requirement,
    SecurityPlan,
    Taint,
    TolerationPlan,
)

# torchrun kills its workers after 30 seconds unless an option says otherwise; the rest of the pod's
# time is for itself. Release 2.9, that of the Neuron image, does not read the variable.
# Source: https://docs.pytorch.org/docs/stable/elastic/run.html
_SHUTDOWN_TIMEOUT = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"
SHUTDOWN_SHARE = 0.8
# The value of HyperPod's own command line.
# Source: https://github.com/aws/sagemaker-hyperpod-cli
_MOST_WEIGHT = 100


def plan_pod(request: JobRequest, pools: Sequence[PoolPlan], share: NodeShare) -> PodPlan:
    """Return the pods of a job that run its own command."""
    job = request.job
    requests = nodes.requests_of(job, share)
    program, args = _program(job)
    return PodPlan(
        image=request.image,
        command=program,
        args=args,
        env=_environment(request, requests, pools),
        fields={},
        requests=requests,
        # A CPU limit would throttle a pod on an otherwise idle node.
        limits={key: value for key, value in requests.items() if key != "cpu"},
        mounts=request.mounts,
        shared_memory=nodes.shared_memory_of(job, requests, share),
        nodes=_requirements(job, pools),
        preferred=_preferences(request, pools),
        tolerations=_tolerations(job, pools),
        priority_class=job.priority,
        service_account=job.service_account,
        annotations=_annotations(job),
        grace_period_seconds=job.grace_period_seconds,
        secrets=dict(job.secrets),
        scratch=plan_scratch(job, pools),
        init=tuple(command.literal(word) for word in job.init),
        security=_security(request),
    )


def _program(job: config.Job) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if not isinstance(job, config.ServiceJob):
        return command.plain(job), ()
    if config.server_of(job) == "vllm":
        return tuple(command.literal(word) for word in vllm.serve_command(job)), ()
    return (command.plain(job), ()) if job.command else ((), command.plain(job))


def _security(request: JobRequest) -> SecurityPlan:
    """Return the rights of the processes: an image of ours never runs as root."""
    stated = request.job.security
    build = request.build
    return SecurityPlan(
        user=stated.user,
        group=stated.group or stated.user,
        non_root=stated.user is not None or (build is not None and build.non_root),
        capabilities=stated.capabilities,
    )


def _annotations(job: config.Job) -> Mapping[str, str]:
    """Return the job's annotations, with those that keep its nodes; a service has none of these."""
    if isinstance(job, config.ServiceJob):
        return job.annotations
    return {**object_keys.KEEPS_AUTOSCALERS_OFF, **job.annotations}


def shutdown_seconds(job: config.Job) -> int:
    """Return the time from SIGTERM to SIGKILL for the processes of a pod."""
    return int(job.grace_period_seconds * SHUTDOWN_SHARE)


def _environment(
    request: JobRequest, requests: Mapping[str, str], pools: Sequence[PoolPlan]
) -> Mapping[str, str]:
    """Return the variables of the job's libraries, and its own, which win."""
    job = request.job
    env: dict[str, str] = {}
    if isinstance(job, config.TrainingJob):
        env[_SHUTDOWN_TIMEOUT] = str(shutdown_seconds(job))
    for runtime in _runtimes(request, requests, pools):
        variables = runtime_environment.VARIABLES[runtime]
        env |= {name: variable.value for name, variable in variables.items()}
    return env | {name: command.literal(value) for name, value in job.env.items()}


def _runtimes(
    request: JobRequest, requests: Mapping[str, str], pools: Sequence[PoolPlan]
) -> Sequence[runtime_environment.Runtime]:
    """Return the runtimes whose variables a pod gets, later ones over earlier ones."""
    job = request.job
    runtimes: list[runtime_environment.Runtime] = ["any"]
    if isinstance(job, config.TrainingJob):
        runtimes.append("torch")
    if names.NEURON_DEVICE in requests:
        runtimes.append("neuron")
        if names.EFA_INTERFACE in requests:
            runtimes.append("neuron-efa")
        if isinstance(job, config.ServiceJob) and config.server_of(job) == "vllm":
            runtimes.append("neuron-vllm")
    elif names.NVIDIA_GPU in requests:
        runtimes.append("nvidia")
        if isinstance(job, config.TrainingJob):
            runtimes.append("nvidia-torch")
            # Roles give each other weights through the memory of GPUs, or start vLLM.
            starts_vllm = any("vllm" in word for word in (*job.command, *job.args))
            if request.role is None and not starts_vllm:
                runtimes.append("nvidia-allocator")
    elif any(pool.accelerator == names.NVIDIA_GPU for pool in pools):
        runtimes.append("no-gpu")
    if names.EFA_INTERFACE in requests and names.HUGE_PAGES not in requests:
        runtimes.append("efa-small-pages")
    return runtimes


def _requirements(job: config.Job, pools: Sequence[PoolPlan]) -> tuple[Requirement, ...]:
    names_of_pools = tuple(sorted({pool.pool for pool in pools}))
    required = [Requirement(key=names.POOL_LABEL, values=names_of_pools)]
    required += [
        Requirement(key=key, values=(value,)) for key, value in sorted(job.node_selector.items())
    ]
    if isinstance(job, config.ServiceJob) and job.capacity is not None:
        options = nodes.CAPACITY[job.capacity]
        required.append(Requirement(key=names.CAPACITY_LABEL, values=options))
    facts = nodes.common_facts(pools)
    if facts is not None and facts.well is not None:
        # Elsewhere nodes have no such label. HyperPod's have a taint too while they are not well.
        key, value = facts.well
        required.append(Requirement(key=key, values=(value,)))
    return tuple(required)


def _preferences(request: JobRequest, pools: Sequence[PoolPlan]) -> tuple[PreferencePlan, ...]:
    """Return the order of a job's tiers, or the preference for nodes that passed their checks."""
    facts = nodes.common_facts(pools)
    if facts is not None and facts.passed is not None:
        if not any(pool.deep_health_checks for pool in pools):
            return ()
        key, value = facts.passed
        return (PreferencePlan(weight=_MOST_WEIGHT, nodes=Requirement(key=key, values=(value,))),)
    if request.tier is not None or request.cluster_queue is not None:
        return ()
    return tuple(
        PreferencePlan(weight=weight, nodes=Requirement(key=names.NODE_TYPE_LABEL, values=(tier,)))
        for tier, weight in tiers.weights(request.job.prefer).items()
    )


def unborne_taints(
    tolerations: Sequence[config.Toleration], pools: Sequence[PoolPlan]
) -> tuple[Taint, ...]:
    """Return the taints of ``pools`` that keep off pods of ``tolerations``."""
    taints = dict.fromkeys(taint for pool in pools for taint in pool.taints)
    return tuple(
        taint
        for taint in taints
        if not any(_bears(toleration, taint) for toleration in tolerations)
    )


def _tolerations(job: config.Job, pools: Sequence[PoolPlan]) -> tuple[TolerationPlan, ...]:
    unborne = {(taint.key, taint.effect) for taint in unborne_taints(job.tolerations, pools)}
    return (
        *(
            TolerationPlan(key=key, operator="Exists", value=None, effect=effect)
            for key, effect in sorted(unborne)
        ),
        *(
            TolerationPlan(
                key=toleration.key,
                operator=toleration.operator,
                value=toleration.value,
                effect=toleration.effect,
            )
            for toleration in job.tolerations
        ),
    )


def _bears(toleration: config.Toleration, taint: Taint) -> bool:
    """Return whether a pod with ``toleration`` may run behind ``taint``.

    Source: https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/
    """
    return (
        toleration.key == taint.key
        and toleration.effect in (None, taint.effect)
        and (toleration.operator == "Exists" or (toleration.value or "") == taint.value)
    )
