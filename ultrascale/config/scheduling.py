"""`scheduling`: queueing engine, queues, priorities and rendezvous."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from ultrascale.catalog import integer_bounds, kubernetes
from ultrascale.config._base import Model, Section
from ultrascale.config._errors import Mistake, Mistakes, near, refuse
from ultrascale.config._image_names import ImageName
from ultrascale.config._parts import Every
from ultrascale.config._rules import rule
from ultrascale.config._values import (
    Distinct,
    DnsLabel,
    LabelValue,
    Quantity,
    SubdomainName,
    WrongValueError,
    between,
    in_schema,
    one_of,
)
from ultrascale.config.pools import Pool
from ultrascale.config.teams import Teams
from ultrascale.core.table import all_parts

DEFAULT_PRIORITY_CLASSES: Mapping[str, int] = MappingProxyType(
    {
        "critical": 1_000_000,
        "high": 800_000,
        "medium": 600_000,
        "low": 400_000,
        "preemptible": 200_000,
    }
)

_RENDEZVOUS_REPLICAS = (1, 3)
# Bounds of a queue's weight in the schema of Volcano's Queue resource.
# Source: https://github.com/volcano-sh/volcano/blob/v1.15.1/config/crd/volcano/bases/scheduling.volcano.sh_queues.yaml
_QUEUE_WEIGHTS = (1, 65_535)

Queueing = Literal["kueue", "volcano", "none"]


def _not_kubernetes_own(name: str) -> str:
    if name.startswith(kubernetes.RESERVED_PRIORITY_CLASS_PREFIX):
        wrong = f"{name!r}: names that start with system- are Kubernetes' own"
        raise WrongValueError(wrong, "choose another", complete=True)
    return name


def _users_may_set(value: int) -> int:
    lowest, greatest = kubernetes.LEAST_PRIORITY, kubernetes.GREATEST_PRIORITY
    if not lowest <= value <= greatest:
        todo = f"write {lowest} to {greatest}"
        raise WrongValueError("not a priority that users may set", todo)
    return value


PriorityName = Annotated[
    SubdomainName,
    AfterValidator(_not_kubernetes_own),
    in_schema(**{"not": {"pattern": f"^{kubernetes.RESERVED_PRIORITY_CLASS_PREFIX}"}}),
]
Priority = Annotated[
    int,
    AfterValidator(_users_may_set),
    in_schema(minimum=kubernetes.LEAST_PRIORITY, maximum=kubernetes.GREATEST_PRIORITY),
]


class Queue(Model):
    """A queue of jobs, of Kueue or of Volcano."""

    name: SubdomainName
    """Name of the queue, unique."""

    guarantee: Mapping[DnsLabel, Annotated[int, Field(ge=0, le=integer_bounds.REPLICAS)]] = Field(
        default_factory=dict[str, int]
    )
    """Nodes that its jobs get back whenever they wait for them, by pool. Kueue only. Default: none;
    its jobs borrow.
    """

    prefer: Distinct[DnsLabel] = ()
    """Pools that its jobs may run on, best first. Kueue only.

    Default: the pools with accelerators: reserved, Spot, On-Demand.
    """

    limit: Mapping[DnsLabel, Annotated[int, Field(ge=0, le=integer_bounds.REPLICAS)]] = Field(
        default_factory=dict[str, int]
    )
    """Most nodes beyond the guarantee, by pool. Kueue only. Default: no limit."""

    topology: bool = False
    """Place its jobs by AWS's network topology; its pools are fixed, and it never bursts. Kueue
    only.
    """

    fair_share_weight: Annotated[int, Field(ge=1, le=1_000)] | None = None
    """Its share of what others leave idle, relative to the other queues. Kueue only.

    Default: 1 where another queue states one; else who asks first, borrows first.
    """

    weight: Annotated[int, between(_QUEUE_WEIGHTS)] = 1
    """Share of the cluster, relative to the other queues. Volcano only."""

    reclaimable: bool = True
    """Let other queues take back what it uses beyond its share. Volcano only."""

    capability: Mapping[str, Quantity] = Field(default_factory=dict[str, str])
    """Most that its jobs may use, by resource name. Volcano only. Default: no limit."""

    cost_center: LabelValue | None = None
    """Account that pays for its jobs, with `observability.ledger`. Default: none."""


RendezvousBackend = Literal["static", "c10d", "etcd", "etcd-v2"]


class Rendezvous(Section):
    """Meeting point of the nodes of a job, and the server that elastic jobs meet at."""

    backend: RendezvousBackend = "static"
    """`static` and `c10d` meet in the job. `etcd` runs a server of API v3, at which jobs meet that
    go on with fewer nodes; `etcd-v2` also serves torch's own `etcd` backends.
    """

    replicas: Annotated[int, one_of(_RENDEZVOUS_REPLICAS)] = 1
    """Members of the etcd cluster; `static` and `c10d` have none."""

    ranks: Literal["topology", "index"] = "topology"
    """Order of the nodes of a job with `static`: by AWS's network topology, where pods may read the
    labels of their nodes, or by the index of the pod alone.
    """

    @property
    def has_server(self) -> bool:
        """Whether the cluster runs a server for it."""
        return self.backend in ("etcd", "etcd-v2")


class PreflightSettings(Section):
    """Settings of the checks that jobs ask for by `preflight`, and of `ultrascale fabric`."""

    floors: Mapping[str, Annotated[float, Field(gt=0)]] = Field(default_factory=dict[str, float])
    """Least bus bandwidth of a pair of nodes, in GB/s, by instance type.

    Default: 80 % of the published figure; without one, 60 % of the best pair of the same check.
    """

    image: ImageName | None = None
    """Image of the fabric check: Python 3.10, and nccl-tests with Open MPI, or nccom-test.

    Default: AWS's image of nccl-tests; on Neuron devices that of torch-neuronx.
    """

    device_image: ImageName | None = None
    """Image of the device check: DCGM, or the Neuron tools. Default: NVIDIA's, or torch-neuronx's.
    """

    max_usd: Annotated[float, Field(gt=0)] | None = None
    """Most dollars that the nodes of one check may cost, at On-Demand prices.

    Default: 45 minutes of its nodes.
    """


class Scheduling(Section):
    """Queueing engine, queues, priorities and rendezvous."""

    queueing: Queueing | None = None
    """Engine that lets jobs wait in queues and starts all pods of a job together.

    Default: `none`.
    """

    gang_scheduler: Literal["volcano", "none"] | None = None
    """Older name of `queueing`. Default: what `queueing` says."""

    queues: tuple[Queue, ...] = ()
    """Queues. Default: with Kueue one over all pools with accelerators, with Volcano its own."""

    priority_classes: Mapping[PriorityName, Priority] = Field(
        default_factory=lambda: dict(DEFAULT_PRIORITY_CLASSES)
    )
    """Values of PriorityClasses by name; a class never changes its value.

    Default: critical 1000000, high 800000, medium 600000, low 400000, preemptible 200000.
    """

    topology_aware: bool = False
    """Let Volcano place jobs by AWS's network topology: up to 20,000 nodes that state theirs, and
    gangs of up to 500. `ultrascale plan` shows the time that each takes.
    """

    rendezvous: Rendezvous = Field(default_factory=Rendezvous)
    """Meeting point of elastic workers."""

    preflight: PreflightSettings = Field(default_factory=PreflightSettings)
    """Checks of nodes before jobs start."""

    neuron_scheduler_extension: bool = False
    """Run a second scheduler for pods that ask for a part of a node's Neuron devices. Not for
    Volcano's jobs.
    """

    @property
    def engine(self) -> Queueing:
        """The engine that the file chooses, by either of the two keys."""
        return self.queueing or self.gang_scheduler or "none"


@rule
def queue_keys_are_the_engines(queue: Queue, scheduling: Scheduling) -> Mistakes:
    for part in all_parts():
        if part.engine is None or scheduling.engine in {part.name, "none"}:
            continue
        for key in sorted(part.engine.queue_keys & queue.model_fields_set):
            wrong = f"a key of {part.engine.word}'s queues"
            todo = f"leave it out, or set queueing: {part.name}"
            yield refuse(key, wrong, todo, got="")


@rule
def queue_weight_is_legal(queue: Queue) -> Mistakes:
    lowest, most = _QUEUE_WEIGHTS
    if not lowest <= queue.weight <= most:
        yield refuse("weight", "out of range", f"write {lowest} to {most}")


@rule
def replicas_form_a_quorum(rendezvous: Rendezvous) -> Mistakes:
    if rendezvous.replicas not in _RENDEZVOUS_REPLICAS:
        yield refuse("replicas", "not a size of an etcd cluster", "write 1 or 3")


@rule
def replicas_have_a_use(rendezvous: Rendezvous) -> Mistakes:
    if (
        not rendezvous.has_server
        and rendezvous.replicas != 1
        and rendezvous.replicas in _RENDEZVOUS_REPLICAS
    ):
        wrong = f"{rendezvous.backend} runs in the job and has no replicas"
        yield refuse("replicas", wrong, "leave it out, or use backend: etcd")


@rule
def engine_is_there(scheduling: Scheduling) -> Mistakes:
    if scheduling.engine == "none" and scheduling.queues:
        yield refuse("queues", "queues without an engine", "set queueing: kueue, or volcano")
    if scheduling.engine != "volcano" and scheduling.topology_aware:
        yield refuse("topology_aware", "needs Volcano", "set queueing: volcano")


@rule
def one_scheduler_governs(scheduling: Scheduling, governance: Teams | None) -> Mistakes:
    if scheduling.engine != "none" and governance is not None:
        wrong = "HyperPod task governance, which is a Kueue of its own, queues this cluster's jobs"
        key = "queueing" if scheduling.queueing else "gang_scheduler"
        yield refuse(key, wrong, "use none, or remove hyperpod.task_governance")


@rule
def queueing_is_said_once(scheduling: Scheduling) -> Mistakes:
    older, newer = scheduling.gang_scheduler, scheduling.queueing
    if None not in (older, newer) and older != newer:
        wrong = f"the older name of queueing, which says {newer}"
        yield refuse("gang_scheduler", wrong, "keep only queueing")


@rule(severity="note")
def older_keys(scheduling: Scheduling) -> Mistakes:
    """Yield keys that keep working under a newer name."""
    if (engine := scheduling.gang_scheduler) is not None:
        todo = "leave it out" if scheduling.queueing else f"write queueing: {engine}"
        yield refuse("gang_scheduler", "older name of queueing", todo, got="")


@rule
def floors_are_of_types_in_use(settings: PreflightSettings, pools: Every[Pool]) -> Mistakes:
    types = sorted({name for pool in pools for name in pool.instance_types})
    for name in settings.floors:
        if name not in types:
            wrong = f"no pool has this instance type: the floor of {name} judges no node"
            yield Mistake(("floors", name), wrong, near(name, types), got="")


@rule
def neuron_extension_has_nodes(scheduling: Scheduling, pools: Every[Pool]) -> Mistakes:
    accelerators = (spec.accelerator for pool in pools for spec in pool.specs)
    kinds = {accelerator.kind for accelerator in accelerators if accelerator is not None}
    if scheduling.neuron_scheduler_extension and "neuron" not in kinds:
        wrong = "no pool has Neuron devices"
        yield refuse("neuron_scheduler_extension", wrong, "leave it out")
