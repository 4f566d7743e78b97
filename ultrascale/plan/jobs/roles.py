"""Jobs of several roles: one gang of several kinds of pods, each planned as a job of its own."""

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from msgspec.structs import replace

from ultrascale import config
from ultrascale.catalog import kubernetes
from ultrascale.plan.jobs import mistakes, nodes, queueing
from ultrascale.plan.jobs.controllers import JobController, controller_of
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.jobs.rules import Roles, rule
from ultrascale.plan.jobs.topology import is_required, topology_of
from ultrascale.plan.model import JobPlan, PartPlan, PoolPlan, RolePlan
from ultrascale.plan.model.jobs import TopologyPlan

Mistakes = Iterator[config.Mistake]


def job_of(role: JobRequest) -> config.TrainingJob:
    """Return the keys of a role in `JobRequest.roles`.

    Raises:
        TypeError: It is no training job, and only these have roles.
    """
    if not isinstance(role.job, config.TrainingJob):
        raise TypeError(f"{role.name}: a role of a {role.job.kind_name()} job")
    return role.job


def at_keys_of_job(request: JobRequest, role: JobRequest, mistakes: Mistakes) -> Mistakes:
    """Yield the mistakes of a role at the keys of its whole job."""
    if isinstance(request.job, config.TrainingJob) and role.role is not None:
        for mistake in mistakes:
            yield config.in_role(request.job, role.role, mistake)


@rule
def graphs_are_of_one_role(request: JobRequest, roles: Roles) -> Mistakes:
    """Yield a run for the compiler of a job of roles."""
    if request.precompile and roles:
        wrong = "no single run compiles the graphs of several roles"
        yield config.refuse("roles", wrong, "leave out --precompile", got="")


@rule
def roles_can_be_close(request: JobRequest, job: config.TrainingJob, roles: Roles) -> Mistakes:
    """Yield a closeness that no engine gives to several roles."""
    if job.topology in (None, "any"):
        return
    if request.gang and is_required(job):
        wrong = "only Volcano places the pods of all roles in one group"
        yield config.refuse("topology", wrong, "write preferred, or name pools in the roles")
    if not request.gang and all(role.pods == 1 for role in roles):
        wrong = "Kueue places each role by itself, and these roles have one node each"
        yield config.refuse("topology", wrong, "leave it out")


@rule
def roles_have_nodes(roles: Roles) -> Mistakes:
    """Yield more nodes than a pool ever has for the roles that share it."""
    asked: dict[tuple[str, ...], list[JobRequest]] = {}
    for role in roles:
        asked.setdefault(_names(role.nodes), []).append(role)
    for pools, sharing in asked.items():
        most = sum(pool.max_nodes for pool in sharing[0].nodes)
        needed = math.ceil(sum(_nodes_of(role, most) for role in sharing))
        if len(sharing) > 1 and needed > most:
            where = ", ".join(pools)
            names = " and ".join(role.role or "" for role in sharing)
            wrong = f"{needed} nodes for {names} together, more than the {most} of {where}"
            todo = f"ask for less, or raise nodes in pool {where}"
            yield config.refuse(f"roles.{sharing[-1].role}.nodes", wrong, todo)


def _nodes_of(role: JobRequest, most: int) -> Fraction:
    """Return the nodes of a role, with parts of them; 0 where it shares them with any pod.

    Args:
        role: The role.
        most: Most nodes of its pools.
    """
    share = nodes.node_share(role.job, role.nodes)
    if share.whole:
        return Fraction(role.pods)
    if not share.accelerators:
        return Fraction(0)
    return Fraction(role.pods * most, nodes.most_pods(role.nodes, share))


@rule
def hosts_of_roles_fit(roles: Roles) -> Mistakes:
    """Yield roles of so many pods that no variable holds the names of their hosts."""
    for role in roles:
        pods = role.pods
        most = controller_of(role).most_listed_pods
        long = len(",".join(_hosts(role)).encode()) > kubernetes.LIST_BYTES
        if long or (most is not None and pods > most):
            wrong = "more pods than the variable that lists their host names can hold"
            yield config.refuse(
                f"roles.{role.role}.nodes", wrong, "ask for less, or shorten the name of the job"
            )


