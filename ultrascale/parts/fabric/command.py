"""`ultrascale fabric`: measure the network between a pool's nodes, and diagnose the devices."""

import json
from dataclasses import asdict
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from ultrascale.cli import ask, complete, options
from ultrascale.cli.output import FAILED, say
from ultrascale.frozen import to_document
from ultrascale.progress import progress


class Check(StrEnum):
    """Kind of check that nodes get."""

    FABRIC = "fabric"
    DEVICE = "device"


_Pool = Annotated[
    str,
    typer.Argument(metavar="POOL", autocompletion=complete.pools, help="Pool to check."),
]
_Checks = Annotated[
    list[Check] | None,
    typer.Option(help="Measure pairs of nodes, the default, or diagnose devices; repeatable."),
]
_Nodes = Annotated[
    int | None, typer.Option(min=1, help="Nodes to check; by default nodes without a job.")
]
_Queue = Annotated[
    str | None,
    typer.Option(
        autocompletion=complete.queues,
        help="Kueue queue that admits the check; by default none.",
    ),
]
_Cordon = Annotated[
    bool, typer.Option("--cordon/--no-cordon", help="Keep new pods off nodes that fail.")
]
_Log = Annotated[
    Path | None,
    typer.Option(help="Judge this log of nccl-tests or nccom-test, and ask no cluster."),
]
_DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print the objects; send nothing, and need no cluster.")
]


def fabric(
    file: options.DeployedFile,
    pool: _Pool,
    *,
    check: _Checks = None,
    nodes: _Nodes = None,
    queue: _Queue = None,
    cordon: _Cordon = True,
    log: _Log = None,
    dry_run: _DryRun = False,
    as_json: options.AsJson = False,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
) -> None:
    """Measure the network between pairs of a pool's nodes, and name and cordon bad nodes.

    Ends with status 3 if a node fails.
    """
    from ultrascale.parts.fabric import gate

    if log is not None:
        _judge_log(file, pool, log, as_json=as_json)
    cluster = None if dry_run else ask.connected(file, kubeconfig, context)
    prepared = gate.prepare_check(
        file,
        pool,
        checks=[item.value for item in check or [Check.FABRIC]],
        nodes=nodes,
        queue=queue,
        cluster=cluster,
    )
    for step in prepared.checks:
        say(f"# {step.note}" if dry_run else step.note, err=True)
    if cluster is None:
        from ultrascale.jobs.manifests import as_yaml

        objects = [manifest for step in prepared.checks for manifest in step.job.objects]
        typer.echo(as_yaml(objects), nl=False)
        return
    with progress(f"checking nodes of {pool}"):
        report = partial(say, err=True)
        verdicts = gate.check_pool(cluster, prepared, report, cordons=cordon)
    if as_json:
        typer.echo(json.dumps([to_document(verdict) for verdict in verdicts]))
    else:
        for verdict in verdicts:
            for line in gate.lines_of(verdict, cordons=cordon):
                say(line)
    if not all(verdict.passed for verdict in verdicts):
        raise typer.Exit(FAILED)


def _judge_log(file: Path, pool: str, log: Path, *, as_json: bool) -> NoReturn:
    from ultrascale.parts.fabric import gate

    measured = gate.judge_log(file, pool, log)
    if as_json:
        typer.echo(json.dumps(asdict(measured)))
    else:
        speed = "nothing measured" if measured.busbw is None else f"{measured.busbw:g} GB/s"
        transport = measured.transport or "transport not in the log"
        say(f"{log}: {speed}, {transport}: {measured.why or 'passed'}")
    raise typer.Exit(FAILED if measured.why else 0)
