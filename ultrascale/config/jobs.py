"""`jobs`: templates of jobs, and files of one job each."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, Tag

from ultrascale.catalog import integer_bounds, kubernetes
from ultrascale.config._base import Model, chosen_by_form
from ultrascale.config._image_names import ImageName
from ultrascale.config._values import (
    CpuQuantity,
    Distinct,
    DnsLabel,
    LabelKey,
    LabelValue,
    MemoryQuantity,
    SubdomainName,
    WrongValueError,
    dns_label,
    matching,
)
from ultrascale.config.scheduling import RendezvousBackend
from ultrascale.config.storage import MountPath
from ultrascale.core.table import all_parts

# Volcano names a job's Service after the job, and each pod after the job, role and number.
LONGEST_JOB_NAME = 40

JobName = Annotated[str, dns_label(LONGEST_JOB_NAME)]
Role = Annotated[
    str,
    matching(
        r"[a-z][a-z0-9]{0,12}",
        "not a role name that fits into variables' names",
        "use at most 13 lower-case letters and digits, a letter first",
    ),
]
Variable = Annotated[
    str,
    matching(
        r"[A-Za-z_][A-Za-z0-9_]*",
        "not the name of an environment variable",
        "use letters, digits and '_'",
    ),
]
CacheModel = Annotated[
    str,
    matching(
        r"[A-Za-z0-9_-]{1,63}",
        "not a name of a model's cache",
        "use at most 63 letters, digits, '_' and '-'",
    ),
]
Idle = Literal["watch", "allow"]
NetworkLayer = Literal["layer-1", "layer-2", "layer-3", "layer-4"]
OutputPlace = Annotated[
    str,
    matching(
        r"(?=.{1,1024}$)(?:/(?!\.{1,2}(?:/|$))[\w.-]{1,255})+"
        r"|s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?:/[!-.0-~][!-~]{0,899})?",
        "neither an absolute path nor s3://BUCKET/PREFIX",
        "write it as /data/output, or s3://checkpoints/run, with no '/' at the end",
    ),
]


# Capabilities of Kubernetes' level `baseline`, which our namespaces enforce.
# Source: https://kubernetes.io/docs/concepts/security/pod-security-standards/
Capability = Literal[
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
]


def _word(value: object) -> object:
    """Take a number as text, as a command line has it."""
    if isinstance(value, bool):
        raise WrongValueError("true or false, which programs spell differently", "put it in quotes")
    return str(value) if isinstance(value, int | float) else value


Word = Annotated[str, BeforeValidator(_word, json_schema_input_type=str | int | float)]


class Toleration(Model):
    """A taint that a job's pods bear, in Kubernetes' own words."""

    key: LabelKey
    """Key of the taint."""

    operator: Literal["Equal", "Exists"] = "Equal"
    """`Exists` tolerates any value."""

    value: LabelValue | None = None
    """Value of the taint. Default: none."""

    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """Effect of the taint. Default: any."""


class Resources(Model):
    """Resources that each pod of a job asks for; the others follow from its nodes."""

    gpu: Annotated[int, Field(ge=0, le=integer_bounds.INT32)] | None = None
    """NVIDIA GPUs; 0 asks for none. Default: all of the node."""

    neuron: Annotated[int, Field(ge=0, le=integer_bounds.INT32)] | None = None
    """Neuron devices, 1 or all; 0 asks for none. Default: all of the node."""

    efa: Annotated[int, Field(ge=0, le=integer_bounds.INT32)] | None = None
    """EFA interfaces; only a pod of a whole node gets any. Default: all of the node."""

    cpu: CpuQuantity | None = None
    """Kubernetes quantity of CPU. Default: what is left of the node."""

    memory: MemoryQuantity | None = None
    """Kubernetes quantity of memory. Default: what is left of the node."""

    shared_memory: MemoryQuantity | None = None
    """Kubernetes quantity of `/dev/shm`, which counts as memory. Default: a part of the memory."""


class Security(Model):
    """Rights of a job's processes beyond the usual: none of root's, and no way to gain any."""

    user: Annotated[int, Field(ge=1, le=integer_bounds.INT32)] | None = None
    """Number of the user that the processes run as. Default: the image's."""

    group: Annotated[int, Field(ge=1, le=integer_bounds.INT32)] | None = None
    """Number of its group. Default: the number of the user."""

    capabilities: Distinct[Capability] = ()
    """Capabilities of Linux that root keeps, for images that need some. Default: none."""


