"""Jobs: pods, how they start together, and what starts them again."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ultrascale.documents import JsonObject
from ultrascale.plan.model.node_pools import Requirement
from ultrascale.plan.model.recipes import RecipePlan
from ultrascale.plan.model.services import ServingPlan

JobKind = Literal["training", "batch", "service", "dev"]
OutputSource = Literal["lustre", "bucket", "claim", "s3", "pod"]
# What makes the pods: Volcano's Job, a JobSet, Kubeflow's PyTorchJob, the HyperPodPyTorchJob of
# HyperPod's training operator, the Job of Kubernetes itself, a Deployment, or a LeaderWorkerSet.
Controller = Literal[
    "volcano", "jobset", "pytorch", "hyperpod", "indexed", "deployment", "leaderworkerset"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TolerationPlan:
    """A taint that pods bear, in Kubernetes' spelling; None leaves a field out."""

    key: str
    operator: Literal["Equal", "Exists"]
    value: str | None
    effect: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferencePlan:
    """A preference of the scheduler among the nodes that pods may run on.

    Attributes:
        weight: How much, from 1 to 100.
        nodes: What their labels are.
    """

    weight: int
    nodes: Requirement


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalQueuePlan:
    """A queue of Kueue, be it HyperPod task governance's, and the place of a job in it.

    Attributes:
        name: Name of the queue, in the job's namespace.
        priority: WorkloadPriorityClass; None: the priority of its pods.
        on_pods: Whether the pods name it too: task governance refuses those that do not.
        most_seconds: Time for which the job may be admitted in all; None: without end.
    """

    name: str
    priority: str | None
    on_pods: bool = False
    most_seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MountPlan:
    """A PersistentVolumeClaim in a container."""

    claim: str
    mount_path: str
    read_only: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigKeyPlan:
    """A key of a ConfigMap of the pod's namespace, the value of an environment variable."""

    name: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputPlan:
    """Place of a job's checkpoints, metrics and traces.

    Attributes:
        place: A path in its containers, or ``s3://BUCKET/PREFIX``, as Kubernetes reads it: a bucket
            of the cluster file is a variable.
        source: Storage behind it: a Lustre file system, a mounted bucket, a claim that the cluster
            file does not make, a bucket by torch's S3 writer, or the pod itself.
        claim: Claim that it lies on; None without.
        bucket: Bucket that it lies in, by its name in the cluster file; None for others.
    """

    place: str
    source: OutputSource
    claim: str | None = None
    bucket: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BandwidthPlan:
    """Rate at which a place takes checkpoints.

    Attributes:
        gb_per_second: GB/s of all nodes together.
        formula: How that is calculated.
        sources: Pages that state its terms.
    """

    gb_per_second: float
    formula: str
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointPlan:
    """Checkpoints of a job: their time, and how often they pay.

    Attributes:
        size: Bytes of a checkpoint.
        bandwidth: What its place takes.
        copied: Bytes that a process copies while training waits, before it writes them beside the
            training; None where training waits for the whole write.
        save_seconds: Time to write one.
        held_seconds: Part of that time for which training waits.
        seconds_between_failures: Mean time between two failures of the job.
        interval_seconds: Training between two checkpoints at which least time is lost, at most
            half an hour, and no less than the time to write one.
        lost_share: Share of time that is lost then, from 0 to 1.
    """

    size: int
    bandwidth: BandwidthPlan
    copied: int | None
    save_seconds: float
    held_seconds: float
    seconds_between_failures: float
    interval_seconds: float
    lost_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SavesPlan:
    """Checkpoints of a job template, or of one job on all nodes of a pool.

    Attributes:
        subject: The template or the pool.
        model: Model that it trains.
        nodes: Its nodes.
        place: Place of its checkpoints; empty where the cluster file has none.
        node_hours: Node-hours between two failures of a node.
        size: Bytes of a checkpoint.
        checkpoints: Their time and interval; None where nothing says how fast they are written.
    """

    subject: str
    model: str
    nodes: int
    place: str
    node_hours: float
    size: int
    checkpoints: CheckpointPlan | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScratchPlan:
    """A volume of a pod on the local NVMe of its node.

    Attributes:
        mount_path: Path at which it is mounted.
        gb: GB of NVMe on each node, which pods and images share.
    """

    mount_path: str
    gb: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityPlan:
    """Rights of a pod's processes.

    Attributes:
        user: Number of the user; None: the image's.
        group: Number of its group; None: the image's.
        non_root: Whether the kubelet refuses to start it as root; only where the image is known
            to have another user, as the pod would not start otherwise.
        capabilities: Capabilities of Linux that it keeps.
    """

    user: int | None = None
    group: int | None = None
    non_root: bool = False
    capabilities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodPlan:
    """The pods of one role of a job, which are alike but for their index.

    Attributes:
        image: Whole image reference.
        command: Program and its arguments.
        env: Environment variables.
        args: Arguments of the image's own program, where there is no command.
        fields: Environment variables with a field of the pod as value.
        requests: Resources requested, as Kubernetes quantities.
        limits: Resources that it is held to.
        mounts: Volumes.
        shared_memory: Quantity, the size of `/dev/shm`; None leaves the runtime's 64 MiB.
        nodes: What its nodes' labels must be.
        preferred: What they are by preference.
        tolerations: Taints that it bears.
        priority_class: Its PriorityClass; None for the cluster's default.
        service_account: Its service account; None for the namespace's own.
        annotations: Annotations.
        grace_period_seconds: Time from SIGTERM to SIGKILL.
        settings: Environment variables with the key of a ConfigMap that holds each. They come
            before the others, which may name them.
        secrets: Environment variables with the Secret that holds each, under the variable's name.
        scratch: Local NVMe; None where it has none.
        init: Command that runs before the program, in the same image; empty without.
        scheduler: Scheduler that places it; None: that of its controller, or Kubernetes' own.
        reads_node: Whether it may read the labels of nodes from the API server.
        security: Rights of its processes.
    """

    image: str
    command: tuple[str, ...]
    env: Mapping[str, str]
    fields: Mapping[str, str]
    requests: Mapping[str, str]
    limits: Mapping[str, str]
    mounts: tuple[MountPlan, ...]
    shared_memory: str | None
    nodes: tuple[Requirement, ...]
    preferred: tuple[PreferencePlan, ...]
    tolerations: tuple[TolerationPlan, ...]
    priority_class: str | None
    service_account: str | None
    annotations: Mapping[str, str]
    grace_period_seconds: int
    args: tuple[str, ...] = ()
    settings: Mapping[str, ConfigKeyPlan] = field(default_factory=dict[str, ConfigKeyPlan])
    secrets: Mapping[str, str] = field(default_factory=dict[str, str])
    scratch: ScratchPlan | None = None
    init: tuple[str, ...] = ()
    scheduler: str | None = None
    reads_node: bool = False
    security: SecurityPlan = field(default_factory=SecurityPlan)


