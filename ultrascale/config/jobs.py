"""`jobs`: templates from which jobs are launched, and files of one job each."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, Tag

from ultrascale.config._base import (
    Distinct,
    DnsLabel,
    LabelKey,
    LabelValue,
    Model,
    Quantity,
    SubdomainName,
    WrongValueError,
    dns_label,
    matching,
    told_apart_by,
)
from ultrascale.config.storage import MountPath

# Volcano gives a job's Service the job's name, and each pod a name that adds role and number.
LONGEST_JOB_NAME = 40

JobName = Annotated[str, dns_label(LONGEST_JOB_NAME)]
Role = Annotated[
    str,
    AfterValidator(
        matching(
            r"[a-z][a-z0-9]{0,12}",
            "not a role that ranks can be found by",
            "use at most 13 lower-case letters and digits, no '-': "
            "Volcano makes a variable of the shell of it",
        )
    ),
]
Variable = Annotated[
    str,
    AfterValidator(
        matching(
            r"[A-Za-z_][A-Za-z0-9_]*",
            "not the name of an environment variable",
            "use letters, digits and '_'",
        )
    ),
]
CacheModel = Annotated[
    str,
    AfterValidator(
        matching(
            r"[A-Za-z0-9_-]{1,63}",
            "not a name of a model's cache",
            "use at most 63 letters, digits, '_' and '-'",
        )
    ),
]
HttpPath = Annotated[
    str, AfterValidator(matching(r"/[^\s]*", "not a path of a URL", "write it as /health"))
]


def _word(value: object) -> object:
    """Take a number as the text that a command line has of it."""
    if isinstance(value, bool):
        raise WrongValueError("true or false, which programs spell differently", "put it in quotes")
    return str(value) if isinstance(value, int | float) else value


Word = Annotated[str, BeforeValidator(_word)]


def _has_tag(value: str) -> str:
    if not value or any(character.isspace() for character in value):
        raise WrongValueError("not an image", "write REPOSITORY:TAG, or REGISTRY/REPOSITORY:TAG")
    if "@sha256:" in value:
        return value
    tag = value.rpartition("/")[2].partition(":")[2]
    host, slash, _ = value.partition("/")
    own = not slash or not ("." in host or ":" in host)
    if not tag and own and not value.endswith(":"):
        return value  # the one that the cluster file builds
    if not tag:
        todo = "add :TAG, so that every pod and every restart runs the same image"
        raise WrongValueError("an image without a tag", todo)
    if tag == "latest":
        todo = "name a tag that stays: pods of one job could run two images"
        raise WrongValueError("a tag that moves", todo)
    return value


ImageName = Annotated[str, AfterValidator(_has_tag)]


class Toleration(Model):
    """A taint that a job's pods bear, in Kubernetes' own words."""

    key: LabelKey
    operator: Literal["Equal", "Exists"] = "Equal"
    value: LabelValue | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None


class Resources(Model):
    """What each pod of a job asks for; what is left out follows from its nodes.

    Attributes:
        gpu: NVIDIA GPUs; 0 asks for none on a node that has some.
        neuron: Neuron devices; 0 as well.
        efa: EFA interfaces.
        cpu: Kubernetes quantity of CPU.
        memory: Kubernetes quantity of memory.
        shared_memory: Kubernetes quantity, the size of `/dev/shm`; it counts as memory.
    """

    gpu: Annotated[int, Field(ge=0)] | None = None
    neuron: Annotated[int, Field(ge=0)] | None = None
    efa: Annotated[int, Field(ge=0)] | None = None
    cpu: Quantity | None = None
    memory: Quantity | None = None
    shared_memory: Quantity | None = None


class Volume(Model):
    """A PersistentVolumeClaim that a job's pods mount.

    Attributes:
        claim: Its name, in the job's namespace.
        mount_path: Where the container mounts it.
        read_only: Whether nothing is written there.
        existing: Whether it is none of the cluster file's: `submit` then looks for it in the
            cluster.
    """

    claim: SubdomainName
    mount_path: MountPath
    read_only: bool = False
    existing: bool = False


class Restarts(Model):
    """How often a job is restarted before it counts as failed.

    Attributes:
        job: Restarts of all its pods together; by default 10, and 100 on Spot nodes. With
            ``min_nodes`` pods restart one by one, and it is as many for each of them.
        workers: Restarts of the processes of a pod by torchrun, without a new pod; by default 3,
            and 100 with ``min_nodes``, where each loss of another node costs the survivors one.
    """

    job: Annotated[int, Field(ge=0)] | None = None
    workers: Annotated[int, Field(ge=0)] | None = None


class CompileCache(Model):
    """The shared cache of graphs that the Neuron compiler has compiled.

    Attributes:
        model: What the graphs are of; with the version of the compiler and the number of cores it
            names the folder of the cache.
        path: Folder of all caches, on a shared file system; by default `neuron-cache` on the
            job's first volume.
        allow_cold: Whether the job starts although its graphs are not compiled.
        precompile_args: Arguments of the script that are added when it runs to be compiled only.
    """

    model: CacheModel
    path: MountPath | None = None
    allow_cold: bool = False
    precompile_args: tuple[Word, ...] = ()


class Job(Model):
    """What all kinds of job have in common.

    Attributes:
        pool: Name of the pool whose nodes it runs on.
        node_selector: Labels that its nodes must carry.
        prefer: Values of the label `node-type`, best first; a job of several nodes lands on one
            of them as a whole.
        priority: One of ``scheduling.priority_classes``.
        team: Team of task governance in whose queue it waits, on HyperPod's nodes. Without it, a
            job of HyperPod's nodes is the team's that is called as it is.
        tolerations: Taints that its pods bear beside those of its pool.
        resources: What each pod asks for; by default a whole node.
        namespace: Where it runs; a team's job runs in the team's.
        image: One of ``images.repositories``, or a whole reference with its host. Without a tag
            it is the image that is built from this project for the repository.
        command: Program and its first arguments.
        args: Arguments of the script or program.
        env: Environment variables, beside those of its accelerators.
        service_account: Service account of its pods, for AWS permissions through EKS Pod Identity;
            None: the namespace's own, which has none.
        volumes: Volumes; by default the claims of the cluster file in its namespace.
        grace_period_seconds: Time from SIGTERM to SIGKILL, for a last checkpoint.
    """

    pool: DnsLabel | None = None
    node_selector: Mapping[LabelKey, LabelValue] = Field(default_factory=dict[str, str])
    prefer: Distinct[str] = ()
    priority: str | None = None
    team: str | None = None
    tolerations: tuple[Toleration, ...] = ()
    resources: Resources = Field(default_factory=Resources)
    namespace: DnsLabel = "training"
    image: ImageName | None = None
    command: tuple[Word, ...] = ()
    args: tuple[Word, ...] = ()
    env: Mapping[Variable, Word] = Field(default_factory=dict[str, str])
    service_account: SubdomainName | None = None
    volumes: tuple[Volume, ...] | None = None
    # The two minutes of a Spot notice, less what it takes to arrive.
    grace_period_seconds: Annotated[int, Field(ge=1)] = 110


class TrainingJob(Job):
    """Processes on one or several nodes that start, restart and end together.

    Attributes:
        kind: What tells it apart.
        nodes: Nodes, one pod each.
        min_nodes: Fewest nodes that it goes on with; None: it needs all of them.
        processes_per_node: Processes that torchrun starts on a node; by default one for each GPU
            or NeuronCore.
        script: Path of the script in the image, or the name of a module; torchrun starts it.
        role: Name of the pods' role, and part of their names; on HyperPod they are workers.
        queue: One of ``scheduling.queues``.
        rendezvous: Where its nodes meet; by default as ``scheduling.rendezvous.backend`` says.
        restarts: How often it is restarted.
        compile_cache: Compiled graphs, for Neuron devices; None compiles as graphs are met.
        ttl_seconds_after_finished: How long it stays to be looked at once it has ended.
    """

    kind: Literal["training"] = "training"
    nodes: Annotated[int, Field(ge=1)] = 1
    min_nodes: Annotated[int, Field(ge=1)] | None = None
    processes_per_node: Annotated[int, Field(ge=1)] | None = None
    script: Annotated[str, Field(min_length=1)] | None = None
    role: Role = "worker"
    queue: str | None = None
    rendezvous: Literal["c10d", "etcd", "etcd-v2"] | None = None
    restarts: Restarts = Field(default_factory=Restarts)
    compile_cache: CompileCache | None = None
    ttl_seconds_after_finished: Annotated[int, Field(ge=0)] = 86_400


class BatchJob(Job):
    """One pod that runs until its program ends.

    Attributes:
        kind: What tells it apart.
        queue: One of ``scheduling.queues``.
        retries: New pods after a failure; by default 3, and 100 on Spot nodes where Volcano runs,
            which counts the loss of a node too.
        ttl_seconds_after_finished: How long it stays to be looked at once it has ended.
    """

    kind: Literal["batch"] = "batch"
    queue: str | None = None
    retries: Annotated[int, Field(ge=0)] | None = None
    ttl_seconds_after_finished: Annotated[int, Field(ge=0)] = 86_400


class ServiceJob(Job):
    """Pods that serve until they are taken away, behind one address inside the cluster.

    Attributes:
        kind: What tells it apart.
        replicas: Pods.
        port: TCP port that the program listens on.
        capacity: Kind of capacity that its nodes come from; None: any of its pool.
        health_path: Path that answers 200 once the program serves; None: the port is open.
        startup_seconds: Time that the program may take before it serves, to load a model.
        allow_from: Other namespaces whose pods may reach it; those of its own always may.
    """

    kind: Literal["service"] = "service"
    replicas: Annotated[int, Field(ge=1)] = 1
    port: Annotated[int, Field(ge=1, le=65_535)] = 8080
    capacity: Literal["reserved", "spot", "on-demand"] | None = None
    health_path: HttpPath | None = None
    startup_seconds: Annotated[int, Field(ge=1)] = 600
    allow_from: tuple[DnsLabel, ...] = ()


AnyJob = TrainingJob | BatchJob | ServiceJob
StatedJob = Annotated[
    Annotated[TrainingJob, Tag("training")]
    | Annotated[BatchJob, Tag("batch")]
    | Annotated[ServiceJob, Tag("service")],
    told_apart_by("kind", "training", "batch", "service"),
]
