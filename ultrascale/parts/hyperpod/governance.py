"""HyperPod task governance: its jobs, and the jobs that must give way to them.

Sources:
    https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-operate-console-ui-governance-policies.html
    https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-operate-console-ui-governance-tasks-scheduling.html
    https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/
"""

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from ultrascale import config
from ultrascale.catalog import network_layers, training_operator
from ultrascale.plan import names
from ultrascale.plan.jobs import namespaces
from ultrascale.plan.jobs.nodes import NodeShare
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.jobs.rules import Fitting, Nodes, WrongKeys
from ultrascale.plan.jobs.rules import rule as job_rule
from ultrascale.plan.model import PoolPlan
from ultrascale.plan.model.jobs import TopologyPlan
from ultrascale.plan.rules import rule

Mistakes = Iterator[config.Mistake]

# Value of a pod without a class, where none is the cluster's default.
_NO_PRIORITY = 0
_LAYERS = range(1, training_operator.NETWORK_LAYERS + 1)
# Nodes of a group of the lowest layer, and of the next.
_GROUPS = (network_layers.SMALLEST_GROUP_NODES, network_layers.NEXT_GROUP_NODES)


def on_hyperpod(pools: Sequence[PoolPlan]) -> bool:
    """Return whether all nodes of ``pools`` are HyperPod's."""
    return bool(pools) and all(pool.is_hyperpod for pool in pools)


@rule
def templates_suit_the_teams(cluster: config.Cluster) -> Mistakes:
    """Yield the mistakes of a file's templates beside its teams."""
    for name, job in cluster.jobs.items():
        for mistake in (*_mistakes(cluster, name, job), *_gives_way(cluster, name, job)):
            yield replace(mistake, at=("jobs", name, *mistake.at))


@job_rule
def job_suits_its_team(request: JobRequest, pools: Fitting) -> Mistakes:
    """Yield the mistakes of a job beside the teams of its cluster.

    Args:
        request: The job.
        pools: The pools that it may run on.
    """
    yield from _mistakes(request.cluster, request.called, request.job)
    yield from _gives_way(request.cluster, request.called, request.job, pools)
    if request.job.team is not None and pools and not on_hyperpod(pools):
        where = ", ".join(sorted({pool.pool for pool in pools}))
        wrong = f"a team's job on {where}: teams share only the nodes of HyperPod"
        yield config.refuse("team", wrong, "choose a pool of provisioner hyperpod")
    if request.team is not None:
        yield from _stays_above(request.cluster, request.job)


@job_rule
def quota_holds(
    request: JobRequest, pools: Nodes, share: NodeShare, wrong_keys: WrongKeys
) -> Mistakes:
    """Yield a job that its team could never run, however much other teams leave idle."""
    team = request.team
    if "nodes" in wrong_keys or team is None or not share.accelerators or not on_hyperpod(pools):
        return
    types = {name for pool in pools for name in pool.node_types}
    nodes = sum(team.nodes.get(name, 0) for name in types)
    most = nodes * (100 + (team.borrow_limit_percent or 0)) // 100
    devices = max(pool.accelerators_per_node for pool in pools)
    if request.admitted_pods * share.accelerators > most * devices:
        wrong = f"more than team {team.name} may ever use: {most} nodes, of which it owns {nodes}"
        several = "nodes" if request.pods > 1 else "array.parallelism"
        key = several if request.admitted_pods > 1 else "team"
        todo = "ask for less, or raise hyperpod.task_governance.teams"
        yield config.refuse(key, wrong, todo, got=str(request.admitted_pods))


def notes(request: JobRequest) -> Iterator[str]:
    """Yield whether task governance admits a job, where the cluster has teams."""
    cluster, job, team = request.cluster, request.job, request.team
    if not request.teams:
        return
    if team is not None:
        yield (
            f"Governed by task governance: it waits in {names.team_queue(team.name)} until team "
            f"{team.name} has quota for all of it."
        )
        return
    if job.prefer or on_hyperpod(request.nodes):
        who = _preempt(cluster, job)
        yield f"Not governed by task governance: it takes what is free, and {who}."
    elif request.called in namespaces.teams(cluster):
        yield (
            f"Not governed by task governance, and in namespace {request.namespace}: quotas of "
            f"team {request.called} are of HyperPod's nodes, and it runs on others."
        )


def _mistakes(cluster: config.Cluster, name: str, job: config.Job) -> Mistakes:
    teams = namespaces.teams(cluster)
    team = namespaces.team_of(cluster, name, job)
    if job.team is not None and isinstance(job, config.ServiceJob):
        wrong = "a service never ends, so it would hold the team's quota for good"
        yield config.refuse("team", wrong, "leave team out: services run beside teams' jobs")
    if team is not None and "namespace" in job.model_fields_set:
        place = names.team_namespace(team)
        if job.namespace != place:
            wrong = f"not {place} of team {team}"
            yield config.refuse("namespace", wrong, "leave it out, or rename the job")
    if job.prefer and name in teams:
        wrong = f"the job has the name of team {name}, whose jobs take no prefer"
        yield config.refuse("prefer", wrong, "rename the job: task governance governs no such job")


def _is_beside(
    cluster: config.Cluster, name: str, job: config.Job, pools: Sequence[PoolPlan] = ()
) -> bool:
    """Return whether a job takes HyperPod's nodes that quotas count, without a quota of its own.

    A service never does, whatever it takes: it can be in no queue.

    Args:
        cluster: The cluster.
        name: Name of the job or of its template.
        job: The job.
        pools: Its possible pools; by default those that its own keys name.
    """
    if job.prefer:
        return True
    if isinstance(job, config.ServiceJob) or namespaces.team_of(cluster, name, job) is not None:
        return False
    return on_hyperpod(pools) if pools else namespaces.stays_on_shared_nodes(cluster, job)


