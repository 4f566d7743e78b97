"""Jobs: their pods, their joint start and their restarts."""

from collections.abc import Mapping
from typing import Literal

from msgspec import field

from ultrascale.documents import JsonObject
from ultrascale.frozen import Frozen
from ultrascale.plan.model.node_pools import Requirement
from ultrascale.plan.model.services import ServingPlan

Sharing = Literal["Lend", "DontLend", "LendAndBorrow"]
OutputSource = Literal["lustre", "bucket", "claim", "s3", "pod"]


class TolerationPlan(Frozen):
    """A taint that pods bear, in Kubernetes' spelling; None leaves a field out."""

    key: str
    operator: Literal["Equal", "Exists"]
    value: str | None
    effect: str | None


class PreferencePlan(Frozen):
    """A preference of the scheduler among the nodes that pods may run on."""

    weight: int  # Weight, from 1 to 100
    nodes: Requirement  # Labels of the preferred nodes


class TeamPlan(Frozen):
    """A team's share of the nodes of all teams."""

    name: str  # Its name
    quota: str  # Name of its quota
    namespace: str  # Namespace of its jobs
    fair_share_weight: int  # Share of idle nodes relative to the other teams, 0 to 100
    nodes: Mapping[str, int]  # Nodes of its own, by instance type with SageMaker's prefix
    sharing: Sharing  # Whether it lends its idle nodes, and borrows those of others
    # Most that it borrows beyond its own nodes; None unless it borrows.
    borrow_limit_percent: int | None
    cost_center: str | None = None  # Account that pays for its jobs; None where none is stated


class LocalQueuePlan(Frozen):
    """A queue of Kueue, also HyperPod task governance's, and a job's priority in it."""

    name: str  # Name of the queue, in the job's namespace
    priority: str | None  # WorkloadPriorityClass; None: the priority of its pods
    on_pods: bool = False  # Whether the pods name it too: task governance refuses pods without it
    # Time for which the job may be admitted in all; None: without end.
    most_seconds: int | None = None


class MountPlan(Frozen):
    """A PersistentVolumeClaim in a container."""

    claim: str
    mount_path: str
    read_only: bool


class ConfigKeyPlan(Frozen):
    """A key of a ConfigMap of the pod's namespace, the value of an environment variable."""

    name: str
    key: str


class OutputPlan(Frozen):
    """Place of a job's checkpoints, metrics and traces."""

    # A path in its containers, or ``s3://BUCKET/PREFIX``, in Kubernetes' spelling: a bucket of the
    # cluster file is a variable.
    place: str
    # Storage behind it: a Lustre file system, a mounted bucket, a claim that the cluster file does
    # not make, a bucket by torch's S3 writer, or the pod itself.
    source: OutputSource
    claim: str | None = None  # Claim of the place; None without
    # Bucket of the place, by its name in the cluster file; None for others.
    bucket: str | None = None


class BandwidthPlan(Frozen):
    """Rate at which a place takes checkpoints."""

    gb_per_second: float  # GB/s of all nodes together
    formula: str  # Formula of the rate
    sources: tuple[str, ...]  # Pages that state its terms


class CheckpointPlan(Frozen):
    """Checkpoints of a job: their time, and the interval that pays."""

    size: int  # Bytes of a checkpoint
    bandwidth: BandwidthPlan  # Bandwidth of its place
    # Bytes that a process copies while training waits, before it writes them beside the training;
    # None where training waits for the whole write.
    copied: int | None
    save_seconds: float  # Time to write one
    held_seconds: float  # Part of that time for which training waits
    seconds_between_failures: float  # Mean time between two failures of the job
    # Training between two checkpoints at which least time is lost, at most half an hour, and no
    # less than the time to write one.
    interval_seconds: float
    lost_share: float  # Share of lost time then, from 0 to 1


