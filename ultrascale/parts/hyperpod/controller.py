"""Controllers of training jobs on HyperPod's nodes: Kubeflow's operator, or HyperPod's own."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from ultrascale import config
from ultrascale.catalog import training_operator
from ultrascale.parts.hyperpod.governance import on_hyperpod
from ultrascale.parts.hyperpod.model import OperatorPlan
from ultrascale.parts.hyperpod.section import settings_of
from ultrascale.plan.jobs import command, nodes, output
from ultrascale.plan.jobs.command import POD_IP
from ultrascale.plan.jobs.controllers import INDEXED, JobController
from ultrascale.plan.jobs.nodes import NodeShare
from ultrascale.plan.jobs.pods import shutdown_seconds
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.model import PodPlan, PoolPlan

# Label of a pod of Kubeflow's operator with its number, and the container by which the operator
# judges how a pod has ended. It refuses a job without one.
# Sources:
#     https://github.com/kubeflow/trainer/blob/v1.8.1/pkg/apis/kubeflow.org/v1/common_types.go
#     https://github.com/kubeflow/trainer/blob/v1.8.1/pkg/apis/kubeflow.org/v1/pytorch_types.go
REPLICA_INDEX, _CONTAINER = "training.kubeflow.org/replica-index", "pytorch"
# Where HyperPod resumes jobs: this namespace, and those that begin so.
# Source: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-run-jobs-hyperpod-cli.html
_RESUMED_NAMESPACE, _RESUMED_PREFIX = "kubeflow", "hyperpod"


def is_resumed(namespace: str) -> bool:
    """Return whether HyperPod starts jobs of a namespace anew when one of their nodes fails."""
    return namespace == _RESUMED_NAMESPACE or namespace.startswith(_RESUMED_PREFIX)


class _PyTorch(JobController):
    """Kubeflow's PyTorchJob, whose pods meet at the first through one Service."""

    name = "pytorch"
    resource = ("kubeflow.org", "pytorchjobs")
    container = _CONTAINER
    ends_at_mistakes = False

    def fields(self) -> Mapping[str, str]:
        """Return its variables; its pods find their index where an Indexed Job's do.

        The training operator adds variables of torchrun's options, which ours go before.

        Source: https://github.com/kubeflow/trainer/blob/v1.8.1/pkg/controller.v1/pytorch/envvar.go
        """
        return {**super().fields(), self.index: f"metadata.labels['{REPLICA_INDEX}']"}

    def host(self, name: str, role: str, index: int) -> str:
        return name


class _Operated(_PyTorch):
    """The HyperPodPyTorchJob of HyperPod's operator, which gives agents their meeting place."""

    name = "hyperpod"
    resource = (training_operator.API_VERSION.partition("/")[0], "hyperpodpytorchjobs")
    container = None
    makes_service = True
    runs_processes = True

    def fields(self) -> Mapping[str, str]:
        """Return its variables; its agent needs no index."""
        return {POD_IP: "status.podIP"}

    def program(
        self, request: JobRequest, job: config.TrainingJob, pod: PodPlan, share: NodeShare
    ) -> PodPlan:
        """Return the pods of a job with the agent through which the operator runs it.

        The operator says who takes part, restarts the processes and sets their environment. A
        number of nodes that changes is its business too: the agent takes one number alone.
        """
        if job.min_nodes is not None:
            name, value = training_operator.ELASTIC_EVENTS
            pod = replace(pod, env={name: value, **pod.env})
        if job.script is None:
            return pod
        processes = job.processes_per_node or share.processes
        launcher = training_operator.LAUNCHER
        missing = f"the image has no {launcher}: install {training_operator.AGENT} in it"
        look = f"command -v {launcher} > /dev/null || {{ echo '{missing}' >&2; exit 1; }}"
        options = [
            f"--nnodes={job.nodes}",
            f"--nproc-per-node={processes}",
            "--rdzv-backend=hyperpod",
            f"--server-port={training_operator.AGENT_PORT}",
            # By itself it kills them at once, without a last checkpoint.
            "--shutdown-signal=SIGTERM",
            f"--shutdown-timeout={shutdown_seconds(job)}",
        ]
        if job.script in output.PROGRAMS:
            tee, folder = training_operator.WATCHED_OUTPUT, training_operator.LOG_FOLDER
            options += [f"--tee={tee}", f"--log-dir={folder}"]
        cache, extra = command.cache_of(request, job, processes)
        run = command.launched(
            job,
            request.name,
            [
                *command.folders(output.traces_of(request)),
                *command.plugin(over_efa=nodes.nccl_uses_efa(job, share)),
                look,
            ],
            [launcher, *options],
            cache=cache,
            args=(*job.args, *extra),
        )
        return replace(pod, command=run)

    def own_plan(
        self, request: JobRequest, job: config.TrainingJob, share: NodeShare
    ) -> OperatorPlan:
        is_watched = job.script in output.PROGRAMS
        return OperatorPlan(
            processes=job.processes_per_node or share.processes,
            process_restarts=command.worker_restarts(job),
            fewest_pods=job.min_nodes,
            is_watched=is_watched,
            restarts_if_slow=is_watched and job.restarts.stragglers == "restart",
        )


PYTORCH, OPERATED = _PyTorch(), _Operated()
CONTROLLERS = (PYTORCH, OPERATED)


def controller_of(request: JobRequest) -> JobController | None:
    """Return the controller of a training job that may run nowhere else; None of others."""
    training = isinstance(request.job, config.TrainingJob) and not request.is_check
    fixed = not request.job.prefer or request.pods > 1
    if training and fixed and not request.engine.queues_jobs and on_hyperpod(request.nodes):
        return OPERATED if settings_of(request.cluster).training_operator else PYTORCH
    return None


def restart_notes(
    request: JobRequest, pools: Sequence[PoolPlan], controller: JobController
) -> Iterator[str]:
    """Yield how a training job restarts when one of its nodes fails, each a sentence."""
    if not on_hyperpod(pools):
        return
    if controller.word:
        word = controller.word
        yield f"{word} restarts it when a node fails; HyperPod resumes its own kinds alone."
    elif controller is INDEXED:
        yield (
            "Kubernetes itself restarts it when a node fails; HyperPod resumes no job that may "
            "run elsewhere."
        )
    elif controller is OPERATED:
        yield from _of_operator(request)
    elif not is_resumed(request.namespace):
        yield (
            f"HyperPod resumes no jobs in namespace {request.namespace}, only in those whose name "
            "begins with hyperpod, as a team's does, and in kubeflow: after the loss of a node its "
            "pods are made anew one by one."
        )


def _of_operator(request: JobRequest) -> Iterator[str]:
    job = request.job
    if not isinstance(job, config.TrainingJob):
        return
    if request.build is not None and request.build.own is None:
        yield (
            f"Its image has to have {training_operator.AGENT}, which takes "
            f"{training_operator.AGENT_TORCH}: images/{request.build.dockerfile} as it is shipped "
            "has none, and every pod would end at once."
        )
    if job.script is None:
        yield (
            f"HyperPod's training operator starts it once {training_operator.LAUNCHER} answers at "
            f"port {training_operator.AGENT_PORT} of each pod: its command has to run that."
        )
    if job.min_nodes is not None:
        yield (
            "Before the operator adds or takes away nodes it signals its processes: they have to "
            "ask hyperpod_elastic_agent's elastic_event_detected, write a checkpoint and end."
        )
