"""`ultrascale mirror`: list, copy and check the pulls of a closed cluster."""

import json
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ultrascale.cli.output import FAILED, say

if TYPE_CHECKING:
    from ultrascale.jobs.preparation import JobCluster
    from ultrascale.parts.mirror.contents import Copy


class Action(StrEnum):
    """Command of the mirror."""

    LIST = "list"
    COPY = "copy"
    CHECK = "check"


def mirror(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The cluster file.")],
    action: Annotated[Action, typer.Argument(help="List, copy or check.")],
    assembly: Annotated[Path, typer.Option(help="Folder that `ultrascale synth` wrote.")] = Path(
        "cdk.out"
    ),
    manifests: Annotated[Path, typer.Option(help="Folder of the manifests.")] = Path("dist"),
    profile: Annotated[
        str | None, typer.Option(help="Profile of the AWS CLI's configuration, for Amazon ECR.")
    ] = None,
    renew: Annotated[
        bool, typer.Option("--renew", help="Copy what the tags mean now, not what was recorded.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
) -> None:
    """List, copy or check every image and chart that a cluster pulls.

    Reads the files of `ultrascale synth`, the jobs of FILE and the Dockerfiles of
    its builds. `copy` needs crane or skopeo on PATH, for charts of services helm, and for
    HyperPod's git too; it makes repositories in Amazon ECR, and writes the digest of
    each copy to mirror.lock beside FILE: synthesize again after it. `check` ends
    with status 3 where something is missing or different.
    """
    from ultrascale.jobs.preparation import read_cluster
    from ultrascale.parts.mirror.contents import list_copies

    cluster = read_cluster(file)
    copies = list_copies(cluster, assembly=assembly, manifests=manifests)
    if action is Action.LIST:
        _print(copies, as_json=as_json)
    elif action is Action.COPY:
        _copy(file, cluster, copies, profile, renew=renew)
    else:
        _check(cluster, copies, profile)


def _print(copies: "Sequence[Copy]", *, as_json: bool) -> None:
    if as_json:
        rows = [
            {
                "kind": copy.kind,
                "source": copy.source,
                "target": copy.target,
                "used_by": list(copy.used_by),
            }
            for copy in copies
        ]
        typer.echo(json.dumps(rows, indent=2))
        return
    from rich.box import SIMPLE

    from ultrascale.cli.screen import Table, screen

    table = Table("source", "copy", "used by", box=SIMPLE)
    for copy in copies:
        first, *others = copy.used_by
        users = f"{first} and {len(others)} more" if others else first
        table.add_row(copy.source, copy.target, users)
    screen().print(table)


def _copy(
    file: Path,
    cluster: "JobCluster",
    copies: "Iterable[Copy]",
    profile: str | None,
    *,
    renew: bool,
) -> None:
    from ultrascale.parts.mirror.session import copy_into

    failed = 0
    for outcome in copy_into(file, cluster.plan, copies, profile=profile, renew=renew):
        failed += outcome.state == "failed"
        # A reason names its reference.
        say(outcome.why or f"{outcome.copy.source}: {outcome.state}", err=bool(outcome.why))
    if failed:
        say(f"{failed} not copied; mirror.lock has what was", err=True)
        raise typer.Exit(1)
    say("mirror.lock is written; synthesize again, and keep it in version control")


def _check(cluster: "JobCluster", copies: "Sequence[Copy]", profile: str | None) -> None:
    from ultrascale.parts.mirror.session import check_in

    wrong = 0
    for finding in check_in(cluster.plan.copies, copies, profile=profile):
        if finding.state != "there":
            wrong += 1
            say(f"{finding.copy.source}: {finding.state}: {finding.why}")
    if wrong:
        say(f"{wrong} of {len(copies)} are not as recorded", err=True)
        raise typer.Exit(FAILED)
    say(f"{len(copies)} in the mirror, as recorded")