class ProgramPlan(Frozen):
    """A program that a part gives a training job."""

    script: str | None  # Script or module that torchrun starts; None beside a command
    image: str | None  # Its image; None where the job has to state one
    command: tuple[str, ...] = ()  # Its command in place of a script
    args: tuple[str, ...] = ()  # Its arguments, before those that the job states
    model: str = ""  # Model that it trains
    steps: int = 0  # Steps of the run
    step_seconds: float = 0.0  # Seconds of a step, estimated; 0: not known
    interval_option: str = ""  # Its option with the steps between two checkpoints
    checkpoint_bytes: int = 0  # Size of a checkpoint; 0: it writes none
    kept: int = 0  # Checkpoints that stay beside the one being written; 0: not known
    # Bytes that each process copies while training waits for a save; None: it waits for the write.
    copied_bytes: int | None = None
    notes: tuple[str, ...] = ()  # What its user reads before nodes are paid for, each a sentence


class SavesPlan(Frozen):
    """Checkpoints of a job template, or of one job on all nodes of a pool."""

    subject: str  # The template or the pool
    model: str  # Model that it trains
    nodes: int  # Its nodes
    place: str  # Place of its checkpoints; empty where the cluster file has none
    node_hours: float  # Node-hours between two failures of a node
    size: int  # Bytes of a checkpoint
    # Their time and interval; None where no source states the speed of their write.
    checkpoints: CheckpointPlan | None


class ScratchPlan(Frozen):
    """A volume of a pod on the local NVMe of its node."""

    mount_path: str  # Path at which it is mounted
    gb: int  # GB of NVMe on each node, which pods and images share


class SecurityPlan(Frozen):
    """Rights of a pod's processes."""

    user: int | None = None  # Number of the user; None: the image's
    group: int | None = None  # Number of its group; None: the image's
    # Whether the kubelet refuses to start it as root; only where the image is known to have another
    # user, as the pod would not start otherwise.
    non_root: bool = False
    capabilities: tuple[str, ...] = ()  # Capabilities of Linux that it keeps


class PodPlan(Frozen):
    """The pods of one role of a job, which are alike but for their index."""

    image: str  # Whole image reference
    command: tuple[str, ...]  # Program and its arguments
    env: Mapping[str, str]  # Environment variables
    fields: Mapping[str, str]  # Environment variables with a field of the pod as value
    requests: Mapping[str, str]  # Resources requested, as Kubernetes quantities
    limits: Mapping[str, str]  # Limits of its resources
    mounts: tuple[MountPlan, ...]  # Volumes
    shared_memory: str | None  # Quantity, the size of `/dev/shm`; None leaves the runtime's 64 MiB
    nodes: tuple[Requirement, ...]  # Labels that its nodes must have
    preferred: tuple[PreferencePlan, ...]  # Labels that it prefers
    tolerations: tuple[TolerationPlan, ...]  # Tolerations of its nodes' taints
    priority_class: str | None  # Its PriorityClass; None for the cluster's default
    service_account: str | None  # Its service account; None for the namespace's own
    annotations: Mapping[str, str]  # Annotations
    grace_period_seconds: int  # Time from SIGTERM to SIGKILL
    args: tuple[str, ...] = ()  # Arguments of the image's own program, where there is no command
    # Environment variables from a key of a ConfigMap. They come before the others, which may name
    # them.
    settings: Mapping[str, ConfigKeyPlan] = field(default_factory=dict[str, ConfigKeyPlan])
    # Environment variables from a Secret, which has each under the variable's name.
    secrets: Mapping[str, str] = field(default_factory=dict[str, str])
    scratch: ScratchPlan | None = None  # Local NVMe; None where it has none
    # Command that runs before the program, in the same image; empty without.
    init: tuple[str, ...] = ()
    # Its scheduler; None: its controller's, or Kubernetes' own.
    scheduler: str | None = None
    reads_node: bool = False  # Whether it may read the labels of nodes from the API server
    security: SecurityPlan = field(default_factory=SecurityPlan)  # Rights of its processes


class RolePlan(Frozen):
    """One kind of pods of a job; most jobs have one."""

    name: str  # Its name, in letters and digits alone
    pods: int  # Number of its pods
    container: str  # Name of the container that runs the program
    pod: PodPlan  # The pods
    # Exit code of a pod that ends the job at once; None without one.
    mistake_exit_code: int | None = None
    restarts_alone: bool = False  # Whether a lost pod of it comes back, and the job goes on
    restarts_together: bool = False  # Whether all pods of the role are made anew then