def _preempt(cluster: config.Cluster, job: config.Job) -> str:
    """Return which governed templates' jobs preempt an ungoverned one, as the end of a sentence."""
    governed = _governed_priorities(cluster)
    own = _value(cluster.scheduling.priority_classes, job)
    above = sorted(name for name, value in governed.items() if value > own)
    if above:
        return f"jobs of {', '.join(above)} preempt it"
    return "no team's job preempts it" if governed else "jobs above it preempt it"


def _gives_way(
    cluster: config.Cluster, name: str, job: config.Job, pools: Sequence[PoolPlan] = ()
) -> Mistakes:
    """Yield a priority by which a job without a quota would keep governed ones off."""
    if not _is_beside(cluster, name, job, pools):
        return
    classes = cluster.scheduling.priority_classes
    governed = _governed_priorities(cluster, but=name)
    if not governed or (job.priority is not None and job.priority not in classes):
        return  # nobody to give way to, or a mistake of its own
    own = _value(classes, job)
    template, lowest = min(governed.items(), key=lambda item: item[1])
    if own >= lowest:
        wrong = f"task governance cannot hold this job back for {template}, of priority {lowest}"
        below = [name for name in _highest_first(classes) if classes[name] < lowest]
        todo = f"use {', '.join(below)}" if below else f"give {template} a higher one"
        todo += "" if job.prefer else ", or name its team"
        yield config.refuse("priority", wrong, todo, got=f"{job.priority or 'none'}, {own}")


def _stays_above(cluster: config.Cluster, job: config.Job) -> Mistakes:
    """Yield a priority by which jobs without a quota would keep this governed one off."""
    classes = cluster.scheduling.priority_classes
    if job.priority is not None and job.priority not in classes:
        return  # a mistake of its own
    own = _value(classes, job)
    for name, other in cluster.jobs.items():
        if _is_beside(cluster, name, other) and _value(classes, other) >= own:
            wrong = f"{name} has priority {_value(classes, other)}, no quota, and would go first"
            above = [
                class_
                for class_ in _highest_first(classes)
                if classes[class_] > _value(classes, other)
            ]
            todo = f"use {', '.join(above)}" if above else f"give {name} a lower one"
            yield config.refuse("priority", wrong, todo, got=f"{job.priority or 'none'}, {own}")


def _highest_first(classes: Mapping[str, int]) -> list[str]:
    return sorted(classes, key=lambda name: -classes[name])


def _value(classes: Mapping[str, int], job: config.Job) -> int:
    return _NO_PRIORITY if job.priority is None else classes.get(job.priority, _NO_PRIORITY)


def _governed_priorities(cluster: config.Cluster, *, but: str = "") -> Mapping[str, int]:
    """Return the value of the PriorityClass of each template that task governance governs."""
    classes = cluster.scheduling.priority_classes
    return {
        name: _value(classes, job)
        for name, job in cluster.jobs.items()
        if name != but
        and namespaces.team_of(cluster, name, job) is not None
        and not isinstance(job, config.ServiceJob)
        and (job.priority is None or job.priority in cluster.scheduling.priority_classes)
    }


def closeness_mistakes(
    request: JobRequest, job: config.TrainingJob, pools: Sequence[PoolPlan]
) -> Mistakes:
    """Yield a topology that task governance does not give the job on ``pools``."""
    if request.team is None:
        wrong = "topology needs a team: on HyperPod only task governance places by topology"
        yield config.refuse("topology", wrong, "name its team, or leave it out")
        return
    types = {name for pool in pools for name in pool.instance_types}
    if unknown := sorted(types - training_operator.PLACED_TYPES):
        wrong = f"task governance does not place {', '.join(unknown)} by topology"
        yield config.refuse("topology", wrong, "leave it out, or choose other nodes")
    if any(names.network_layer_label(layer) in job.node_selector for layer in _LAYERS):
        wrong = "beside a node_selector of the network, and task governance takes one of them"
        yield config.refuse("topology", wrong, "keep one")
    if job.min_nodes is not None:
        wrong = "beside min_nodes, and pods that come later are not placed with the others"
        yield config.refuse("topology", wrong, "keep one")
    said = job.topology
    if isinstance(said, config.TopologyLayer):
        for mode in ("required", "preferred"):
            layer = getattr(said, mode)
            if layer is not None and _number(layer) not in _LAYERS:
                wrong = f"a layer that task governance does not know: it has {len(_LAYERS)}"
                yield config.refuse(f"topology.{mode}", wrong, f"use layer-{len(_LAYERS)}")


def topology_of(job: config.TrainingJob) -> TopologyPlan | None:
    """Return the topology that task governance is asked for."""
    match job.topology:
        case config.TopologyLayer(required=str(layer)):
            return TopologyPlan(mode="hard", level=_label(_number(layer)))
        case config.TopologyLayer(preferred=str(layer)):
            return TopologyPlan(mode="soft", level=_label(_number(layer)))
        case "required":
            return TopologyPlan(mode="hard", level=_label(_smallest_that_holds(job.nodes)))
        case "preferred":
            # Where no group of the lowest layer holds them all, it goes up by itself.
            return TopologyPlan(mode="soft", level=_label(_LAYERS[-1]))
        case _:
            return None


def _smallest_that_holds(nodes: int) -> int:
    for layer, size in zip(reversed(_LAYERS), _GROUPS, strict=False):
        if nodes <= size:
            return layer
    return _LAYERS[0]


def _number(layer: str) -> int:
    return int(layer.rpartition("-")[2])


def _label(layer: int) -> str:
    return names.network_layer_label(layer)
