"""Values of the chart `training-job` that follow from a cluster.

For each kind of nodes they hold a rendered job, in which markers such as `${NAME}` stand for the
chart's other values, and the bounds of those values. The chart then decides nothing itself. A
marker in quotes stands for any JSON, one within a text for a text.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from ultrascale import config
from ultrascale.catalog import runtime_environment
from ultrascale.documents import Json, JsonObject, mapping, objects
from ultrascale.jobs.manifests import render
from ultrascale.jobs.preparation import JobCluster
from ultrascale.plan import names
from ultrascale.plan.jobs import judgement, nodes
from ultrascale.plan.jobs.job import plan_job
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.model import PoolPlan
from ultrascale.plan.pools.isolation import is_isolated
from ultrascale.plan.pools.tiers import NodeTierPlan, node_tiers

# Every order of preference among more tiers would be too many for Helm, which keeps all values of
# a release in a Secret.
_MOST_TIERS = 4
_PROGRAM: JsonObject = {
    "name": "job",
    "image": "docker.io/job:1",
    "command": ["job"],
    "durable": False,
}
_DEVICES = {"gpu": names.NVIDIA_GPU, "neuron": names.NEURON_DEVICE}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Share:
    """Jobs of so many devices on some nodes.

    Attributes:
        resource: What Kubernetes calls the devices.
        count: How many each pod has.
        job: Such a job.
    """

    resource: str
    count: int
    job: config.TrainingJob


def chart_values(cluster: JobCluster, *, queue: str | None = None) -> dict[str, Json]:
    """Return the values of the chart `training-job` that follow from a cluster.

    They hold lists: Helm would merge mappings with those of another cluster.

    Args:
        cluster: The cluster.
        queue: Queue of all jobs; None: the file's only one, or Volcano's default.

    Raises:
        ConfigError: The file has no such queue.
        CatalogError: No source states a value of an instance type.
    """
    program: JsonObject = _PROGRAM if queue is None else {**_PROGRAM, "queue": queue}
    reading = config.read_job(cluster.reading, program, changes={})
    if unknown := [mistake for mistake in reading.mistakes if mistake.at == ("queue",)]:
        raise reading.refusal((*unknown,))
    tiers = node_tiers(cluster.plan)
    return {
        "cluster": {
            "name": cluster.cluster.name,
            "tiers": [tier.node_type for tier in tiers],
            "priorityClasses": [
                {"name": priority.name, "value": priority.value, "preempts": priority.preempts}
                for priority in cluster.plan.priority_classes
            ],
            "sharedMemoryPercent": nodes.SHARED_MEMORY_PERCENT,
            "refusedVariables": [
                {
                    "name": f"^({refused.pattern})$",
                    "wrong": refused.why.wrong,
                    "todo": refused.why.todo,
                    "allowable": refused.allowable,
                }
                for refused in runtime_environment.REFUSED
            ],
            "bypassesEfa": [
                {
                    "name": name,
                    "value": f"^({pattern})$",
                    "wrong": runtime_environment.BYPASSED.wrong,
                    "todo": runtime_environment.BYPASSED.todo,
                }
                for name, pattern in runtime_environment.BYPASSES_EFA
            ],
            "placements": [*_placements(cluster, tiers, program)],
        }
    }


def _placements(
    cluster: JobCluster, tiers: Sequence[NodeTierPlan], program: JsonObject
) -> Iterator[dict[str, Json]]:
    """Yield the placement of jobs on each tier, and on each order of preferred tiers."""
    shares = {tier.node_type: [*_shares(cluster, tier, program)] for tier in tiers}
    teams = ["", *sorted(team.name for team in cluster.teams)]
    for count in range(1, len(tiers) + 1 if len(tiers) <= _MOST_TIERS else 2):
        for chosen in combinations(tiers, count):
            types = [tier.node_type for tier in chosen]
            pools = tuple(pool for tier in chosen for pool in tier.pools)
            common = _common([shares[node_type] for node_type in types])
            for team in teams:
                yield from _placement(cluster, types, pools, common, team)


def _shares(cluster: JobCluster, tier: NodeTierPlan, program: JsonObject) -> Iterator[_Share]:
    """Yield the shares of a tier's devices that jobs may have, the whole first."""
    kinds = {pool.accelerator for pool in tier.pools}
    most = max(pool.accelerators_per_node for pool in tier.pools)
    least = 1 if any(is_isolated(pool) for pool in tier.pools) else 0
    for key, resource in _DEVICES.items():
        if kinds != {resource} and (key != "gpu" or kinds != {None}):
            continue
        for count in range(most, least - 1, -1):
            if count and most % count:
                continue
            job = {
                **program,
                "node_selector": {names.NODE_TYPE_LABEL: tier.node_type},
                "resources": {key: count},
            }
            reading = config.read_job(cluster.reading, job, changes={})
            if isinstance(reading.job, config.TrainingJob) and not reading.mistakes:
                yield _Share(resource=resource, count=count, job=reading.job)


