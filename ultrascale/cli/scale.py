"""`ultrascale scale`: another size of a pool, by hand."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ultrascale import plan
from ultrascale.cli import ask
from ultrascale.errors import ClusterError
from ultrascale.operate.pool_size import SizeChange, plan_size

if TYPE_CHECKING:
    from ultrascale.operate.clock import Clock
    from ultrascale.operate.scale import Target


def scale(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The cluster file, as deployed.")],
    pool: Annotated[str, typer.Argument(metavar="POOL", help="A pool, or a shard of one.")],
    nodes: Annotated[int, typer.Argument(metavar="N", min=0, help="Nodes that it is to have.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Wait until the nodes run, or are gone.")
    ] = True,
    timeout: Annotated[
        float, typer.Option(metavar="MINUTES", min=0, help="How long to wait for them.")
    ] = 30,
    profile: ask.Profile = None,
    kubeconfig: ask.Kubeconfig = None,
    context: ask.Context = None,
) -> None:
    """Set the size of a pool whose nodes somebody may set, and wait for it."""
    from ultrascale.operate.scale import target

    time = ask.clock()
    cluster = plan.load(file)
    change = plan_size(cluster, pool, nodes, time.now())
    # AWS credentials are enough for a node group: its API server may be out of reach.
    looks = kubeconfig is not None or context is not None
    found = target(
        cluster,
        change,
        account=lambda seen: ask.owner(cluster, profile, seen),
        cluster=lambda: ask.connected(file, kubeconfig, context),
        looks=looks,
    )
    before, most = found.size(), found.most()
    if most is not None and nodes > most:
        raise ClusterError(
            f"{pool}: at most {most} nodes as it is deployed, got {nodes}; deploy the file first"
        )
    _show(change, before)
    if found.is_set_to(nodes):
        typer.echo(f"{pool}: is set to {nodes} nodes already")
    else:
        ask.confirm(f"set {pool} from {before} to {nodes} nodes?", yes=yes)
        found.set(nodes, was=before)
        typer.echo(f"{pool}: set from {before} to {nodes} nodes")
    if wait:
        _wait(found, pool, nodes, timeout, time)
        if looks or change.node_pool is not None:
            typer.echo(f"{pool}: {nodes} nodes take work")
        else:
            typer.echo(
                f"{pool}: {nodes} instances in service; `ultrascale status {file} --pools` says "
                "which of them take work"
            )


def _show(change: SizeChange, before: int) -> None:
    pool, nodes = change.pool, change.nodes
    typer.echo(f"{pool.name}: {before} nodes now, {nodes} asked for")
    typer.echo(f"  per hour: {_money(change, before)}")
    typer.echo(f"  later: {change.later}")
    if nodes < before:
        chosen = (
            "Auto Scaling chooses which, busy or not"
            if change.node_pool is None
            else "Karpenter takes empty ones first, and those of training jobs last"
        )
        typer.echo(
            f"  {before - nodes} nodes end: {chosen}; their pods are evicted, and jobs that lose "
            "one go on from their last checkpoint"
        )
    if change.node_pool is None and change.lowers_minimum:
        typer.echo(
            f"  its minimum of {pool.min_nodes} is lowered to {nodes}, and comes back with the "
            "next size"
        )


def _money(change: SizeChange, before: int) -> str:
    if change.spills:
        return f"the reservation is paid anyway; each node that it has no room for: {change.price}"
    if change.paid_anyway:
        return "no difference, the reservation is paid whether its nodes run or not"
    if change.usd_per_node_hour is None:
        return change.price
    was, then = (count * change.usd_per_node_hour for count in (before, change.nodes))
    at_most = "at most " if change.pool.capacity_type == "spot" else ""
    return f"{at_most}${was:,.2f} now, ${then:,.2f} then ({change.price})"


def _wait(found: "Target", pool: str, nodes: int, minutes: float, time: "Clock") -> None:
    from ultrascale.operate.scale import settle

    try:
        settle(
            found, nodes, minutes=minutes, clock=time, say=lambda line: typer.echo(line, err=True)
        )
    except KeyboardInterrupt:
        typer.echo(f"\n{pool} stays set to {nodes} nodes; the same command waits again", err=True)
        raise typer.Exit(ask.INTERRUPTED) from None
