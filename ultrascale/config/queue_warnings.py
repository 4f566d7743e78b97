"""Warnings of Kueue's queues: nodes that nobody queues for, or that are not there when jobs are."""

from ultrascale.config._errors import Mistake, Mistakes, note
from ultrascale.config._parts import Readable
from ultrascale.config._rules import rule
from ultrascale.config.pools import Pool
from ultrascale.config.purchase import CapacityBlock, Spot, TrainingPlan
from ultrascale.config.queue_rules import has_pool, is_accelerated
from ultrascale.config.scheduling import Queue, Scheduling


@rule(severity="warning")
def reserved_nodes_are_in_no_queue(pool: Pool, scheduling: Scheduling) -> Mistakes:
    if scheduling.engine != "kueue" or not pool.is_reserved or not is_accelerated(pool):
        return
    if scheduling.queues and not any(has_pool(queue, pool) for queue in scheduling.queues):
        yield note(
            "name",
            "paid for whether it is used or not, and in no queue, so that services alone run "
            "there; name it in prefer of a queue",
        )


@rule(severity="warning")
def windows_are_told_to_kueue(
    queue: Queue, scheduling: Scheduling, pools: Readable[Pool]
) -> Mistakes:
    """Warn of nodes that Kueue counts before they are there and after they are gone.

    It evicts a job that waits for them, tries again from the first pool of the queue, and gives up
    after some tries. With a topology it admits no job before the nodes are there.
    """
    if scheduling.engine != "kueue" or queue.topology:
        return
    for pool in pools:
        if isinstance(pool.purchase, CapacityBlock | TrainingPlan) and has_pool(queue, pool):
            yield note(
                "prefer",
                f"pool {pool.name} counts outside its window too, and jobs that get it then are "
                "tried for hours and given up; give it a queue of its own with topology: true, "
                "which waits for the nodes",
            )


@rule(severity="warning")
def spot_is_no_guarantee(queue: Queue, scheduling: Scheduling, pools: Readable[Pool]) -> Mistakes:
    if scheduling.engine != "kueue":
        return
    for pool in pools:
        if isinstance(pool.purchase, Spot) and queue.guarantee.get(pool.name):
            wrong = "guaranteed against other queues, and not against EC2, which may have no Spot"
            at = ("guarantee", pool.name)
            yield Mistake(at, wrong, "guarantee nodes that are reserved", got="")
