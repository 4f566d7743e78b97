"""The steps of a teardown: stacks go in the reverse order of their deployment."""

from collections.abc import Iterator
from graphlib import TopologicalSorter

from ultrascale.frozen import Frozen
from ultrascale.plan.stacks import LayerId, all_layers


class Phase(Frozen):
    """A step of every teardown, before it is planned for a cluster."""

    name: str  # Name of the step, by which the table of layers assigns stacks to it
    title: str  # Its purpose, for people
    minutes: int  # Time that each of its waves may take, in minutes

    @property
    def waves(self) -> tuple[tuple[LayerId, ...], ...]:
        """Layers of the phase by waves; a wave waits for the wave before."""
        return tuple(_waves(self.name))


def _waves(phase: str) -> Iterator[tuple[LayerId, ...]]:
    """Yield waves of layers that no remaining layer needs, until none is left."""
    layers: list[LayerId] = [
        id for id in reversed(tuple(all_layers())) if all_layers()[id].taken_down_in == phase
    ]
    goes_after: dict[LayerId, set[LayerId]] = {id: {*all_layers()[id].outlives} for id in layers}
    for id in layers:
        for needed in (*all_layers()[id].after, *all_layers()[id].after_if):
            if needed in goes_after:
                goes_after[needed].add(id)
    sorter = TopologicalSorter(goes_after)
    sorter.prepare()
    while sorter.is_active():
        wave = sorter.get_ready()
        sorter.done(*wave)
        yield tuple(sorted(wave, key=layers.index))


JOBS = Phase(name="jobs", title="stop jobs; their pods write a last checkpoint", minutes=60)
# CloudFormation waits 15 minutes at most for the nodes of a NodePool, and then goes on without
# them: they are waited for before. A node drains for as long as its terminationGracePeriod.
NODE_POOLS = Phase(
    name="node-pools",
    title="delete NodePools, wait until the last NodeClaim is gone",
    minutes=120,
)
NODES = Phase(
    name="node-groups",
    title="delete the stacks of node groups",
    minutes=90,
)
LOAD_BALANCERS = Phase(
    name="load-balancers",
    title="delete what load balancers belong to, while their controller runs",
    minutes=20,
)
PROVISIONERS = Phase(
    name="hyperpod",
    title="delete HyperPod: governance, then the cluster, then the chart",
    minutes=120,
)
PLATFORM = Phase(
    name="platform",
    title="delete controllers and what the platform made",
    minutes=60,
)
VOLUMES = Phase(
    name="volumes",
    title="delete claims and their volumes, while the driver runs",
    minutes=20,
)
ADDONS = Phase(
    name="add-ons",
    title="delete add-ons and system nodes",
    minutes=60,
)
CLUSTER = Phase(name="cluster", title="delete the EKS cluster", minutes=45)
REMAINS = Phase(
    name="remains",
    title="delete network interfaces and security groups that Kubernetes left in the VPC",
    minutes=20,
)
STORAGE = Phase(
    name="storage",
    title="delete for good what --delete-storage and --delete-logs name; no backup is made",
    minutes=120,
)
# Lambda gives the interfaces of functions back only after a while.
NETWORK = Phase(name="network", title="delete the VPC", minutes=90)
ENDPOINTS = "delete our endpoints in the VPC, which stays: it is not ours"
"""Purpose of the step `NETWORK` in a VPC that exists."""

PHASES = (
    JOBS,
    NODE_POOLS,
    NODES,
    LOAD_BALANCERS,
    PROVISIONERS,
    PLATFORM,
    VOLUMES,
    ADDONS,
    CLUSTER,
    REMAINS,
    STORAGE,
    NETWORK,
)