def _common(shares: Sequence[Sequence[_Share]]) -> list[_Share]:
    """Return the shares that all of some tiers have."""
    first, *others = shares
    sizes = [{(share.resource, share.count) for share in other} for other in others]
    return [s for s in first if all((s.resource, s.count) in other for other in sizes)]


def _placement(
    cluster: JobCluster,
    types: Sequence[str],
    pools: Sequence[PoolPlan],
    shares: Sequence[_Share],
    team: str,
) -> Iterator[dict[str, Json]]:
    """Yield what becomes of jobs of a template on some tiers.

    Args:
        cluster: The cluster.
        types: Node types of the tiers, best first.
        pools: Their pools.
        shares: What of their nodes jobs may have.
        team: Team that the template is called as; empty: none. Nothing is yielded where that
            changes nothing.
    """
    if not shares:
        return
    chosen = _on(shares[0].job, types)
    request = cluster.request(NAME, chosen, template=team or None)
    wrong, classes = _judged(cluster, request)
    if team and request.team is None and not wrong:
        return
    placement: dict[str, Json] = {"nodeTypes": [*types], "team": team}
    if wrong:
        yield {**placement, "refused": "; ".join(wrong)}
        return
    requests = [
        (share, cluster.request(NAME, _on(share.job, types), template=team or None))
        for share in shares
    ]
    yield {
        **placement,
        "priorityClasses": classes,
        "claims": [c.name for c in request.claims if c.namespace == request.namespace],
        "labels": {key: value for key, value in pools[0].labels.items() if _on_all(pools, key)},
        "otherLabels": sorted({key for p in pools for key in p.labels if not _on_all(pools, key)}),
        "taints": [*_taints(pools)],
        "shares": [_bounds(share, request) for share, request in requests],
        "environments": [*_environments(requests)],
        "objects": skeleton(request),
    }


def _on(job: config.TrainingJob, types: Sequence[str]) -> config.TrainingJob:
    """Return ``job`` on tiers: on the only one, or where it prefers to be."""
    if len(types) == 1:
        return job
    return job.model_copy(update={"node_selector": {}, "prefer": (*types,)})


def _judged(cluster: JobCluster, request: JobRequest) -> tuple[list[str], list[str]]:
    """Return the mistakes of a job with any PriorityClass, and the classes that it may have."""
    wrong: dict[str, None] = {}
    classes: list[str] = []
    for priority in cluster.plan.priority_classes:
        job = request.job.model_copy(update={"priority": priority.name})
        mistakes = [*judgement.mistakes_of(replace(request, job=job))]
        if not mistakes:
            classes.append(priority.name)
        for mistake in mistakes:
            if mistake.at != ("priority",):
                wrong[_told(mistake)] = None
    return [*wrong], classes


def _told(mistake: config.Mistake) -> str:
    if mistake.at == ("queue",) and mistake.code == "missing":
        # No value of the chart is the queue: it is chosen with these values.
        return f"no queue is chosen: make the values by chart-values --queue, and {mistake.todo}"
    return f"{mistake.wrong}; {mistake.todo}"


def _on_all(pools: Sequence[PoolPlan], key: str) -> bool:
    return len({pool.labels.get(key) for pool in pools}) == 1


def _taints(pools: Sequence[PoolPlan]) -> Iterator[dict[str, str]]:
    taints = {(taint.key, taint.effect, taint.value) for pool in pools for taint in pool.taints}
    for key, effect, value in sorted(taints):
        yield {"key": key, "value": value, "effect": effect}


