"""`ultrascale fabric`: measure the network between a pool's nodes, and diagnose their devices."""

import json
from dataclasses import asdict
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ultrascale.cli import ask, complete
from ultrascale.cli.output import say
from ultrascale.cli.statuses import FAILED
from ultrascale.progress import progress


class Check(StrEnum):
    """A check of nodes."""

    FABRIC = "fabric"
    DEVICE = "device"


def fabric(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The cluster file, as deployed.")],
    pool: Annotated[
        str,
        typer.Argument(metavar="POOL", autocompletion=complete.pools, help="Pool to check."),
    ],
    *,
    check: Annotated[
        list[Check] | None,
        typer.Option(help="Measure pairs of nodes, or diagnose devices; both if repeated."),
    ] = None,
    nodes: Annotated[
        int | None, typer.Option(min=1, help="Nodes to check; by default those without a job.")
    ] = None,
    queue: Annotated[
        str | None,
        typer.Option(
            autocompletion=complete.queues,
            help="Queue that admits the check; by default none of Kueue's.",
        ),
    ] = None,
    cordon: Annotated[
        bool, typer.Option("--cordon/--no-cordon", help="Keep new pods off nodes that fail.")
    ] = True,
    log: Annotated[
        Path | None,
        typer.Option(help="Judge this log of nccl-tests or nccom-test, and ask no cluster."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the objects; send nothing, need no cluster.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    kubeconfig: ask.Kubeconfig = None,
    context: ask.Context = None,
) -> None:
    """Measure the network between nodes of a pool in pairs, and name and cordon bad nodes.

    Ends with status 3 where a node fails.
    """
    from ultrascale.jobs import pool_check

    if log is not None:
        measured = pool_check.judge_log(file, pool, log)
        if as_json:
            typer.echo(json.dumps(asdict(measured)))
        else:
            speed = "nothing measured" if measured.busbw is None else f"{measured.busbw:g} GB/s"
            transport = measured.transport or "transport not in the log"
            say(f"{log}: {speed}, {transport}: {measured.why or 'passed'}")
        raise typer.Exit(FAILED if measured.why else 0)
    cluster = None if dry_run else ask.connected(file, kubeconfig, context)
    prepared = pool_check.prepare_check(
        file,
        pool,
        checks=[each.value for each in check or [Check.FABRIC]],
        nodes=nodes,
        queue=queue,
        cluster=cluster,
    )
    for step in prepared.checks:
        say(f"# {step.note}" if dry_run else step.note, err=True)
    if cluster is None:
        from ultrascale.jobs.manifests import as_yaml

        objects = [each for step in prepared.checks for each in step.job.objects]
        typer.echo(as_yaml(objects), nl=False)
        return
    with progress(f"checking nodes of {pool}"):
        report = partial(say, err=True)
        verdicts = pool_check.check_pool(cluster, prepared, report, cordons=cordon)
    if as_json:
        typer.echo(json.dumps([asdict(verdict) for verdict in verdicts]))
    else:
        for verdict in verdicts:
            for line in pool_check.lines_of(verdict, cordons=cordon):
                say(line)
    if not all(verdict.passed for verdict in verdicts):
        raise typer.Exit(FAILED)
