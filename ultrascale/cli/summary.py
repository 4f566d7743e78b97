"""`ultrascale summary`: show stacks, pools, images and findings of a synthesized cluster file."""

from pathlib import Path

from ultrascale.cli import options


def summary(
    file: options.ClusterFile,
    assembly: options.Assembly = Path("cdk.out"),
    manifests: options.Manifests = Path("dist"),
) -> None:
    """Show what a synthesized cluster file would create."""
    from ultrascale.assembly import read_stacks_of
    from ultrascale.cli.summary_views import print_summary
    from ultrascale.plan import load

    plan = load(file)
    stacks = read_stacks_of(plan, assembly)
    print_summary(plan, stacks=stacks, assembly=assembly, manifests=manifests)
