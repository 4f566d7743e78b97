"""The rules that the plan adds to those of the cluster file."""

from collections.abc import Iterator

from msgspec.structs import replace

from ultrascale import config
from ultrascale.catalog import eks, regions
from ultrascale.plan.access import access_is_where_jobs_run
from ultrascale.plan.addons import addons_can_be_installed
from ultrascale.plan.front import (
    front_reaches_the_server,
    models_are_served,
    models_are_told_apart,
    proxies_have_their_nodes,
    subnets_hold_the_load_balancer,
)
from ultrascale.plan.jobs.claims import claims_of_templates_exist
from ultrascale.plan.jobs.governance import templates_suit_the_teams
from ultrascale.plan.model import ClusterPlan
from ultrascale.plan.models.served import mistakes_in
from ultrascale.plan.network.addresses import address_check
from ultrascale.plan.network.demand import demands
from ultrascale.plan.network.endpoints import endpoint_mistakes
from ultrascale.plan.network.existing_addresses import AddressesOfSubnets
from ultrascale.plan.platform import registry_is_known
from ultrascale.plan.pools.karpenter import karpenter_has_room
from ultrascale.plan.pools.pool import plan_pool
from ultrascale.plan.pools.scaling import autoscaler_takes_the_fleet, labels_fit_group_tags
from ultrascale.plan.queue_rules import (
    controllers_have_room,
    flavors_hold_the_taints,
    kueue_has_room,
    pool_divides_between_queues,
    queues_fit_kueue,
    topology_has_its_nodes,
)
from ultrascale.plan.stack_sizes import (
    administrators_fit,
    pools_fit,
    repositories_fit,
    scheduling_fits,
    storage_fits,
    teams_fit,
)
from ultrascale.plan.stacks import name_is_free

Mistakes = Iterator[config.Mistake]

_WRONG = "not supported yet"


def all_mistakes(reading: config.Reading) -> list[config.Mistake]:
    """Return what is wrong with the file itself, and what cannot be planned.

    What hangs on a value that is not supported yet is left out.
    """
    return _without_moot([*reading.mistakes, *reading.judge(_RULES)])


def mistakes_of_plan(plan: ClusterPlan) -> Mistakes:
    """Yield what is wrong with a cluster that only its whole plan shows."""
    yield from endpoint_mistakes(plan)
    yield from subnets_hold_the_load_balancer(plan)
    for service in plan.services:
        if service.model is not None and service.server == "vllm":
            for mistake in mistakes_in(service.model):
                yield replace(mistake, at=("jobs", service.name, *mistake.at))


def _without_moot(mistakes: list[config.Mistake]) -> list[config.Mistake]:
    """Return ``mistakes`` without those that are gone once what is not supported is changed.

    To mend them first would lead the user into the next refusal.
    """
    places = [mistake.at for mistake in mistakes if mistake.code == "unsupported"]
    return [
        mistake
        for mistake in mistakes
        if mistake.code == "unsupported"
        or not any(
            mistake.at[: len(place)] == place or mistake.rests_on == place for place in places
        )
    ]


def region_is_built(identity: config.Identity) -> Mistakes:
    """Yield a Region of China, where names of endpoints and of service principals differ."""
    if regions.lookup_region(identity.region).partition == "aws-cn":
        wrong = f"Regions of China are {_WRONG}"
        todo = "use a Region of another partition"
        yield config.refuse("region", wrong, todo, code="unsupported")


def efa_is_built(file_system: config.Lustre) -> Mistakes:
    """Yield a file system over EFA."""
    if file_system.efa:
        yield config.refuse("efa", _WRONG, "use false", code="unsupported")


def facts_are_known(pool: config.Pool, network: config.Network) -> Mistakes:
    """Raise a CatalogError where no source states what a node of the pool is made of."""
    if pool.nodes.are_counted:  # otherwise a mistake of its own
        plan_pool(
            pool,
            kubernetes_version=eks.DEFAULT_VERSION,
            network_zones=config.zones_of(pool, network),
        )
    yield from ()


def ranges_hold_the_nodes(network: config.Network, pools: config.Readable[config.Pool]) -> Mistakes:
    """Yield ranges that are too small for the pools that can be read, each at its maximum."""
    check = address_check(network)
    if check is None:
        return
    if len(network.zones) < 2 or not config.ranges_are_sound(network):
        return  # a mistake of its own
    counted = [pool for pool in pools if config.count_is_sound(pool, pools)]
    yield from check.mistakes([*demands(counted, network)])


def subnets_hold_the_nodes(
    network: config.Network,
    pools: config.Readable[config.Pool],
    storage: config.Storage,
    backend: config.Backend | None,
) -> Mistakes:
    """Yield subnets that exist and are too small for the pools that can be read."""
    if network.vpc is None or not config.subnets_are_sound(network):
        return  # a mistake of its own
    counted = [pool for pool in pools if config.count_is_sound(pool, pools)]
    database = backend is not None and backend.database is not None
    yield from AddressesOfSubnets(network, counted, storage=storage, database=database).mistakes()


_RULES = config.Rules(
    region_is_built,
    efa_is_built,
    facts_are_known,
    name_is_free,
    labels_fit_group_tags,
    autoscaler_takes_the_fleet,
    registry_is_known,
    karpenter_has_room,
    storage_fits,
    repositories_fit,
    scheduling_fits,
    administrators_fit,
    teams_fit,
    pools_fit,
    ranges_hold_the_nodes,
    subnets_hold_the_nodes,
    addons_can_be_installed,
    templates_suit_the_teams,
    claims_of_templates_exist,
    access_is_where_jobs_run,
    topology_has_its_nodes,
    pool_divides_between_queues,
    queues_fit_kueue,
    flavors_hold_the_taints,
    kueue_has_room,
    controllers_have_room,
    proxies_have_their_nodes,
    models_are_told_apart,
    models_are_served,
    front_reaches_the_server,
)
