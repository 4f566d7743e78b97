"""`ultrascale scale`, `roll`, `repair`: the size of a pool, new nodes, and repair of a node."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from ultrascale.cli import ask, options
from ultrascale.cli.output import say
from ultrascale.errors import ClusterError, QuestionError, UltrascaleError

if TYPE_CHECKING:
    from ultrascale.operate import Old, Rolled, RollPlan, SizeChange


# --- `ultrascale scale`: set the size of a pool ---------------------------------------------------


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


# --- `ultrascale roll`: renew the nodes of a reserved pool, batch by batch ------------------------


UNFINISHED = 3
"""Exit status if nodes are left on an older template."""

_SHOWN = 20


_Until = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Begin no batch after this time, such as 2026-12-15T00:00Z."),
]
_EvictJobs = Annotated[
    bool,
    typer.Option("--evict-jobs", help="Stop training jobs; by default wait until they end."),
]
_DrainMinutes = Annotated[
    float, typer.Option(min=0, help="Longest wait until the pods of a batch have left.")
]
_JoinMinutes = Annotated[
    float, typer.Option(min=0, help="Longest wait until nodes end, and again until new nodes join.")
]
_Broken = Annotated[
    int, typer.Option(min=0, help="Number of other nodes that may be missing or take no work.")
]


def roll(
    file: options.DeployedFile,
    pool: options.PoolOrShard,
    *,
    batch: Annotated[int, typer.Option(min=1, help="Nodes in a batch.")] = 1,
    until: _Until = None,
    evict_jobs: _EvictJobs = False,
    drain_minutes: _DrainMinutes = 60,
    join_minutes: _JoinMinutes = 30,
    broken: _Broken = 0,
    yes: options.NoQuestion = False,
    profile: options.Profile = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
) -> None:
    """Renew the nodes of a reserved NodePool or a self-managed group, batch by batch.

    Each node ends before its successor starts, so the reservation is never exceeded. Run the
    command again after a failure: it leaves new nodes alone. Ends with status 3 if the time was too
    short for some nodes.
    """
    from ultrascale import operate, plan

    cluster = plan.load(file)
    pace = operate.Pace(
        batch=batch,
        until=_end_time(until),
        drain_minutes=drain_minutes,
        join_minutes=join_minutes,
        broken=broken,
    )

    def review(planned: operate.RollPlan) -> None:
        _print_roll(planned)
        ask.confirm(f"renew {_nodes(planned.old)} of {pool}?", yes=yes)

    with ask.interruptible():
        rolled = operate.roll(
            cluster,
            pool,
            cluster=lambda: ask.connected(file, kubeconfig, context),
            account=lambda api: ask.owner(cluster, profile, api),
            pace=pace,
            evicts_jobs=evict_jobs,
            review=review,
            say=lambda line: say(f"{pool}: {line}", err=True),
            clock=ask.clock(),
        )
    if not rolled.old:
        _nothing_to_renew(rolled)
        return
    if rolled.left:
        say(f"{pool}: the time is up; still on an older template: {_nodes(rolled.left)}")
        raise typer.Exit(UNFINISHED)
    say(f"{pool}: renewed {_nodes(rolled.old)}")
    if rolled.drifted:
        drifted = _nodes(rolled.drifted)
        say(f"{pool}: on an older template by now: {drifted}; run the command again")
        raise typer.Exit(UNFINISHED)


def _nodes(nodes: Sequence["Old"]) -> str:
    return f"{len(nodes)} node{'' if len(nodes) == 1 else 's'}"


def _end_time(until: str | None) -> datetime | None:
    from ultrascale.plan.needs.calendar import read_time

    try:
        return None if until is None else read_time(until)
    except UltrascaleError:
        wrong = f"--until: not a time in UTC, got {until!r}; write it as 2026-12-15T00:00Z"
        raise QuestionError([wrong]) from None


def _nothing_to_renew(rolled: "Rolled") -> None:
    pool = rolled.renewal.pool.name
    doubt = ""
    if rolled.renewal.node_pools:
        doubt = "; Karpenter detects drift some minutes after a deploy: run the command again then"
    say(f"{pool}: no node is known to be on an older template{doubt}")
    if rolled.unready:
        raise ClusterError(rolled.unready)


def _print_roll(planned: "RollPlan") -> None:
    renewal, old = planned.renewal, planned.old
    batch = planned.pace.batch
    say(f"{renewal.pool.name}: {_nodes(old)} on an older template, {batch} at a time")
    for node in old[:_SHOWN]:
        say(f"  {node.id}{f' ({node.node})' if node.node else ''}")
    if len(old) > _SHOWN:
        say(f"  and {len(old) - _SHOWN} more")
    if renewal.node_pools and not renewal.pool.static:
        say("  each ends; new nodes start for pods that wait, or with the next pods")
    if renewal.until is not None:
        say(f"  no batch begins after {renewal.until:%Y-%m-%d %H:%M}Z")
    _show_work(planned)


def _show_work(planned: "RollPlan") -> None:
    from ultrascale.plan.names import DO_NOT_DISRUPT

    work, old, pace, evicts = planned.work, planned.old, planned.pace, planned.evicts_jobs
    if work.jobs:
        fate = (
            "are broken off, and go on from their last checkpoint"
            if evicts
            else (
                f"are waited for, {pace.drain_minutes:g} minutes in each batch; --evict-jobs "
                "breaks them off"
            )
        )
        say(f"  jobs on them, {', '.join(work.jobs)}, {fate}")
    if evicts:
        batches = {each.node: place // pace.batch for place, each in enumerate(old)}
        for job, nodes in work.jobs.items():
            if (times := len({batches[node] for node in nodes})) > 1:
                say(
                    f"  {job} runs in {times} batches, each of which breaks it off again and costs "
                    "it a restart, of which it has a number (restarts.job): cancel it before and "
                    f"submit it again after, or take all at once by --batch {len(old)}"
                )
    if work.others:
        say(f"  other pods on them, {work.others}, are evicted and started again elsewhere")
    if work.kept:
        say(f"  these say {DO_NOT_DISRUPT}, and end all the same: {', '.join(work.kept)}")
    if work.lost:
        say(f"  nothing starts these again: {'; '.join(work.lost)}")


# --- `ultrascale repair`: a node's agent judges it anew, or Karpenter lets it be ------------------


def repair(
    file: options.DeployedFile,
    node: Annotated[str, typer.Argument(metavar="NODE", help="Name of the node.")],
    *,
    hold: Annotated[
        bool | None,
        typer.Option("--hold/--allow", help="Forbid repair of the node, or allow it again."),
    ] = None,
    restart: Annotated[
        bool,
        typer.Option(
            "--restart-agent",
            help="Restart the node monitoring agent on the node: it keeps a false verdict.",
        ),
    ] = False,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
) -> None:
    """Have a node's agent judge it anew, forbid Karpenter to repair it, or allow it again."""
    from ultrascale import operate, plan

    if restart is (hold is not None):
        raise QuestionError(["write one of --restart-agent, --hold and --allow"])
    cluster = plan.load(file)
    api = ask.connected(file, kubeconfig, context)
    if hold is None:
        operate.restart_agent(api, node)
        say(f"{node}: the node monitoring agent restarts, and judges the node anew in a minute")
        return
    veto = operate.set_veto(cluster, api, node, held=hold)
    state = "nothing repairs it" if veto.held else f"its pool's repair is {veto.repairs}"
    done = "" if veto.changed else ", as before"
    say(f"{veto.node} of pool {veto.pool}: {state}{done}")