class Volume(Model):
    """A PersistentVolumeClaim that a job's pods mount."""

    claim: SubdomainName
    """Name of the claim in the job's namespace."""

    mount_path: MountPath
    """Path at which the container mounts it."""

    read_only: bool = False
    """Mount it for reading only."""

    existing: bool = False
    """The cluster file does not make the claim; `submit` looks for it in the cluster."""


class Restarts(Model):
    """Restarts of a job before it counts as failed."""

    job: Annotated[int, Field(ge=0, le=integer_bounds.RESTARTS)] | None = None
    """Restarts of all pods; with `min_nodes`, of each pod.

    Default: 10, or 100 on Spot, and those that `budget` earns in 30 days; 2 with `--precompile`.
    """

    workers: Annotated[int, Field(ge=0, le=integer_bounds.RESTARTS)] | None = None
    """Restarts of the processes of a pod by torchrun, without a new pod.

    Default: 3; 0 with `rendezvous: static`, 100 with `min_nodes`.
    """

    budget: Annotated[float, Field(gt=0, le=integer_bounds.NODE_HOURS)] | None = None
    """Node-hours of the job that earn one restart; progress that is saved refills the budget.

    Default: half of `node_hours_between_failures`.
    """

    node_hours_between_failures: (
        Annotated[float, Field(gt=0, le=integer_bounds.NODE_HOURS)] | None
    ) = None
    """Node-hours between two failures of a node, from which restarts and the interval of
    checkpoints follow.

    Default: 6335, as was published of 2,048 nodes.
    """

    stragglers: Literal["report", "restart"] = "report"
    """Reaction to slow nodes: `report` names them in the log; `restart` also lets HyperPod's
    training operator restart the job, on the same nodes unless HyperPod replaces them.
    """


class CompileCache(Model):
    """The shared cache of graphs that the Neuron compiler has compiled."""

    model: CacheModel
    """Name of the model; with the compiler's version and the number of cores it names the folder.
    """

    path: MountPath | None = None
    """Folder of all caches on a shared file system. Default: `neuron-cache` on the first volume."""

    allow_cold: bool = False
    """Start the job although its graphs are not compiled."""

    precompile_args: tuple[Word, ...] = ()
    """Arguments that the script gets in addition when it only compiles. Default: none."""


class RoleSpec(Model):
    """One kind of pods of a gang of several; what it leaves out is the job's."""

    nodes: Annotated[int, Field(ge=1, le=integer_bounds.REPLICAS)] = 1
    """Nodes, one pod on each."""

    pool: DnsLabel | None = None
    """Pool whose nodes its pods run on. Default: the job's."""

    image: ImageName | None = None
    """Image. Default: the job's."""

    script: Annotated[str, Field(min_length=1)] | None = None
    """Script or module that torchrun starts on the nodes of this role. Default: the job's."""

    command: tuple[Word, ...] = ()
    """Program and its first arguments, in place of a script. Default: the job's."""

    args: tuple[Word, ...] = ()
    """Arguments of the program or script. Default: the job's, of the program of the job."""

    env: Mapping[Variable, Word] = Field(default_factory=dict[str, str])
    """Environment variables beside those of the job. Default: none."""

    resources: Resources | None = None
    """Resources of each pod. Default: the job's."""

    when_lost: Literal["restart-job", "restart-role"] = "restart-job"
    """Restart after one of its pods is lost: of all roles, or of that pod alone."""


class Array(Model):
    """Many pods that are alike but for their index, each of which runs to its end."""

    size: Annotated[int, Field(ge=1, le=kubernetes.MOST_INDEXES)]
    """Pods in all: indexes from 0, in the variable `JOB_COMPLETION_INDEX`."""

    parallelism: Annotated[int, Field(ge=1, le=kubernetes.MOST_PARALLEL_INDEXES)] | None = None
    """Most pods at the same time. Default: all of them."""

    max_failed: Annotated[int, Field(ge=0, le=kubernetes.MOST_INDEXES)] = 0
    """Indexes that may fail, after all of their retries, before the job does."""


class TopologyLayer(Model):
    """A layer of AWS's network in one group of which the nodes of a job are to be."""

    required: NetworkLayer | None = None
    """Layer of which the job waits for one group. Default: none is required."""

    preferred: NetworkLayer | None = None
    """Layer of which one group comes first. Default: none is preferred."""


PreflightCheck = Literal["fabric", "device"]


def _checks(value: object) -> object:
    """Take one check, or `none`, as the list that it is."""
    if value == "none":
        return ()
    return (value,) if isinstance(value, str) else value


Preflight = Annotated[
    Distinct[PreflightCheck],
    BeforeValidator(
        _checks,
        json_schema_input_type=Literal["none", "fabric", "device"] | tuple[PreflightCheck, ...],
    ),
]

