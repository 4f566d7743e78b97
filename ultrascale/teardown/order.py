"""The order in which the stacks of a cluster go: against that in which they come."""

from collections.abc import Sequence
from dataclasses import dataclass

from ultrascale.plan import ClusterPlan
from ultrascale.plan.capacity import NODE_GROUPS

PIPELINE_GATE = "pipeline-gate"
PIPELINE = ("pipeline", PIPELINE_GATE)
"""Layers that stay: other clusters may be deployed by them."""

# Stand for the stacks of pools, which have the pools' names.
POOLS, SYSTEM_POOLS = "<pools>", "<system pools>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """The stacks of one step.

    Attributes:
        name: Name of the step.
        title: What the step does.
        minutes: How long each of its waves may take, in minutes.
        waves: Layers; a wave waits for the one before. One that is empty stands for what is not a
            stack.
    """

    name: str
    title: str
    minutes: int
    waves: tuple[tuple[str, ...], ...] = ()


JOBS = Phase(name="jobs", title="stop jobs; their pods write a last checkpoint", minutes=60)
# CloudFormation waits 15 minutes at most for the nodes of a NodePool, and then goes on without
# them: they are waited for before. A node drains for as long as its terminationGracePeriod.
NODE_POOLS = Phase(
    name="node-pools",
    title="delete NodePools, wait until the last NodeClaim is gone",
    minutes=120,
    waves=(("node-pools",),),
)
NODES = Phase(
    name="node-groups",
    title="delete the stacks of node groups",
    minutes=90,
    waves=((POOLS,),),
)
LOAD_BALANCERS = Phase(
    name="load-balancers",
    title="delete what load balancers belong to, while their controller runs",
    minutes=20,
)
HYPERPOD = Phase(
    name="hyperpod",
    title="delete HyperPod: governance, then the cluster, then the chart",
    minutes=120,
    waves=(
        ("hyperpod-metrics", "teams"),
        ("governance",),
        ("hyperpod-groups",),
        ("hyperpod-chart",),
    ),
)
PLATFORM = Phase(
    name="platform",
    title="delete controllers and what the platform made",
    minutes=60,
    waves=(
        ("observability", "karpenter"),
        ("platform",),
        ("backend", "image-cache", "images"),
        ("registry",),
    ),
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
    waves=(
        ("addons",),
        ("storage",),
        ("system-node-pools", SYSTEM_POOLS),
        ("scaling", "nodes", "node-addons", "access"),
    ),
)
CLUSTER = Phase(name="cluster", title="delete the EKS cluster", minutes=45, waves=(("cluster",),))
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
# Lambda gives back the interfaces of functions only after a while.
NETWORK = Phase(name="network", title="delete the VPC", minutes=90, waves=(("network",),))

PHASES = (
    JOBS,
    NODE_POOLS,
    NODES,
    LOAD_BALANCERS,
    HYPERPOD,
    PLATFORM,
    VOLUMES,
    ADDONS,
    CLUSTER,
    REMAINS,
    STORAGE,
    NETWORK,
)


def layers(plan: ClusterPlan, wave: Sequence[str]) -> tuple[str, ...]:
    """Return the layers of a wave, with the names of the pools that they stand for."""
    pools = {POOLS: plan.pools, SYSTEM_POOLS: plan.system_pools}
    return tuple(
        name
        for layer in wave
        for name in (
            [each.name for each in pools[layer] if each.provisioner in NODE_GROUPS]
            if layer in pools
            else [layer]
        )
    )