@rule
def queue_holds_the_roles(request: JobRequest, roles: Roles) -> Mistakes:
    """Yield a queue whose quota is smaller than the pods of all roles."""
    shares = ((role, nodes.node_share(role.job, role.nodes)) for role in roles)
    asked = [(nodes.requests_of(role.job, share), role.pods) for role, share in shares]
    yield from mistakes.queue_holds(request, asked)


def unite(request: JobRequest, plans: Sequence[JobPlan]) -> JobPlan:
    """Return the plan of a job of several roles.

    Args:
        request: The job.
        plans: Plans of its roles, in the order of `JobRequest.roles`.
    """
    hosts = {
        config.hosts_variable(role.role or ""): ",".join(_hosts(role)) for role in request.roles
    }
    roles = [
        _with_variables(
            plan.roles[0], hosts, alone=role.restarts_alone, controller=controller_of(role)
        )
        for role, plan in zip(request.roles, plans, strict=True)
    ]
    notes = dict.fromkeys(note for plan in plans for note in plan.notes)
    topology = _topology(request, plans)
    return replace(
        plans[0],
        roles=tuple(roles),
        parts=(_gang(request, plans),) if request.gang else (),
        service_port=None,
        restarts=max(plan.restarts for plan in plans),
        topology=topology,
        notes=(
            *_notes(request),
            *_group_notes(topology),
            *notes,
            *queueing.notes_of(request),
        ),
    )


def _with_variables(
    role: RolePlan, hosts: dict[str, str], *, alone: bool, controller: JobController
) -> RolePlan:
    index = controller.index_annotation
    env = {config.ROLE_VARIABLE: role.name, **hosts, **role.pod.env}
    fields = {config.ROLE_INDEX_VARIABLE: f"metadata.annotations['{index}']", **role.pod.fields}
    return replace(role, pod=replace(role.pod, env=env, fields=fields), restarts_alone=alone)


def _hosts(role: JobRequest) -> list[str]:
    """Return the host names of a role's pods, in their order, as the job's pods resolve them."""
    job, controller = job_of(role), controller_of(role)
    return [controller.host(role.name, job.role, index) for index in range(job.nodes)]


def _gang(request: JobRequest, plans: Sequence[JobPlan]) -> PartPlan:
    parts = [part for plan in plans for part in plan.parts]
    return PartPlan(
        name=request.name,
        tasks=tuple(task for part in parts for task in part.tasks),
        min_available=sum(part.min_available for part in parts),
        host_list=True,
    )


def _topology(request: JobRequest, plans: Sequence[JobPlan]) -> TopologyPlan | None:
    """Return the topology of each role's pods; Volcano takes one for the whole gang."""
    if request.gang:
        gang = request.job.model_copy(update={"nodes": request.pods, "roles": {}})
        return topology_of(replace(request, job=gang), request.nodes)
    # The largest role needs the broadest layer, which has the lowest number.
    topologies = [plan.topology for plan in plans if plan.topology is not None]
    return min(topologies, key=lambda topology: topology.level or "", default=None)


def _notes(request: JobRequest) -> Iterator[str]:
    leading, *others = request.roles
    if others:
        yield (
            f"The job ends when all pods of role {leading.role} have succeeded; the pods of other "
            "roles get SIGTERM then, and have to run until then."
        )
    with_efa: dict[tuple[str, ...], list[str]] = {}
    for role in request.roles:
        if nodes.efa_of(role.job, nodes.node_share(role.job, role.nodes)):
            with_efa.setdefault(_names(role.nodes), []).append(role.role or "")
    if len(with_efa) > 1:
        where = "; ".join(
            f"{', '.join(roles)} on {', '.join(at)}" for at, roles in with_efa.items()
        )
        yield (
            f"EFA traffic stays within a pool ({where}): pods of different pools talk over TCP. "
            "An NCCL group that spans them has to choose the network Socket."
        )


def _group_notes(topology: TopologyPlan | None) -> Iterator[str]:
    if topology is not None and topology.level is not None and topology.mode == "hard":
        yield (
            "Kueue admits it once each role has room for all of its pods in one group "
            f"({topology.level}); different roles may get different groups."
        )


def _names(pools: Iterable[PoolPlan]) -> tuple[str, ...]:
    return tuple(sorted({pool.pool for pool in pools}))
