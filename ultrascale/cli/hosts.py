"""`ultrascale hosts`: hosts that synthesized files name, and the way to each from the VPC."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ultrascale.cli.output import say
from ultrascale.errors import ConfigError

# Of a file that names none; registries of all accounts in the Region have the same way.
_ANY_ACCOUNT = "123456789012"

if TYPE_CHECKING:
    from ultrascale.hosts import HostUse, HostWay
    from ultrascale.jobs.preparation import JobCluster


def hosts(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The cluster file.")],
    assembly: Annotated[Path, typer.Option(help="Folder that `cdk synth` wrote.")] = Path(
        "cdk.out"
    ),
    manifests: Annotated[Path, typer.Option(help="Folder of the manifests.")] = Path("dist"),
    everything: Annotated[
        bool, typer.Option("--all", help="Show hosts too that have a way or need none.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print them for programs.")] = False,
) -> None:
    """Show the hosts that synthesized files and the file's jobs name: can the VPC reach each?

    Reads templates, manifests, user data, scripts, functions, builds and jobs, with what they hold
    encoded or in pieces. Asks no account. Ends with status 1 where network.egress is none and a
    host has neither a mirror nor an endpoint.
    """
    from ultrascale.assembly import read_stacks_of
    from ultrascale.hosts import read_hosts, ways_to
    from ultrascale.jobs.preparation import read_cluster

    cluster = read_cluster(file)
    read_stacks_of(cluster.plan, assembly)
    region = cluster.plan.region
    uses = [*read_hosts(assembly, region), *read_hosts(manifests, region), *_of_jobs(cluster)]
    ways = [*ways_to(uses, cluster.plan)]
    shown = [way for way in ways if everything or way.way == "none"]
    if as_json:
        typer.echo(json.dumps([asdict(way) for way in shown], indent=2, ensure_ascii=False))
    else:
        _print(shown, total=len({use.host for use in uses}))
    if cluster.plan.network.egress == "none" and any(way.way == "none" for way in ways):
        raise typer.Exit(1)


def _of_jobs(cluster: "JobCluster") -> "Iterator[HostUse]":
    from ultrascale.hosts import read_document
    from ultrascale.jobs.preparation import prepare, stated_parts

    account = cluster.plan.account or _ANY_ACCOUNT
    for name in cluster.cluster.jobs:
        try:
            objects = prepare(cluster, name, account=account).objects
        except ConfigError:
            objects = stated_parts(cluster, name, account=account)
        for manifest in objects:
            yield from read_document(manifest, f"job {name}", cluster.plan.region)


def _print(ways: "Sequence[HostWay]", *, total: int) -> None:
    from rich.box import SIMPLE

    from ultrascale.cli.screen import Table, screen

    by_file: dict[tuple[str, str, str], list[HostWay]] = {}
    for way in ways:
        by_file.setdefault((way.use.host, way.use.file, way.reason), []).append(way)
    if by_file:
        table = Table("host", "way", "file", "place", "read through", box=SIMPLE)
        for (host, file, reason), (first, *others) in by_file.items():
            more = f" and {len(others)} more" if others else ""
            way = f"{first.way}: {reason}" if reason else first.way
            through = ", ".join(first.use.through)
            table.add_row(host, way, file, first.use.place + more, through)
        screen().print(table)
    beyond = len({way.use.host for way in ways if way.way == "none"})
    say(f"{total} hosts are named, {beyond} of them without a way that the file states")
