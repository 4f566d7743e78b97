"""Volcano, if the file asks for it, and its rules of the file."""

from collections.abc import Sequence

from ultrascale import config
from ultrascale.catalog import network_layers, versions
from ultrascale.parts.volcano import facts
from ultrascale.parts.volcano.model import Plan, QueuePlan
from ultrascale.parts.volcano.placement import plan_node_scoring, plan_placement
from ultrascale.parts.volcano.scale import scale_of
from ultrascale.plan import capacity, names
from ultrascale.plan.model import PoolPlan
from ultrascale.plan.network.layers import topology_layers


def plan_volcano(cluster: config.Cluster, pools: Sequence[PoolPlan]) -> Plan | None:
    """Return the gang scheduler, if the file asks for it."""
    scheduling = cluster.scheduling
    if scheduling.engine != "volcano":
        return None
    accelerated = [pool for pool in pools if pool.accelerator is not None]
    resources = {pool.accelerator for pool in accelerated if pool.accelerator is not None}
    if any(pool.efa_interfaces for pool in accelerated):
        resources.add(names.EFA_INTERFACE)
    scale = scale_of(cluster)
    return Plan(
        version=versions.image("volcano-scheduler").tag,
        scheduler_image=versions.image("volcano-scheduler").reference,
        controllers_image=versions.image("volcano-controller-manager").reference,
        webhook_image=versions.image("volcano-webhook-manager").reference,
        queues=tuple(
            QueuePlan(
                name=queue.name,
                weight=queue.weight,
                reclaimable=queue.reclaimable,
                capability=queue.capability,
            )
            for queue in scheduling.queues
        ),
        enqueue=not any(
            pool.sized_by in capacity.SIZED_BY_PODS
            for pool in pools
            if pool.role != names.SYSTEM_ROLE
        ),
        topology_aware=scheduling.topology_aware,
        topology_layers=topology_layers(pools),
        accelerator_resources=tuple(sorted(resources)),
        scoring=plan_node_scoring(cluster, pools, scale),
        scale=scale,
        gangs=plan_placement(cluster, pools),
    )


# --- Rules of Volcano in the file: its own queues, and the fleet in which it places gangs ---------


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
    if scheduling.topology_aware and nodes > facts.MOST_NODES:
        wrong = f"{facts.too_large(nodes)}; `plan` refuses it"
        yield config.note("topology_aware", wrong)
