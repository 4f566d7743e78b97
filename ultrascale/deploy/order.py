"""The order in which stacks are deployed."""

from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter

from ultrascale.deploy.assembly import StackArtifact
from ultrascale.plan.model import ClusterPlan
from ultrascale.plan.stacks import LAYERS, StackName, stacks_of


def waits_for(
    stacks: Sequence[StackArtifact], plan: ClusterPlan
) -> Mapping[StackName, frozenset[StackName]]:
    """Return the stacks that each stack waits for, each after those that it waits for itself.

    Where that leaves a choice, the order is the assembly's, which need not be one to deploy in.
    Stacks that launch accelerated nodes, and what follows them, wait for all the others: their
    nodes are paid for from the first minute. They do not wait for each other, so that one that
    finds no capacity leaves the rest alone.
    """
    last = _last(stacks, plan)
    first = frozenset(stack.name for stack in stacks) - last
    return _in_order(
        {stack.name: stack.needs | first if stack.name in last else stack.needs for stack in stacks}
    )


def _in_order(
    waits_for: Mapping[StackName, frozenset[StackName]],
) -> Mapping[StackName, frozenset[StackName]]:
    place = {stack: number for number, stack in enumerate(waits_for)}
    sorter = TopologicalSorter(waits_for)
    sorter.prepare()
    ordered: dict[StackName, frozenset[StackName]] = {}
    ready = [*sorter.get_ready()]
    while ready:
        stack = min(ready, key=place.__getitem__)
        ready.remove(stack)
        ordered[stack] = waits_for[stack]
        sorter.done(stack)
        ready += sorter.get_ready()
    return ordered


def _last(stacks: Sequence[StackArtifact], plan: ClusterPlan) -> frozenset[StackName]:
    """Return the stacks whose nodes are paid for, and those that wait for one of them."""
    last = {
        stack for id, layer in LAYERS.items() if layer.costs_nodes for stack in stacks_of(plan, id)
    }
    while followers := {
        stack.name for stack in stacks if stack.name not in last and stack.needs & last
    }:
        last |= followers
    return frozenset(last) & {stack.name for stack in stacks}