Topology = Annotated[
    Annotated[Literal["any", "preferred", "required"], Tag("plain")]
    | Annotated[TopologyLayer, Tag("mapping")],
    chosen_by_form(TopologyLayer),
]


class Job(Model):
    """The keys that all kinds of job have, and what is known of each kind."""

    if TYPE_CHECKING:
        # Each kind has it among its own keys, with words of its own.
        queue: str | None

    # Whether it is one pod of a person, which nobody else starts and which waits in no queue
    # unless it names one.
    is_personal: ClassVar[bool] = False

    # Whether the part of its kind has a controller that makes its pods, whatever the engine.
    has_own_controller: ClassVar[bool] = False

    @classmethod
    def kind_name(cls) -> str:
        """Return the value of `kind` by which a file chooses it."""
        return str(cls.model_fields["kind"].default)

    pool: DnsLabel | None = None
    """Pool whose nodes the job runs on. Default: the only pool that has what it asks for."""

    node_selector: Mapping[LabelKey, LabelValue] = Field(default_factory=dict[str, str])
    """Labels that its nodes must have. Default: those of its pool."""

    prefer: Distinct[str] = ()
    """Values of the label `node-type`, best first. One pod lands on any of them, several nodes on
    one as a whole.

    Default: none.
    """

    priority: str | None = None
    """One of `scheduling.priority_classes`. Default: the cluster's."""

    team: str | None = None
    """Team of task governance in whose queue it waits, on HyperPod's nodes.

    Default: the team that the job or its template is named as.
    """

    tolerations: tuple[Toleration, ...] = ()
    """Tolerations beside those of its nodes' taints. Default: none."""

    resources: Resources = Field(default_factory=Resources)
    """Resources of each pod.

    Default: a whole node, less what the kubelet and the platform's DaemonSets take.
    """

    namespace: DnsLabel = "training"
    """Namespace that the cluster file makes; a team's job states none.

    Default: its team's, else `training`.
    """

    image: ImageName | None = None
    """One of `images.repositories`, or a whole reference with its host and a tag that stays;
    without a tag the image that is built.

    Default: required to send it.
    """

    command: tuple[Word, ...] = ()
    """Program and its first arguments. Default: the image's own; a batch job has to state it."""

    args: tuple[Word, ...] = ()
    """Arguments of the program or script. Default: none."""

    env: Mapping[Variable, Word] = Field(default_factory=dict[str, str])
    """Environment variables beside those of the accelerators. Those that break NCCL, EFA or the
    Neuron runtime are refused.

    Default: none.
    """

    allow_env: Distinct[Variable] = ()
    """Variables of `env` that are refused as harmful, and that you set knowingly, such as
    `NCCL_BUFFSIZE`. Default: none.
    """

    security: Security = Field(default_factory=Security)
    """User and capabilities of the processes. Default: the image's user, without capabilities."""

    service_account: SubdomainName | None = None
    """Service account that you made in its namespace, for AWS permissions through EKS Pod Identity.

    Default: the namespace's own, without any.
    """

    volumes: tuple[Volume, ...] | None = None
    """PersistentVolumeClaims that its pods mount.

    Default: the cluster file's claims in its namespace.
    """

    secrets: Mapping[Variable, SubdomainName] = Field(default_factory=dict[str, str])
    """Environment variables with a value from a Kubernetes Secret of the job's namespace: the
    variable, which is the key as well, and the name of the Secret. Default: none.
    """

    deadline_hours: Annotated[float, Field(gt=0, le=integer_bounds.DEADLINE_HOURS)] | None = None
    """Hours of wall-clock time from its start after which a job is ended; not of a service.

    Default: none.
    """

    scratch: MountPath | None = None
    """Path at which local NVMe of the node is mounted; empty at first, and gone with the pod.

    Default: none.
    """

    annotations: Mapping[LabelKey, str] = Field(default_factory=dict[str, str])
    """Annotations of its pods. Default: those that keep autoscalers off."""

    init: tuple[Word, ...] = ()
    """Command that runs on each pod before the program, in the same image and with the same
    resources. Default: none.
    """

    patch: Mapping[str, Mapping[str, object]] = Field(
        default_factory=dict[str, Mapping[str, object]]
    )
    """JSON merge patches (RFC 7396) by kind of object, such as `{JobSet: {spec: ...}}`, over what
    is sent; the output says so. Default: none.
    """

    # The two minutes of a Spot notice, less the time that it takes to arrive.
    grace_period_seconds: Annotated[int, Field(ge=1, le=integer_bounds.GRACE_SECONDS)] = 110
    """Seconds from SIGTERM to SIGKILL, for a last checkpoint; at most 120 on Spot."""


