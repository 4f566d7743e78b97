"""Mistakes of a job on the cluster that it runs in, from all rules."""

from collections.abc import Collection, Iterator, Sequence

from ultrascale import config
from ultrascale.plan.jobs import (
    autoscale,
    claims,
    gate,
    governance,
    mistakes,
    nodes,
    output,
    queueing,
    recipes,
    rendezvous,
    scratch,
    service,
    tiers,
    topology,
)
from ultrascale.plan.jobs.controllers import controller_of, least_pods
from ultrascale.plan.jobs.nodes import NodeShare
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.jobs.roles import of_all_roles, of_role
from ultrascale.plan.models import served

# Keys by which a job says on what nodes it runs.
_OF_NODES = frozenset({"pool", "node_selector", "prefer", "team", "resources", "capacity"})


def mistakes_of(request: JobRequest, wrong: Collection[str] = ()) -> Iterator[config.Mistake]:
    """Yield what is wrong with a job where it is to run.

    Args:
        request: The job.
        wrong: Keys of the job with mistakes that are known: what rests on them is not judged.

    Raises:
        CatalogError: No source states a value of an instance type.
    """
    if parts := request.roles:
        yield from _of_roles(request, parts, wrong)
        return
    request = recipes.named(request)
    job = request.job
    yield from mistakes.name_is_free(request)
    yield from mistakes.pod_names_fit(request)
    yield from mistakes.program_is_named(job)
    yield from mistakes.words_are_short(job)
    yield from claims.mistakes_of(request)
    yield from mistakes.claims_have_a_place_each(request)
    yield from mistakes.image_can_be_pulled(request)
    if not request.operated:
        yield from mistakes.image_knows_the_rendezvous(request)
    yield from mistakes.graphs_have_a_cache(request)
    if request.role is None:
        yield from output.mistakes_of(request)
    yield from mistakes.queue_is_named(request)
    if isinstance(job, config.ServiceJob):
        yield from service.mistakes_of(request, job)
        yield from served.path_mistakes(request, job)
    if isinstance(job, config.TrainingJob):
        if not request.operated:
            yield from rendezvous.mistakes_of(
                job, request.backend, request.engine, pods_come_back=request.pods_come_back
            )
        yield from mistakes.elastic_job_is_one(job, request.engine)
        yield from mistakes.stragglers_restart_jobs(request)
    if not _OF_NODES.isdisjoint(wrong):
        return
    yield from governance.mistakes_of(request, request.nodes)
    if tiers.lacks_queue(request):
        return
    of_queue = [*queueing.mistakes_of(request)]
    unnamed = of_queue or [*mistakes.nodes_are_named(request, request.nodes)]
    yield from unnamed
    if not unnamed:
        # Tiers may have a mistake in common.
        every = [_of_nodes(each, wrong) for each in tiers.on_each_tier(request)]
        yield from dict.fromkeys(mistake for found in every for mistake in found)


def _of_roles(
    request: JobRequest, parts: Sequence[JobRequest], wrong: Collection[str]
) -> Iterator[config.Mistake]:
    """Yield what is wrong with roles one by one, and then with all of them together."""
    if "roles" in wrong:
        return
    found = [of_role(request, each, mistakes_of(each, wrong)) for each in parts]
    found.append(of_role(request, parts[0], output.mistakes_of(parts[0])))
    known = tuple(dict.fromkeys(mistake for each in found for mistake in each))
    yield from known
    if not known and _OF_NODES.isdisjoint(wrong):
        yield from of_all_roles(request)


def _of_nodes(request: JobRequest, wrong: Collection[str]) -> Iterator[config.Mistake]:
    """Yield what is wrong with a job on the nodes that it is to run on."""
    job, pools = request.job, request.nodes
    yield from mistakes.image_suits_nodes(request, pools)
    share = nodes.node_share(job, pools)
    too_small = [*mistakes.nodes_have_memory(share, pools)]
    yield from too_small
    if too_small:
        return
    yield from mistakes.nodes_take_its_pods(job, share, pools)
    yield from topology.mistakes_of(request, pools)
    yield from mistakes.resources_fit(job, share, pools)
    yield from mistakes.efa_is_used(job, share)
    yield from served.mistakes_of(request, share, pools)
    yield from autoscale.mistakes_of(request, share, pools)
    yield from scratch.mistakes_of(request, pools)
    yield from gate.mistakes_of(request, pools)
    if "nodes" not in wrong:
        if request.cluster_queue is None:
            yield from mistakes.nodes_are_there(job, share, pools)
        yield from governance.quota_holds(request, pools, share)
    if isinstance(job, config.TrainingJob):
        yield from _of_training(request, job, share, wrong)
    if isinstance(job, config.ServiceJob):
        yield from service.mistakes_on(request, job, share)
    requests = nodes.requests_of(job, share)
    if request.role is None:
        yield from mistakes.queue_holds(request, [(requests, least_pods(job))])
    yield from queueing.mistakes_on(request, pools, requests)


def _of_training(
    request: JobRequest, job: config.TrainingJob, share: NodeShare, wrong: Collection[str]
) -> Iterator[config.Mistake]:
    """Yield what is wrong with pods that start together on the nodes that they are to run on."""
    pools = request.nodes
    yield from recipes.mistakes_of(request, share, pools, wrong)
    gang, governed = request.engine != "none", bool(request.teams)
    yield from mistakes.pods_start_together(job, share, pools, gang=gang, governed=governed)
    if request.cluster_queue is None:
        yield from mistakes.efa_stays_in_its_pool(job, share, pools)
    match controller_of(request):
        case "pytorch":
            yield from mistakes.pytorch_job_is_plain(job)
        case "hyperpod":
            yield from mistakes.operated_job_is_plain(request, job)
        case "indexed":
            yield from mistakes.fewer_nodes_can_end(request)
        case _:
            pass