@dataclass(frozen=True, slots=True, kw_only=True)
class RolePlan:
    """One kind of pods of a job; most jobs have one.

    Attributes:
        name: Its name, in letters and digits alone.
        pods: Pods that it consists of.
        container: Name of the container that runs the program.
        pod: The pods.
        mistake_exit_code: Exit code of a pod that ends the job at once; None where none does.
        restarts_alone: Whether a pod of it that is lost comes back, and the job goes on.
        restarts_together: Whether all pods of the role are made anew then.
    """

    name: str
    pods: int
    container: str
    pod: PodPlan
    mistake_exit_code: int | None = None
    restarts_alone: bool = False
    restarts_together: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayPlan:
    """Pods of a job that run to their ends one by one.

    Attributes:
        size: Pods in all.
        parallelism: Most pods at the same time, no more than there are.
        max_failed: Indexes that may fail before the job does.
    """

    size: int
    parallelism: int
    max_failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPlan:
    """Pods of a Volcano Job that share a name and are numbered from 0.

    Attributes:
        name: Its name, in letters and digits alone.
        pods: How many.
        first: Index in the job of the first of them.
        rank_zero: Whether it is the one pod that the others meet at, behind a Service.
        role: Role of the job that its pods are of.
    """

    name: str
    role: str
    pods: int
    first: int
    rank_zero: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PartPlan:
    """One Volcano Job: a whole job, or a part of one that is too large for a single object.

    Attributes:
        name: Its name.
        tasks: Its tasks.
        min_available: Pods that start together or not at all.
        host_list: Whether Volcano writes the names of all pods into each, and makes the Service.
    """

    name: str
    tasks: tuple[TaskPlan, ...]
    min_available: int
    host_list: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyPlan:
    """Closeness in which Volcano or Kueue places the pods of a gang.

    Attributes:
        mode: `soft` takes close nodes first, `hard` waits for them.
        highest_tier: Tier of HyperNodes of which one must hold them all; None without such a bound,
            and for Kueue.
        level: Label whose value nodes of one group share, for Kueue; None for Volcano.
    """

    mode: Literal["soft", "hard"]
    highest_tier: int | None = None
    level: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticPlan:
    """Scaling of a job that goes on with fewer nodes, by HyperPod's training operator.

    Attributes:
        least: Fewest pods.
        most: Most pods.
        checkpoint_seconds: Time for a checkpoint before its processes are stopped.
        growth_seconds: Wait before pods are added.
        fault_seconds: Wait for a new node before the job goes on without.
    """

    least: int
    most: int
    checkpoint_seconds: int
    growth_seconds: int
    fault_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRulePlan:
    """Rule on what processes print, by which HyperPod's training operator restarts a job.

    Attributes:
        name: Its name.
        pattern: Regular expression of a line; its group is a number, if ``least`` is one.
        silent_seconds: Time without such a line, once there was one, after which the process
            hangs; None: it need not come again.
        least: The job is slow once the number of a line is at least this; None: no number counts.
    """

    name: str
    pattern: str
    silent_seconds: int | None = None
    least: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorPlan:
    """A job's part that is for HyperPod's training operator.

    Attributes:
        processes: Processes of each pod.
        port: TCP port of the agent in each pod.
        process_restarts: Restarts of processes after which the whole job restarts.
        most_restarts: Restarts of both kinds.
        period_seconds: Window in which both are counted.
        elastic: How it scales; None: it needs all of its pods.
        log_rules: Rules on what the program prints; none where nobody knows it.
    """

    processes: int
    port: int
    process_restarts: int
    most_restarts: int
    period_seconds: int
    elastic: ElasticPlan | None
    log_rules: tuple[LogRulePlan, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GateStep:
    """A check of nodes, as a job of the same shape as the one that waits for it.

    Attributes:
        check: What is checked.
        job: The job that checks.
        seconds: Longest time that it holds its nodes, from the start of its pods.
        rounds: Most rounds of measurements.
        most_usd: Cost of its nodes for that time, at On-Demand prices; None: no price is known.
        note: What it does, how long it may take and what it may cost, as a sentence.
    """

    check: Literal["fabric", "device"]
    job: "JobPlan"
    seconds: int
    rounds: int
    most_usd: float | None
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GatePlan:
    """Checks of nodes that have to pass before a job is sent.

    Attributes:
        steps: Checks, in their order.
        tries: Times that they are run, where nodes were found bad and others can take their place.
    """

    steps: tuple[GateStep, ...]
    tries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPlan:
    """A job, decided.

    Attributes:
        name: Its name.
        namespace: Namespace that it runs in.
        kind: What runs.
        controller: What makes its pods.
        roles: Its kinds of pods; the first is the one whose success ends the job.
        parts: Volcano Jobs; empty for other controllers.
        service_port: Port of the headless Service at which the nodes of an Indexed Job, of a
            PyTorchJob, or of a job without a host list, meet; None where there is none.
        queue: Volcano queue; None where Volcano does not schedule it.
        local_queue: Queue of Kueue, or of task governance; None where nothing governs it.
        resumed: Whether HyperPod starts it anew when one of its nodes fails.
        restarts: Restarts of the job before it counts as failed.
        elastic: Whether it goes on with fewer nodes than it asks for.
        min_success: Pods whose success ends the job; None: all.
        topology: How close its pods are to be placed; None: nothing is asked for.
        operator: What HyperPod's training operator does for it; None for other controllers.
        ttl_seconds_after_finished: How long it stays once it has ended.
        serving: How it is reached; None unless it is a service.
        notes: What the user should know of it, each a sentence.
        launches: Whether nodes are launched because its pods wait for them.
        array: Its pods as an array; None where they run at the same time or not at all.
        deadline_seconds: Wall-clock time after which it is ended; None: never.
        patch: JSON merge patches over its objects, by kind.
        recipe: Recipe that it runs; None for a program of its own.
        output: Place of its checkpoints; None where it keeps none.
        checkpoints: Their time and interval; None where their size or place is not known.
        gate: Checks of nodes before it is sent; None: none.
        check: What it checks of its nodes; None where it is a job of its own.
    """

    name: str
    namespace: str
    kind: JobKind
    controller: Controller
    roles: tuple[RolePlan, ...]
    queue: str | None
    local_queue: LocalQueuePlan | None
    notes: tuple[str, ...]
    launches: bool = False
    parts: tuple[PartPlan, ...] = ()
    service_port: int | None = None
    resumed: bool = False
    restarts: int = 0
    elastic: bool = False
    min_success: int | None = None
    topology: TopologyPlan | None = None
    operator: OperatorPlan | None = None
    ttl_seconds_after_finished: int = 0
    serving: ServingPlan | None = None
    array: ArrayPlan | None = None
    deadline_seconds: int | None = None
    patch: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    recipe: RecipePlan | None = None
    output: OutputPlan | None = None
    checkpoints: CheckpointPlan | None = None
    gate: GatePlan | None = None
    check: str | None = None

    @property
    def pod(self) -> PodPlan:
        """The pods of its first role."""
        return self.roles[0].pod

    @property
    def container(self) -> str:
        """Name of the container that runs the program of its first role."""
        return self.roles[0].container

    @property
    def pods(self) -> int:
        """Number of all of its pods."""
        return sum(role.pods for role in self.roles)
