"""`ultrascale upgrade-plan`: plan an upgrade of Kubernetes, without asking AWS."""

import json
from pathlib import Path
from typing import Annotated

import typer

from ultrascale.cli import options
from ultrascale.frozen import to_document

BLOCKED = 3
"""Exit status if a blocker has to be solved before the upgrade."""


def upgrade_plan(
    file: options.DeployedFile,
    to: Annotated[str, typer.Option(metavar="VERSION", help="New Kubernetes minor, such as 1.36.")],
    assembly: options.Assembly = Path("cdk.out"),
    manifests: options.Manifests = Path("dist"),
    also: Annotated[
        list[Path] | None,
        typer.Option(help="Your own manifests, a file or a folder; repeatable."),
    ] = None,
    as_json: options.AllAsJson = False,
) -> None:
    """Plan an upgrade of Kubernetes: blockers, versions, and the nodes that it replaces.

    Asks no account. Ends with status 3 if a blocker has to be solved first.
    """
    from ultrascale.cli.upgrade_views import print_upgrade, upgrade_of

    upgrade = upgrade_of(file, to, assembly=assembly, manifests=manifests, also=also)
    if as_json:
        typer.echo(json.dumps(to_document(upgrade), indent=2, ensure_ascii=False, default=str))
    else:
        print_upgrade(upgrade)
    if upgrade.blockers:
        raise typer.Exit(BLOCKED)
