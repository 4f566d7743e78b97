"""`ultrascale roll`: the nodes of a reserved pool, renewed some at a time."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ultrascale import plan
from ultrascale.cli import ask
from ultrascale.errors import ClusterError, QuestionError, UltrascaleError
from ultrascale.operate.pool_size import Renewal, plan_renewal
from ultrascale.plan.names import DO_NOT_DISRUPT
from ultrascale.plan.needs.calendar import read_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ultrascale.account import Account
    from ultrascale.cluster_api.server import Cluster
    from ultrascale.operate.drain import Work
    from ultrascale.operate.fleets import Fleet, Old
    from ultrascale.operate.roll import Pace, Roll
    from ultrascale.plan import ClusterPlan

UNFINISHED = 3
"""Exit status where nodes are left on an older template."""

_SHOWN = 20


def roll(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The cluster file, as deployed.")],
    pool: Annotated[str, typer.Argument(metavar="POOL", help="A pool, or a shard of one.")],
    *,
    batch: Annotated[int, typer.Option(min=1, help="Nodes at a time.")] = 1,
    until: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Begin no batch later, as 2026-12-15T00:00Z."),
    ] = None,
    evict_jobs: Annotated[
        bool,
        typer.Option("--evict-jobs", help="Break off training jobs; else wait for their end."),
    ] = False,
    drain_minutes: Annotated[
        float, typer.Option(min=0, help="How long the pods of a batch may take to leave.")
    ] = 60,
    join_minutes: Annotated[
        float, typer.Option(min=0, help="How long nodes may take to go, and new ones to join.")
    ] = 30,
    broken: Annotated[
        int, typer.Option(min=0, help="Other nodes that may be missing or take no work meanwhile.")
    ] = 0,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    profile: ask.Profile = None,
    kubeconfig: ask.Kubeconfig = None,
    context: ask.Context = None,
) -> None:
    """Renew the nodes of a reserved NodePool or a self-managed group, each ending before the next.

    Never runs more nodes than are reserved. Run it again after a failure: nodes that are new are
    left alone. Ends with status 3 where some are left, as the time was too short.
    """
    from ultrascale.operate.drain import Drain
    from ultrascale.operate.roll import Pace, Roll

    _refuse_a_batch_of_broken(broken, batch)
    time = ask.clock()
    cluster = plan.load(file)
    renewal = plan_renewal(cluster, pool, at=time.now(), until=_end(until))
    seen = ask.connected(file, kubeconfig, context)
    owner = None if renewal.node_pools else ask.owner(cluster, profile, seen)
    fleet = _fleet(cluster, renewal, seen, owner)
    drain = Drain(cluster=seen, evicts_jobs=evict_jobs, clock=time)
    old = fleet.old()
    if not old:
        _nothing_to_renew(renewal, fleet, broken)
        return
    _refuse_without_rights(renewal, seen)
    pace = Pace(
        batch=batch,
        until=renewal.until,
        drain_minutes=drain_minutes,
        join_minutes=join_minutes,
        broken=broken,
    )
    _show(renewal, old, pace)
    _show_work(drain.work_on([each.node for each in old if each.node]), old, pace, evict_jobs)
    ask.confirm(f"renew {_nodes(old)} of {pool}?", yes=yes)
    rolling = Roll(fleet, drain, pace, time, lambda line: typer.echo(f"{pool}: {line}", err=True))
    if left := _run(rolling, old, pool):
        typer.echo(f"{pool}: the time is up; still on an older template: {_nodes(left)}")
        raise typer.Exit(UNFINISHED)
    typer.echo(f"{pool}: renewed {_nodes(old)}")
    if more := fleet.old():
        typer.echo(f"{pool}: on an older template by now: {_nodes(more)}; run it again")
        raise typer.Exit(UNFINISHED)


def _refuse_a_batch_of_broken(broken: int, batch: int) -> None:
    if broken >= batch:
        wrong = f"--broken: fewer than a batch, got {broken} and {batch}"
        raise QuestionError([f"{wrong}; else the next would not wait for the successors of one"])


def _nodes(found: "Sequence[Old]") -> str:
    return f"{len(found)} node{'' if len(found) == 1 else 's'}"


def _end(until: str | None) -> datetime | None:
    try:
        return None if until is None else read_time(until)
    except UltrascaleError:
        wrong = f"--until: not a time in UTC, got {until!r}; write it as 2026-12-15T00:00Z"
        raise QuestionError([wrong]) from None


def _fleet(
    cluster: "ClusterPlan", renewal: Renewal, seen: "Cluster", account: "Account | None"
) -> "Fleet":
    from ultrascale.operate.fleets import GroupFleet, NodePoolFleet
    from ultrascale.operate.node_groups import find_group
    from ultrascale.operate.node_pools import NodePool

    pool = renewal.pool
    if account is None:
        found = [NodePool(cluster=seen, name=each.name, pool=pool) for each in renewal.node_pools]
        return NodePoolFleet(node_pools=found)
    return GroupFleet(group=find_group(account, cluster, pool), cluster=seen, pool=pool)


def _refuse_without_rights(renewal: Renewal, cluster: "Cluster") -> None:
    """Refuse to empty nodes for somebody who may not end them."""
    from ultrascale.cluster_api.kinds import NODE, NODE_CLAIM
    from ultrascale.cluster_api.rights import missing_rights

    needed = [("patch", NODE), *([("delete", NODE_CLAIM)] if renewal.node_pools else [])]
    if missing := missing_rights(cluster, needed):
        raise ClusterError(
            f"{renewal.pool.name}: nothing was begun: you may not {', nor '.join(missing)}; ask "
            "who administers the cluster for this right, or choose another --context"
        )


def _nothing_to_renew(renewal: Renewal, fleet: "Fleet", broken: int) -> None:
    doubt = ""
    if renewal.node_pools:
        doubt = "; Karpenter finds drift some minutes after a deploy: ask again then"
    typer.echo(f"{renewal.pool.name}: no node is known to be on an older template{doubt}")
    if missing := fleet.waiting_for_rest((), broken=broken):
        raise ClusterError(f"{missing}{f'; {why}' if (why := fleet.trouble()) else ''}")


def _show(renewal: Renewal, old: "Sequence[Old]", pace: "Pace") -> None:
    typer.echo(f"{renewal.pool.name}: {_nodes(old)} on an older template, {pace.batch} at a time")
    for each in old[:_SHOWN]:
        typer.echo(f"  {each.id}{f' ({each.node})' if each.node else ''}")
    if len(old) > _SHOWN:
        typer.echo(f"  and {len(old) - _SHOWN} more")
    if renewal.node_pools and not renewal.pool.static:
        typer.echo(
            "  each ends; new ones come for pods that wait, and otherwise with the next pods"
        )
    if renewal.until is not None:
        typer.echo(f"  no batch begins after {renewal.until:%Y-%m-%d %H:%M}Z")


def _show_work(work: "Work", old: "Sequence[Old]", pace: "Pace", evicts: bool) -> None:
    if work.jobs:
        fate = (
            "are broken off, and go on from their last checkpoint"
            if evicts
            else (
                f"are waited for, {pace.drain_minutes:g} minutes in each batch; --evict-jobs "
                "breaks them off"
            )
        )
        typer.echo(f"  jobs on them, {', '.join(work.jobs)}, {fate}")
    if evicts:
        batches = {each.node: place // pace.batch for place, each in enumerate(old)}
        for job, nodes in work.jobs.items():
            if (times := len({batches[node] for node in nodes})) > 1:
                typer.echo(
                    f"  {job} runs in {times} batches, each of which breaks it off again and costs "
                    "it a restart, of which it has a number (restarts.job): cancel it before and "
                    f"submit it again after, or take all at once by --batch {len(old)}"
                )
    if work.others:
        typer.echo(f"  other pods on them, {work.others}, are evicted and started again elsewhere")
    if work.kept:
        typer.echo(f"  these say {DO_NOT_DISRUPT}, and end all the same: {', '.join(work.kept)}")
    if work.lost:
        typer.echo(f"  nothing starts these again: {'; '.join(work.lost)}")


def _run(rolling: "Roll", old: "Sequence[Old]", pool: str) -> "Sequence[Old]":
    from ultrascale.operate.signals import ends_as_by_ctrl_c

    try:
        with ends_as_by_ctrl_c():
            return rolling.run(old)
    except KeyboardInterrupt:
        typer.echo(
            f"\n{pool}: stopped; a node that has ended is replaced; the same command goes on",
            err=True,
        )
        raise typer.Exit(ask.INTERRUPTED) from None
