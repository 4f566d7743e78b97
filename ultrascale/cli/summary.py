"""`ultrascale summary`: show stacks, pools, images and findings of a synthesized cluster file."""

from pathlib import Path
from typing import Annotated

import typer


def summary(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The cluster file.")],
    assembly: Annotated[Path, typer.Option(help="Folder that `cdk synth` wrote.")] = Path(
        "cdk.out"
    ),
    manifests: Annotated[Path, typer.Option(help="Folder of the manifests.")] = Path("dist"),
) -> None:
    """Show what a synthesized cluster file would create."""
    from ultrascale.assembly import read_stacks_of
    from ultrascale.cli.summary_views import print_summary
    from ultrascale.plan import load

    plan = load(file)
    stacks = read_stacks_of(plan, assembly)
    print_summary(plan, stacks=stacks, assembly=assembly, manifests=manifests)
