"""`ultrascale upgrade-plan`: plan an upgrade of Kubernetes, without asking AWS."""

import json
from pathlib import Path
from typing import Annotated

import typer

from ultrascale.frozen import to_document

BLOCKED = 3
"""Exit status where something has to be done before the upgrade."""


def upgrade_plan(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The cluster file, as deployed.")],
    to: Annotated[
        str, typer.Option(metavar="VERSION", help="New minor version of Kubernetes, such as 1.36.")
    ],
    assembly: Annotated[Path, typer.Option(help="Folder that `cdk synth` wrote.")] = Path(
        "cdk.out"
    ),
    manifests: Annotated[Path, typer.Option(help="Folder of the manifests.")] = Path("dist"),
    also: Annotated[
        list[Path] | None,
        typer.Option(help="Manifests of your own, a file or a folder; repeatable."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all of it as JSON.")] = False,
) -> None:
    """Plan an upgrade of Kubernetes: blockers, versions, and the nodes that are replaced.

    Asks no account. Ends with status 3 where a blocker has to be solved first.
    """
    from ultrascale.cli.upgrade_views import planned, print_upgrade

    upgrade = planned(file, to, assembly=assembly, manifests=manifests, also=also)
    if as_json:
        typer.echo(json.dumps(to_document(upgrade), indent=2, ensure_ascii=False, default=str))
    else:
        print_upgrade(upgrade)
    if upgrade.blockers:
        raise typer.Exit(BLOCKED)
