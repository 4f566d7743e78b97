"""Rules of Volcano in the file: its own queues, and the fleet in which it places gangs."""

from ultrascale import config
from ultrascale.catalog import network_layers
from ultrascale.parts.volcano import facts, measured


@config.rule
def queue_is_legal(queue: config.Queue, scheduling: config.Scheduling) -> config.Mistakes:
    if scheduling.engine == "volcano" and queue.name in facts.OWN_QUEUES:
        yield config.refuse("name", "a queue that Volcano makes itself", "choose another")


@config.rule(severity="warning")
def fleet_is_larger_than_any_placed(
    scheduling: config.Scheduling, pools: config.Readable[config.Pool]
) -> config.Mistakes:
    nodes = sum(
        pool.nodes.highest * pool.shards
        for pool in pools
        if pool.nodes.are_counted and all(map(network_layers.is_placed, pool.instance_types))
    )
    if scheduling.topology_aware and nodes > measured.MOST_NODES:
        wrong = f"{measured.too_large(nodes)}; `plan` refuses it"
        yield config.note("topology_aware", wrong)
