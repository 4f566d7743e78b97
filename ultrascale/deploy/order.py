"""Which stacks wait for which: nothing may still fail once nodes are paid for."""

from collections.abc import Mapping, Sequence

from ultrascale.deploy.assembly import StackArtifact
from ultrascale.plan import names
from ultrascale.plan.capacity import NODE_GROUPS
from ultrascale.plan.model import ClusterPlan


def waits_for(stacks: Sequence[StackArtifact], plan: ClusterPlan) -> Mapping[str, frozenset[str]]:
    """Return the stacks that each stack waits for, each after those that it waits for itself.

    Where that leaves a choice, the order is the assembly's, which need not be one to deploy in.
    Those that launch accelerated nodes, and what follows them, wait for all the others: their nodes
    are paid for from the first minute. They do not wait for each other, so that one that finds no
    capacity leaves the rest alone.
    """
    last = _last(stacks, plan)
    first = frozenset(stack.name for stack in stacks) - last
    return _in_order(
        {stack.name: stack.needs | first if stack.name in last else stack.needs for stack in stacks}
    )


def _in_order(waits_for: Mapping[str, frozenset[str]]) -> Mapping[str, frozenset[str]]:
    placed: dict[str, frozenset[str]] = {}
    while len(placed) < len(waits_for):
        ready = (
            stack
            for stack, earlier in waits_for.items()
            if stack not in placed and earlier <= placed.keys()
        )
        stack = next(ready)
        placed[stack] = waits_for[stack]
    return placed


def _last(stacks: Sequence[StackArtifact], plan: ClusterPlan) -> frozenset[str]:
    layers = {"node-pools", "hyperpod-groups"}
    layers |= {pool.name for pool in plan.pools if pool.provisioner in NODE_GROUPS}
    last = {names.stack(plan.name, layer) for layer in layers}
    while followers := {
        stack.name for stack in stacks if stack.name not in last and stack.needs & last
    }:
        last |= followers
    return frozenset(last) & {stack.name for stack in stacks}
