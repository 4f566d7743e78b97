"""Volcano as the engine of jobs: its queues, and the placement of gangs by the network."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ultrascale import config
from ultrascale.core.engine import QueueingEngine
from ultrascale.parts.volcano import facts, measured
from ultrascale.parts.volcano.controller import VOLCANO_JOB
from ultrascale.parts.volcano.placement import MOST_SECONDS, plan_gang
from ultrascale.plan import capacity, names
from ultrascale.plan.jobs.controllers import JobController
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.jobs.topology import is_required, layer_of, pool_names
from ultrascale.plan.model import GangPlacement, PodPlan, PoolPlan
from ultrascale.plan.model.jobs import TopologyPlan
from ultrascale.plan.network.layers import topology_layers

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
        """Return the queue that a job names, or the file's only one."""
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
                f"one group for nodes that are still to be launched on {pool_names(launched)}: "
                "their place is known once they are there"
            )
            todo = "write preferred, or name a pool of a fixed size"
            yield config.refuse("topology", wrong, todo)
        gang = self.placement_of(request, pools)
        if gang is not None and not gang.aware:
            wrong = (
                f"{gang.pods:,} pods in {gang.groups:,} groups, about {gang.seconds:,.0f} s for "
                f"the scheduler; shown to work are gangs of up to {measured.MOST_GANG} "
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
                f"up to {measured.MOST_GANG} pods within {MOST_SECONDS} s, and its "
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
