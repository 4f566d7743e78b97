"""Mistakes of a job in its cluster, from all rules."""

from collections.abc import Collection, Iterator

from msgspec.structs import replace

from ultrascale import config
from ultrascale.plan.jobs import (
    advisories,
    autoscale,
    claims,
    controllers,
    mistakes,
    nodes,
    output,
    queueing,
    replicas,
    roles,
    scratch,
    service,
    tiers,
    topology,
    vllm_rules,
)
from ultrascale.plan.jobs.controllers import JobController
from ultrascale.plan.jobs.nodes import NodeShare
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.jobs.rules import (
    Candidates,
    Fitting,
    Nodes,
    Requests,
    Roles,
    WrongKeys,
    rule,
)
from ultrascale.plan.model import ClusterQueuePlan, QueueingPlan

rule.order(
    mistakes,
    claims,
    output,
    replicas,
    vllm_rules,
    advisories,
    service,
    queueing,
    topology,
    autoscale,
    scratch,
    roles,
)

# Keys by which a job chooses its nodes.
_OF_NODES = frozenset({"pool", "node_selector", "prefer", "team", "resources", "capacity"})
# Keys that name a role's program.
_OF_PROGRAM = ("image", "script", "command")


class _Tiers(tuple[JobRequest, ...]):
    """A job on each of its possible tiers."""


@rule.fact()
def job(request: JobRequest) -> config.Job:
    """Return a job's keys."""
    return request.job


@rule.fact()
def training_job(request: JobRequest) -> config.TrainingJob | None:
    """Return the keys of a training job; None for any other job."""
    return request.job if isinstance(request.job, config.TrainingJob) else None


@rule.fact()
def service_job(request: JobRequest) -> config.ServiceJob | None:
    """Return the keys of a service; None for any other job."""
    return request.job if isinstance(request.job, config.ServiceJob) else None


@rule.fact()
def queueing_of(request: JobRequest) -> QueueingPlan | None:
    """Return the queues with quotas; None where the engine has none."""
    return request.queueing


@rule.fact()
def fitting(request: JobRequest, wrong: WrongKeys) -> Fitting | None:
    """Return the pools that fit a job; None where mistakes in its keys leave them open."""
    known = _OF_NODES.isdisjoint(wrong) and not tiers.lacks_queue(request)
    return Fitting(request.nodes) if known else None


@rule.fact()
def cluster_queue(request: JobRequest, pools: Fitting) -> ClusterQueuePlan | None:
    """Return the queue with quotas that a job waits in; None without one."""
    del pools  # without them the queue is not known either
    return request.cluster_queue


@rule.fact(after=(queueing.queue_gives_its_nodes, queueing.nodes_are_named))
def tiers_of(request: JobRequest, pools: Fitting) -> _Tiers:
    """Return a job on each of its tiers; one without preference is on all of its pools."""
    del pools  # another rule names them
    return _Tiers(tiers.on_each_tier(request))


@rule.fact(after=(mistakes.nodes_have_memory,))
def pools_with_room(pools: Candidates) -> Nodes:
    """Return the pools of a tier, whose nodes have room for a pod."""
    return Nodes(pools)


@rule.fact()
def share_of(request: JobRequest, pools: Nodes) -> NodeShare:
    """Return the share of a node that each pod may have."""
    return nodes.node_share(request.job, pools)


@rule.fact()
def requests_of(request: JobRequest, share: NodeShare) -> Requests:
    """Return the quantities that each pod requests."""
    return Requests(nodes.requests_of(request.job, share))


@rule.fact()
def controller_of(request: JobRequest, pools: Nodes) -> JobController:
    """Return the controller of a job's pods, which depends on their nodes."""
    del pools
    return controllers.controller_of(request)


def mistakes_of(request: JobRequest, wrong: Collection[str] = ()) -> Iterator[config.Mistake]:
    """Yield the mistakes of a job in its cluster.

    Args:
        request: The job.
        wrong: Keys of the job with known mistakes, on which no rule may rest.

    Raises:
        CatalogError: No source states a value of an instance type.
    """
    keys = WrongKeys(wrong)
    if parts := request.roles:
        if "roles" not in keys:
            yield from _role_mistakes(request, Roles(parts), keys)
        return
    request = request.with_program(request.program())
    known = rule.known(request, keys)
    yield from known.mistakes()
    # Tiers may have a mistake in common.
    yield from dict.fromkeys(
        mistake
        for tier in known.get(_Tiers) or ()
        for mistake in rule.judge(tier, keys, Candidates(tier.nodes), resting_on=Candidates)
    )


def warnings_of(request: JobRequest) -> Iterator[config.Mistake]:
    """Yield legal but likely unintended values of a template."""
    known = rule.known(request)
    leading = rule.known(request.roles[0]) if request.roles else known
    for mistake in leading.mistakes_by(output.output_outlives_its_pods):
        if mistake.kind == "undurable":
            yield replace(mistake, severity="warning")
    yield from known.mistakes(severity="warning")


def _role_mistakes(request: JobRequest, parts: Roles, wrong: WrongKeys) -> Iterator[config.Mistake]:
    of_parts = tuple(
        dict.fromkeys(
            mistake
            for part in parts
            for mistake in roles.at_keys_of_job(request, part, mistakes_of(part, wrong))
        )
    )
    yield from of_parts
    # A template may leave its program to the sender: the rules of all roles rest on their nodes.
    resting = [each for each in of_parts if each.kind == "wrong" or each.at[-1] not in _OF_PROGRAM]
    if not resting and _OF_NODES.isdisjoint(wrong):
        yield from rule.judge(request, wrong, parts, resting_on=Roles)