class ArrayPlan(Frozen):
    """Pods of a job that run to their ends one by one."""

    size: int  # Pods in all
    parallelism: int  # Most pods at the same time, at most all
    max_failed: int  # Indexes that may fail before the job does


class TaskPlan(Frozen):
    """Pods of a Volcano Job that share a name and are numbered from 0."""

    name: str  # Its name, in letters and digits alone
    role: str  # Role of its pods in the job
    pods: int  # Number of its pods
    first: int  # Index of its first pod in the job
    rank_zero: bool  # Whether it is the one pod, behind a Service, at which the others meet


class PartPlan(Frozen):
    """One Volcano Job: a whole job, or a part of one that is too large for a single object."""

    name: str  # Its name
    tasks: tuple[TaskPlan, ...]  # Its tasks
    min_available: int  # Pods that start together or not at all
    host_list: bool  # Whether Volcano writes the names of all pods into each, and makes the Service


class TopologyPlan(Frozen):
    """Closeness in which Volcano or Kueue places the pods of a gang."""

    mode: Literal["soft", "hard"]  # `soft` takes close nodes first, `hard` waits for them
    # Tier of HyperNodes, one of which must hold them all; None without such a bound, and for Kueue.
    highest_tier: int | None = None
    # Label whose value nodes of one group share, for Kueue; None for Volcano.
    level: str | None = None


class GateStep(Frozen):
    """A check of nodes, as a job of the shape of the waiting one."""

    check: Literal["fabric", "device"]  # Kind of the check
    job: "JobPlan"  # The job of the check
    seconds: int  # Longest time that it holds its nodes, from the start of its pods
    rounds: int  # Most rounds of measurements
    # Cost of its nodes for that time, at On-Demand prices; None: no price is known.
    most_usd: float | None
    note: str  # Its purpose, longest time and largest cost, as a sentence


class GatePlan(Frozen):
    """Checks of nodes that have to pass before a job is sent."""

    steps: tuple[GateStep, ...]  # Checks, in their order
    # Runs of the checks, where others can take the place of bad nodes.
    tries: int


class JobPlan(Frozen):
    """The plan of a job."""

    name: str  # Its name
    namespace: str  # Its namespace
    kind: str  # Value of its key `kind`
    controller: str  # Its controller, by the name in the table of controllers
    # Its kinds of pods; the success of the first ends the job.
    roles: tuple[RolePlan, ...]
    queue: str | None  # Volcano queue; None where Volcano does not schedule it
    # Queue of Kueue, or of task governance; None without either.
    local_queue: LocalQueuePlan | None
    notes: tuple[str, ...]  # Notes for its user, each a sentence
    launches: bool = False  # Whether nodes are launched because its pods wait for them
    parts: tuple[PartPlan, ...] = ()  # Volcano Jobs; empty for other controllers
    # Port of the headless Service at which the nodes of an Indexed Job, of a PyTorchJob, or of a
    # job without a host list, meet; None where there is none.
    service_port: int | None = None
    restarts: int = 0  # Restarts of the job before it counts as failed
    elastic: bool = False  # Whether it goes on with fewer nodes than it asks for
    min_success: int | None = None  # Pods whose success ends the job; None: all
    # Topology of its pods; None where it asks for none.
    topology: TopologyPlan | None = None
    operator: Frozen | None = None  # What its controller alone reads of it; None: nothing
    ttl_seconds_after_finished: int = 0  # Time for which it stays after its end
    serving: ServingPlan | None = None  # Its address and replicas; None unless it is a service
    # Its pods as an array; None where they run at the same time or not at all.
    array: ArrayPlan | None = None
    deadline_seconds: int | None = None  # Wall-clock limit; None: without end
    # JSON merge patches over its objects, by kind.
    patch: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    output: OutputPlan | None = None  # Place of its checkpoints; None where it keeps none
    # Their time and interval; None where their size or place is not known.
    checkpoints: CheckpointPlan | None = None
    gate: GatePlan | None = None  # Checks of nodes before it is sent; None: none
    check: str | None = None  # Checks of nodes that it makes; None where it is a job of its own
    # Labels of its pods that say who pays for their nodes, and whether they may idle.
    owner: Mapping[str, str] = field(default_factory=dict[str, str])

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
