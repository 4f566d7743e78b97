"""Plan of a job of Ray, and of the operator that runs it."""

import shlex
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from ultrascale import config
from ultrascale.catalog import advisories, quantities, registries
from ultrascale.parts.ray import facts
from ultrascale.parts.ray.model import Plan, RayJobPlan
from ultrascale.parts.ray.section import FileKeys, RayJob, runs_ray
from ultrascale.plan.jobs import command, nodes, output, queueing
from ultrascale.plan.jobs.controllers import JobController
from ultrascale.plan.jobs.nodes import NodeShare
from ultrascale.plan.jobs.notes import notes_of
from ultrascale.plan.jobs.pods import plan_pod
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.jobs.rules import Nodes, rule
from ultrascale.plan.jobs.topology import topology_of
from ultrascale.plan.model import ClusterPlan, ControllerPlan, JobPlan, RolePlan
from ultrascale.plan.namespaces import team_namespaces, training_namespaces

Mistakes = Iterator[config.Mistake]

# --- The operator ---------------------------------------------------------------------------------

# The values of the chart tell of 500 MB for 500 pods of Ray.
_SMALL = ControllerPlan(replicas=2, cpu="200m", memory="1536Mi", client_qps=100, client_burst=200)
_SIZES: Mapping[int, ControllerPlan] = {
    1_000: _SMALL,
    5_000: replace(_SMALL, cpu="1", memory="6Gi"),
    100_000: replace(_SMALL, cpu="2", memory="16Gi", client_qps=200, client_burst=400),
}


def operator_size(nodes: int) -> ControllerPlan:
    """Return the size of the operator for ``nodes`` nodes."""
    return next((size for most, size in _SIZES.items() if nodes <= most), _SIZES[100_000])


def has_ray(cluster: config.Cluster) -> bool:
    """Return whether a cluster runs jobs of Ray."""
    return runs_ray(cluster.section(FileKeys), cluster.jobs.values())


def plan_operator(cluster: config.Cluster, core: ClusterPlan) -> Plan | None:
    """Return the operator; None where the file has no jobs of Ray."""
    if not has_ray(cluster):
        return None
    return Plan(
        chart=core.chart(facts.CHART),
        version=facts.VERSION,
        image=core.image(facts.IMAGE + facts.VERSION),
        operator=operator_size(sum(pool.max_nodes for pool in core.all_pools)),
        # HyperPod makes those of teams later, and they take no jobs of Ray.
        namespaces=tuple(
            name for name in training_namespaces(cluster) if name not in team_namespaces(cluster)
        ),
        batch_scheduler="volcano" if cluster.scheduling.engine == "volcano" else "",
    )


# --- Jobs -----------------------------------------------------------------------------------------


class _RayJob(JobController):
    name = "ray"
    resource = ("ray.io", "rayjobs")
    waits_in_queue = True
    framework = facts.FRAMEWORK
    makes_service = True
    ends_at_mistakes = False

    def host(self, name: str, role: str, index: int) -> str:
        """Return no name: the operator names pods at random, and Ray finds its own."""
        del name, role, index
        return ""


RAY = _RayJob()
CONTROLLERS = (RAY,)

# All pods run by then, or the job gives its nodes back: two gangs that wait for each other's nodes
# would hold them for good. Kueue's own time is half of it, and its eviction no failure.
_STARTS_WITHIN_SECONDS = 40 * 60


def plan_ray(request: JobRequest, job: RayJob) -> JobPlan:
    """Plan a job of Ray: a head that runs the entry point, and groups of workers.

    Raises:
        CatalogError: No source states a value of an instance type.
    """
    parts = sorted(request.roles, key=lambda part: part.role != facts.HEAD)
    place = output.plan_output(parts[0])
    topologies = {
        part.role or "": topology
        for part in parts
        if not request.gang and (topology := topology_of(part, part.nodes)) is not None
    }
    notes = dict.fromkeys(
        note
        for part in parts
        for note in notes_of(part, part.nodes, nodes.node_share(part.job, part.nodes), RAY)
    )
    return JobPlan(
        name=request.name,
        namespace=request.namespace,
        kind=job.kind,
        controller=RAY.name,
        roles=tuple(_role(part) for part in parts),
        queue=request.queue,
        local_queue=queueing.local_queue_of(request),
        restarts=job.restarts.job or 0,
        operator=RayJobPlan(
            version=job.ray_version,
            entry_point=shlex.join(command.plain(job)),
            starts_within_seconds=None if request.gang else _STARTS_WITHIN_SECONDS,
            labels=_labels_of_gang(request, job) if request.gang else {},
            closed=request.policies_of_jobs,
            topologies=topologies,
        ),
        output=place,
        notes=(*_notes(request, job), *notes, *queueing.notes_of(request)),
    )