def _bounds(share: _Share, request: JobRequest) -> dict[str, Json]:
    """Return what a pod of a share requests where it says nothing else, and the most of it."""
    amounts = nodes.node_share(request.job, request.nodes)
    return {
        "resource": share.resource,
        "count": share.count,
        "millicpu": amounts.millicpu,
        "memoryMib": amounts.memory_mib,
        "requests": nodes.requests_of(request.job, amounts),
    }


def _environments(requests: Sequence[tuple[_Share, JobRequest]]) -> Iterator[dict[str, Json]]:
    """Yield the variables of the libraries, by the numbers of devices that they are for."""
    counts_of: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for share, request in requests:
        env = plan_job(request).pod.env
        counts_of.setdefault(tuple(env.items()), []).append(share.count)
    for env, counts in counts_of.items():
        variables = [{"name": name, "value": value} for name, value in env]
        yield {"counts": counts, "variables": variables}


NAME = "${NAME}"
# Numbers that no job has, until markers take their places.
_RESTARTS, _TTL = 7_654_321, 87_654_321
_NUMBERS: Mapping[int | str, str] = {
    _RESTARTS: "${RESTARTS_NUMBER}",
    # Volcano counts the first run as well.
    _RESTARTS + 1: "${RUNS_NUMBER}",
    str(_RESTARTS): "${RESTARTS}",
    _TTL: "${TTL_NUMBER}",
}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def skeleton(request: JobRequest) -> list[Json]:
    """Return the objects of a job with markers."""
    job = request.job.model_copy(
        update={
            "image": "${IMAGE}",
            "priority": "${PRIORITY}",
            # More than a job may have, so that nothing else in the objects is like it.
            # With restarts of processes HyperPod's operator would count a sum of both.
            "restarts": config.Restarts().model_copy(update={"job": _RESTARTS, "workers": 0}),
            "ttl_seconds_after_finished": _TTL,
            "volumes": (),
        }
    )
    plan = plan_job(replace(request, job=job, account=None))
    return [_marked(manifest, plan.pod.env) for manifest in render(plan).objects]


def _marked(value: Json, env: Collection[str]) -> Json:
    """Return a part of a rendered job with markers where values of the chart come."""
    if isinstance(value, Mapping):
        fields = _marked_pod(value, env) if "containers" in value else value
        return {key: _marked(item, env) for key, item in fields.items()}
    if isinstance(value, list):
        return [_marked(item, env) for item in value]
    return _NUMBERS.get(value, value) if isinstance(value, int | str) else value


def _marked_pod(spec: JsonObject, env: Collection[str]) -> JsonObject:
    (container,) = objects(spec, "containers")
    memory = [
        {**volume, "emptyDir": {**mapping(volume, "emptyDir"), "sizeLimit": "${SHARED_MEMORY}"}}
        for volume in objects(spec, "volumes")
    ]
    # Those of the plan are the libraries'; the others tell the pods of a job apart.
    others = [variable for variable in objects(container, "env") if variable["name"] not in env]
    return {
        **spec,
        "affinity": _marked_affinity(mapping(spec, "affinity")),
        "tolerations": "${TOLERATIONS}",
        "volumes": ["${VOLUMES}", *memory],
        "containers": [
            {
                **container,
                "command": "${COMMAND}",
                "env": ["${ENVIRONMENT}", *others],
                "resources": {"requests": "${REQUESTS}", "limits": "${LIMITS}"},
                "volumeMounts": ["${MOUNTS}", *objects(container, "volumeMounts")],
            }
        ],
    }


def _marked_affinity(affinity: JsonObject) -> JsonObject:
    """Return the affinity with a marker for the labels that a job's nodes must have."""
    nodes = mapping(affinity, "nodeAffinity")
    (term,) = objects(nodes, _REQUIRED, "nodeSelectorTerms")
    rules = [
        "${LABELS}" if rule["key"] == names.NODE_TYPE_LABEL else rule
        for rule in objects(term, "matchExpressions")
    ]
    return {
        "nodeAffinity": {**nodes, _REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": rules}]}}
    }
