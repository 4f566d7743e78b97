"""`ultrascale scale`: set the size of a pool."""

from typing import TYPE_CHECKING, Annotated

import typer

from ultrascale.cli import ask, options
from ultrascale.cli.output import say

if TYPE_CHECKING:
    from ultrascale.operate import SizeChange


def scale(
    file: options.DeployedFile,
    pool: options.PoolOrShard,
    nodes: Annotated[int, typer.Argument(metavar="N", min=0, help="Number of nodes.")],
    *,
    yes: options.NoQuestion = False,
    wait: Annotated[
        bool,
        typer.Option(
            "--wait/--no-wait",
            help="Wait until the new nodes run, or the removed nodes have ended.",
        ),
    ] = True,
    timeout: Annotated[
        float, typer.Option(metavar="MINUTES", min=0, help="Longest wait for the nodes.")
    ] = 30,
    profile: options.Profile = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
) -> None:
    """Set the size of a pool that is sized by hand, and wait for its nodes."""
    from ultrascale import operate, plan

    cluster = plan.load(file)

    def review(scaling: operate.Scaling) -> None:
        _print_change(scaling.change, scaling.before)
        if scaling.is_done:
            say(f"{pool}: is set to {nodes} nodes already")
        else:
            ask.confirm(f"set {pool} from {scaling.before} to {nodes} nodes?", yes=yes)

    scaling = operate.scale(
        cluster,
        pool,
        nodes,
        account=lambda api: ask.owner(cluster, profile, api),
        cluster=lambda: ask.connected(file, kubeconfig, context),
        watches_nodes=kubeconfig is not None or context is not None,
        review=review,
        clock=ask.clock(),
    )
    if not scaling.is_done:
        say(f"{pool}: set from {scaling.before} to {nodes} nodes")
    if not wait:
        return
    with ask.interruptible():
        scaling.wait(minutes=timeout, say=lambda line: say(line, err=True))
    if scaling.watches_nodes:
        say(f"{pool}: {nodes} nodes take work")
    else:
        say(
            f"{pool}: {nodes} instances in service; `ultrascale status {file} --pools` shows "
            "which of them take work"
        )


def _print_change(change: "SizeChange", before: int) -> None:
    pool, nodes = change.pool, change.nodes
    say(f"{pool.name}: {before} nodes now, {nodes} wanted")
    say(f"  per hour: {_money(change, before)}")
    say(f"  later: {change.later}")
    if nodes < before:
        chosen = (
            "Auto Scaling chooses which, busy or not"
            if change.node_pool is None
            else "Karpenter takes empty ones first, and those of training jobs last"
        )
        say(
            f"  {before - nodes} nodes end: {chosen}; their pods are evicted, and jobs that lose "
            "one go on from their last checkpoint"
        )
    if change.node_pool is None and change.lowers_minimum:
        say(
            f"  its minimum of {pool.min_nodes} is lowered to {nodes}, and comes back with the "
            "next size"
        )


def _money(change: "SizeChange", before: int) -> str:
    if change.spills:
        return f"the reservation is paid anyway; each node that it has no room for: {change.price}"
    if change.paid_anyway:
        return "no difference, the reservation is paid whether its nodes run or not"
    if change.usd_per_node_hour is None:
        return change.price
    was, then = (count * change.usd_per_node_hour for count in (before, change.nodes))
    at_most = "at most " if change.pool.capacity_type == "spot" else ""
    return f"{at_most}${was:,.2f} now, ${then:,.2f} then ({change.price})"
