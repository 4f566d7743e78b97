"""Volcano as the engine of jobs: its queues, and the placement of gangs by the network."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from ultrascale import config
from ultrascale.core.engine import QueueingEngine
from ultrascale.parts.volcano import facts
from ultrascale.parts.volcano.placement import MOST_SECONDS, plan_gang
from ultrascale.plan import capacity, names
from ultrascale.plan.jobs.command import ATTEMPT, FIRST_INDEX, POD_IP
from ultrascale.plan.jobs.controllers import Division, JobController
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.jobs.topology import is_required, layer_of, pool_names
from ultrascale.plan.model import GangPlacement, PartPlan, PodPlan, PoolPlan, TaskPlan
from ultrascale.plan.model.jobs import TopologyPlan
from ultrascale.plan.network.layers import topology_layers

# --- Division of a job into Volcano Jobs, which hold a limited number of pods ---------------------


def divide(*, name: str, role: str, pods: int, min_available: int) -> Division:
    """Divide a job.

    Up to a point Volcano itself writes the names of all pods into each of them. Above that there is
    one Service for the pod at which the others meet, and tasks of a legal size; above the next,
    several jobs.

    Args:
        name: Name of the job.
        role: Name of its pods' role.
        pods: Number of its pods.
        min_available: Pods that start together or not at all.
    """
    if pods <= facts.PODS_PER_TASK and _list_bytes(name, role, pods) < facts.HOST_LIST_BYTES:
        task = TaskPlan(name=role, role=role, pods=pods, first=0, rank_zero=False)
        part = PartPlan(name=name, tasks=(task,), min_available=min_available, host_list=True)
        return Division(parts=(part,), notes=())
    notes = [
        f"The names of {pods} pods are more than Volcano can write into each of them, so they meet "
        "at the first one through a Service, without a list of hosts."
    ]
    shares = [*_shares(pods, facts.PODS_PER_JOB)]
    if len(shares) > 1:
        notes.append(
            f"Divided into {len(shares)} Volcano jobs of at most {facts.PODS_PER_JOB} pods: each "
            "starts all of its own pods together, and those that are there wait for the others."
        )
    parts: list[PartPlan] = []
    for number, (first, count) in enumerate(shares, start=1):
        parts.append(
            PartPlan(
                name=name if len(shares) == 1 else f"{name}-{number}",
                tasks=(*_tasks(role, first, count),),
                min_available=min_available if len(shares) == 1 else count,
                host_list=False,
            )
        )
    return Division(parts=tuple(parts), notes=tuple(notes))


def _list_bytes(name: str, role: str, pods: int) -> int:
    """Return an upper bound of the list, in which each pod is `NAME-ROLE-INDEX.NAME`."""
    longest = f"{name}-{role}-{pods - 1}.{name},"
    return pods * len(longest)


def _tasks(role: str, first: int, pods: int) -> Iterator[TaskPlan]:
    """Yield the tasks of the pods from ``first`` on; the job's first pod has one of its own."""
    if first == 0:
        yield TaskPlan(name=f"{role}0", role=role, pods=1, first=0, rank_zero=True)
        first, pods = 1, pods - 1
    for number, (start, count) in enumerate(_shares(pods, facts.PODS_PER_TASK), start=1):
        yield TaskPlan(
            name=f"{role}{number}", role=role, pods=count, first=first + start, rank_zero=False
        )