def _role(part: JobRequest) -> RolePlan:
    role = part.role or ""
    pod = plan_pod(part, part.nodes, _share(part, nodes.node_share(part.job, part.nodes)))
    # Every pod runs Ray, whose command the operator writes, and sends no statistics out.
    env, fields = {"RAY_USAGE_STATS_ENABLED": "0", **pod.env}, {**output.fields(), **RAY.fields()}
    pod = replace(pod, command=(), env=env, fields=fields)
    assert isinstance(part.job, RayJob)
    pod = output.with_output(pod, part.job, output.plan_output(part))
    return RolePlan(name=role, pods=part.pods, container=role, pod=pod)


def _share(part: JobRequest, share: NodeShare) -> NodeShare:
    """Return the share of a node for Ray itself: the operator adds a container to the head."""
    if part.role != facts.HEAD:
        return share
    return replace(
        share,
        millicpu=share.millicpu - facts.SUBMITTER_MILLICPU,
        memory_mib=share.memory_mib - facts.SUBMITTER_MIB,
    )


def _labels_of_gang(request: JobRequest, job: RayJob) -> dict[str, str]:
    """Return a RayJob's labels, from which the operator fills Volcano's group."""
    labels = {"volcano.sh/queue-name": request.queue, "ray.io/priority-class-name": job.priority}
    whole = job.model_copy(update={"nodes": request.pods, "roles": {}})
    if (topology := topology_of(replace(request, job=whole), request.nodes)) is not None:
        labels["volcano.sh/network-topology-mode"] = topology.mode
        if topology.highest_tier is not None:
            labels["volcano.sh/network-topology-highest-tier-allowed"] = str(topology.highest_tier)
    return {key: value for key, value in labels.items() if value is not None}


def _notes(request: JobRequest, job: RayJob) -> Iterator[str]:
    yield (
        f"restarts.job, here {job.restarts.job or 0}, starts it anew after a failure of its entry "
        "point, with new pods: after a mistake too, since Ray ends with status 1 for each."
    )
    yield (
        "Its pods go when it ends, and their logs with them: `--follow` shows what it prints, and "
        "`ultrascale status` keeps the last lines of a failure."
    )
    if not request.engine.queues_jobs:
        minutes = _STARTS_WITHIN_SECONDS // 60
        yield f"It fails if its pods do not all run after {minutes} minutes, and holds no nodes."
    if request.gang and job.deadline_hours is not None:
        yield "deadline_hours counts from its sending here: its wait in the queue is part of it."
    if not request.policies_of_jobs:
        yield (
            "No network policy selects its pods in a cluster of this size: the token alone keeps "
            f"others from port {facts.DASHBOARD_PORT} of its head, which runs code."
        )


@rule
def ray_head_leaves_room(request: JobRequest, share: NodeShare) -> Mistakes:
    """Yield a head that fills its node, where the container beside it finds no room."""
    if not isinstance(request.job, RayJob) or request.role != facts.HEAD:
        return
    left, said = _share(request, share), request.job.resources
    wrong = "leaves no room for the container that KubeRay adds to the head"
    if said.cpu is not None and quantities.millicpu(said.cpu) > left.millicpu:
        yield config.refuse("resources.cpu", wrong, f"ask for at most {left.millicpu}m")
    if said.memory is not None and quantities.mib(said.memory) > left.memory_mib:
        yield config.refuse("resources.memory", wrong, f"ask for at most {left.memory_mib}Mi")


@rule
def ray_version_is_right(request: JobRequest) -> Mistakes:
    """Yield a release other than that of an image whose build, source or tag says which it has."""
    if not isinstance(request.job, RayJob):
        return
    image, build = registries.parse_reference(request.job.image or ""), request.build
    if build is not None:
        release = facts.OF_BUILDS.get(build.dockerfile)
    else:
        release = image and advisories.release_in(image, "ray")
    if release not in (None, request.job.ray_version):
        wrong = f"image {request.job.image} has another"
        yield config.refuse("ray_version", wrong, f"write {release}")


@rule
def ray_is_not_governed(request: JobRequest, pools: Nodes) -> Mistakes:
    """Yield nodes of task governance, whose Kueue is not known to take jobs of Ray."""
    governed = sorted({pool.pool for pool in pools if pool.facts.are_shared and request.teams})
    if isinstance(request.job, RayJob) and governed:
        where = ", ".join(governed)
        wrong = f"{where} is of task governance, whose queues are not known to take jobs of Ray"
        todo = "name a pool beside HyperPod's, or remove hyperpod.task_governance"
        yield config.refuse("pool", wrong, todo, got="")
