"""`ultrascale synth` and `ultrascale summary`: write a cluster file's templates, and show them."""

from pathlib import Path
from typing import Annotated

import typer

from ultrascale.cli import options
from ultrascale.synthesis import ASSEMBLY, CLUSTER, MANIFESTS, Target, refuse_stdin, synthesize


def synth(
    file: options.ClusterFile,
    output: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for the CloudFormation templates.")
    ] = ASSEMBLY,
    manifests: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for the Kubernetes manifests.")
    ] = MANIFESTS,
    pipeline: Annotated[
        bool,
        typer.Option("--pipeline", help="Synthesize the file's pipeline, with all of its stages."),
    ] = False,
) -> None:
    """Check a cluster file, write and validate templates and manifests, and show a summary.

    Each folder is replaced as a whole, and stays as it is if the synthesis fails. Asks no account.
    Ends with status 1 if the file has mistakes or the validation has findings, and with 130 after
    Ctrl-C.
    """
    from ultrascale.cli.check import check
    from ultrascale.cli.output import say
    from ultrascale.cli.version import untested
    from ultrascale.errors import QuestionError
    from ultrascale.plan import load_app

    refuse_stdin(file)
    check([file])
    if told := untested():
        say(f"{file}: note: {told}", err=True)
    if pipeline and load_app(file) is None:
        wrong = f"{file} has no pipeline; add the section, or leave the option out"
        raise QuestionError([f"--pipeline: {wrong}"])
    app = "pipeline" if pipeline else CLUSTER
    synthesize(file, Target(assembly=output, manifests=manifests), app=app)
    if not pipeline:
        summary(file, assembly=output, manifests=manifests)


# --- `ultrascale summary`: show stacks, pools, images and findings of a synthesized cluster file


def summary(
    file: options.ClusterFile,
    assembly: options.Assembly = Path("cdk.out"),
    manifests: options.Manifests = Path("dist"),
) -> None:
    """Show what a synthesized cluster file would create."""
    from ultrascale.cli.summary_views import print_summary
    from ultrascale.plan import load
    from ultrascale.synthesis import read_stacks_of

    plan = load(file)
    stacks = read_stacks_of(plan, assembly)
    print_summary(plan, stacks=stacks, assembly=assembly, manifests=manifests)