def _shares(pods: int, most: int) -> Iterator[tuple[int, int]]:
    """Yield start and size of the fewest shares of at most ``most`` pods, as equal as can be."""
    count = -(-pods // most)
    start = 0
    for number in range(count):
        size = pods // count + (number < pods % count)
        yield start, size
        start += size


# --- Jobs of Volcano in the plan of jobs: their pods, and their meeting ---------------------------


_POD_GROUP = "POD_GROUP"


class _VolcanoJob(JobController):
    name = "volcano"
    resource = ("batch.volcano.sh", "jobs")
    waits_in_queue = True
    word = "Volcano"
    counts_lost_nodes = True
    index = f"{FIRST_INDEX}+VC_TASK_INDEX"
    index_annotation = facts.TASK_INDEX_ANNOTATION
    most_listed_pods = facts.PODS_PER_TASK

    def fields(self) -> Mapping[str, str]:
        return {
            POD_IP: "status.podIP",
            _POD_GROUP: f"metadata.annotations['{facts.POD_GROUP_ANNOTATION}']",
            ATTEMPT: f"metadata.annotations['{facts.RETRY_COUNT_ANNOTATION}']",
        }

    def run(self, name: str, *, attempted: bool) -> str:
        """Return a name unlike that of an earlier job with the same name.

        etcd keeps an ended meeting for two hours, and refuses a pod that comes to it again.
        """
        run = f"${{{_POD_GROUP}:-{name}}}"
        return f"{run}-${{{ATTEMPT}:-0}}" if attempted else run

    def host(self, name: str, role: str, index: int) -> str:
        return facts.host(name, role, index)

    def divide(self, *, name: str, role: str, pods: int, min_available: int) -> Division:
        return divide(name=name, role=role, pods=pods, min_available=min_available)

    def deadline_note(self, hours: float) -> str:
        return (
            "Volcano has no deadline for a job: coreutils' timeout ends the program after "
            f"{hours:g} hours, counted from each restart of its pods, and the job with it."
        )


VOLCANO_JOB = _VolcanoJob()
CONTROLLERS = (VOLCANO_JOB,)


# --- Volcano as the engine of jobs: its queues, and the placement of gangs by the network ---------


# In a smaller job nobody asks why it does not start.
_LONG_SECONDS = 20


class _Engine(QueueingEngine):
    """Volcano: a scheduler of gangs, with queues of its own."""

    word = "Volcano"
    queues_jobs = True
    gangs = True
    queue_keys = frozenset({"weight", "reclaimable", "capability"})
    latest_kubernetes = facts.LATEST_KUBERNETES_VERSION
    most_pods = facts.PODS_PER_JOB

    def known_queues(self, stated: Sequence[str]) -> Sequence[str]:
        # Its own `root` takes no jobs.
        return (*stated, facts.DEFAULT_QUEUE)

    def controller(self, request: JobRequest) -> JobController:
        # Two schedulers on the same nodes would give out the same GPUs twice.
        return VOLCANO_JOB

    def queue_of_gang(self, request: JobRequest) -> str:
        queues = request.cluster.scheduling.queues
        only = queues[0].name if len(queues) == 1 else facts.DEFAULT_QUEUE
        return request.job.queue or only

    def in_queue(self, pod: PodPlan, queue: str, role: str) -> PodPlan:
        """Return pods that Volcano places one by one, although no Job of Volcano makes them."""
        place = {facts.QUEUE_ANNOTATION: queue, facts.TASK_ANNOTATION: role}
        return replace(pod, scheduler=facts.SCHEDULER, annotations={**pod.annotations, **place})

    def placement_of(self, request: JobRequest, pools: Sequence[PoolPlan]) -> GangPlacement | None:
        job = request.job
        if not request.cluster.scheduling.topology_aware or not isinstance(job, config.TrainingJob):
            return None
        if job.nodes == 1 or job.topology == "any":
            return None
        layer = layer_of(job)
        tier = None if layer is None else topology_layers(request.pools) - layer + 1
        return plan_gang(request.cluster, request.pools, pools, job, tier=tier)

    def topology_of(self, request: JobRequest, pools: Sequence[PoolPlan]) -> TopologyPlan | None:
        gang = self.placement_of(request, pools)
        if gang is None or not gang.aware or not isinstance(request.job, config.TrainingJob):
            return None
        if is_required(request.job):
            return TopologyPlan(mode="hard", highest_tier=gang.tier)
        return TopologyPlan(mode="soft", highest_tier=None)

    def closeness_mistakes(
        self, request: JobRequest, pools: Sequence[PoolPlan]
    ) -> Iterator[config.Mistake]:
        job = request.job
        launched = [pool for pool in pools if pool.sized_by in capacity.SIZED_BY_PODS]
        if isinstance(job, config.TrainingJob) and is_required(job) and launched:
            wrong = (
                f"nodes of {pool_names(launched)} launch later, and their group is unknown "
                "until then"
            )
            todo = "write preferred, or name a pool of a fixed size"
            yield config.refuse("topology", wrong, todo)
        gang = self.placement_of(request, pools)
        if gang is not None and not gang.aware:
            wrong = (
                f"{gang.pods:,} pods in {gang.groups:,} groups take the scheduler about "
                f"{gang.seconds:,.0f} s; tests placed up to {facts.MOST_GANG} pods "
                f"within {MOST_SECONDS} s"
            )
            layer = names.network_layer_label(2)
            todo = f"write any, and name a group: node_selector: {{{layer}: nn-...}}"
            yield config.refuse("topology", wrong, todo)

    def placement_notes(self, request: JobRequest, pools: Sequence[PoolPlan]) -> Iterator[str]:
        """Yield the group that a gang waits for, and the scheduler's time for it."""
        gang = self.placement_of(request, pools)
        if gang is None:
            return
        if not gang.aware:
            yield (
                "It is sent without networkTopology, by which Volcano was shown to place gangs of "
                f"up to {facts.MOST_GANG} pods within {MOST_SECONDS} s, and its "
                f"{gang.pods:,} would take about {gang.seconds:,.0f} s. Its pods still prefer "
                "groups of nodes that are in use. To keep them in one group, name it: "
                f"node_selector: {{{names.network_layer_label(2)}: nn-...}}."
            )
        elif isinstance(request.job, config.TrainingJob) and is_required(request.job):
            yield (
                f"It waits for one group of {gang.groups:,} of tier {gang.tier} that has "
                f"{gang.pods:,} nodes free, and spreads over no other (tried in each: about "
                f"{gang.seconds:,.0f} s)."
            )
        elif gang.seconds >= _LONG_SECONDS:
            yield (
                f"Volcano tries {gang.pods:,} pods in {gang.groups:,} groups of nodes: about "
                f"{gang.seconds:,.0f} s until all are bound, in which other jobs wait (measured: "
                f"{gang.measured})."
            )


ENGINE = _Engine()