def _default_nodes(read: Mapping[str, object]) -> int:
    """Return the nodes of a job that states none: its recipe's, from the keys read before."""
    counts = (part.default_nodes(read) for part in all_parts())
    return next((count for count in counts if count is not None), 1)


class TrainingKind(Job):
    """The key of a training job that stands before those of parts."""

    kind: Literal["training"] = "training"
    """Pods that start, restart and end together."""


class TrainingJob(TrainingKind):
    """Processes on one or several nodes that start, restart and end together."""

    nodes: Annotated[int, Field(ge=1, le=integer_bounds.REPLICAS)] = Field(
        default_factory=_default_nodes
    )
    """Nodes, one pod on each. Default: 1, or those of the recipe."""

    min_nodes: Annotated[int, Field(ge=1, le=integer_bounds.REPLICAS)] | None = None
    """Fewest nodes that the job goes on with after a loss. Default: all of them."""

    processes_per_node: Annotated[int, Field(ge=1, le=integer_bounds.PROCESSES)] | None = None
    """Processes that torchrun starts on a node. Default: one for each GPU or logical NeuronCore."""

    script: Annotated[str, Field(min_length=1)] | None = None
    """Path of the script in the image, or name of a module, that torchrun starts.

    Default: the recipe's; without one `command` is required.
    """

    role: Role = "worker"
    """Role of the pods, and part of their names: letters and digits. Not of a PyTorchJob."""

    queue: str | None = None
    """One of `scheduling.queues`; a service names one of Kueue's, whose quota it then holds.

    Default: the only queue; with Volcano else its `default`; of a service none.
    """

    rendezvous: RendezvousBackend | None = None
    """Meeting point of the nodes; a server with `etcd-v2` serves `etcd` as well.

    Default: `static` for a job that restarts as a whole; else the cluster's server, or `c10d`.
    """

    idle: Idle = "watch"
    """`allow` leaves it alone where `observability.idle_jobs` watches for jobs without use."""

    topology: Topology | None = None
    """Closeness in AWS's network: `required` waits for one group of the lowest layer that holds the
    job, `preferred` takes close nodes first. Or a layer: `{required: layer-2}`.

    Default: `preferred` with `scheduling.topology_aware` or a queue's `topology`, else `any`.
    """

    preflight: Preflight = ()
    """Checks of nodes before the job starts: `fabric` measures pairs of nodes, `device` diagnoses
    each; a list of both, or `none`. Default: none.
    """

    roles: Mapping[Role, RoleSpec] = Field(default_factory=dict[str, RoleSpec])
    """Several kinds of pods that start, restart and end together. Default: one, called `role`."""

    restarts: Restarts = Field(default_factory=Restarts)
    """Restarts before the job counts as failed."""

    output: OutputPlace | None = None
    """Place of checkpoints, metrics and traces: a path on a volume, or `s3://BUCKET/PREFIX` with
    one of `storage.buckets` or a bucket of yours.

    Default: `output/NAME` on the first volume, else in the bucket `checkpoints`.
    """

    durable: bool = True
    """Whether the output has to outlive the pods; `false` sends a job that keeps none."""

    compile_cache: CompileCache | None = None
    """Cache of compiled graphs for Neuron devices. Default: graphs are compiled as they are met."""

    ttl_seconds_after_finished: Annotated[int, Field(ge=0, le=integer_bounds.TTL_SECONDS)] = 86_400
    """Seconds that an ended job stays."""


class BatchJob(Job):
    """One pod, or an array of them, that runs until its end."""

    kind: Literal["batch"] = "batch"
    """One pod, or an array, until its end."""

    array: Array | None = None
    """The same pod many times, each with an index of its own. Default: one pod."""

    queue: str | None = None
    """One of `scheduling.queues`; a service names one of Kueue's, whose quota it then holds.

    Default: the only queue; with Volcano else its `default`; of a service none.
    """

    idle: Idle = "watch"
    """`allow` leaves it alone where `observability.idle_jobs` watches for jobs without use."""

    retries: Annotated[int, Field(ge=0, le=integer_bounds.RESTARTS)] | None = None
    """New pods after a failure.

    Default: 3; 100 on Spot nodes with Volcano, which counts the loss of a node too.
    """

    ttl_seconds_after_finished: Annotated[int, Field(ge=0, le=integer_bounds.TTL_SECONDS)] = 86_400
    """Seconds that an ended job stays."""
