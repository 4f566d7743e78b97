"""Rules of Volcano's queues."""

from collections.abc import Iterator

from ultrascale import config
from ultrascale.catalog import kubernetes
from ultrascale.plan import names

# Resources of every node.
_OF_NODES = ("cpu", "memory", "ephemeral-storage", "pods")


@config.rule
def queue_caps_what_nodes_have(
    queue: config.Queue, scheduling: config.Scheduling, pools: config.Every[config.Pool]
) -> config.Mistakes:
    """Yield caps of resources that no node has: Volcano takes them, and caps nothing."""
    if scheduling.engine != "volcano":
        return
    known = dict.fromkeys([*_OF_NODES, *_offered(pools)])
    for name in queue.capability:
        if name not in known:
            wrong = "not a resource of any pool, so that it would cap nothing"
            todo = f"name one of {', '.join(known)}"
            yield config.Mistake(("capability", name), wrong, todo, got=name)


def _offered(pools: config.Every[config.Pool]) -> Iterator[str]:
    for pool in pools:
        for spec in pool.specs:
            if spec.accelerator is not None:
                neuron = spec.accelerator.kind == "neuron"
                yield from (
                    (names.NEURON_DEVICE, names.NEURON_CORE) if neuron else (names.NVIDIA_GPU,)
                )
                yield from (names.EFA_INTERFACE, kubernetes.HUGE_PAGES)
