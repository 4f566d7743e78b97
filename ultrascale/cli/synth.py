"""`ultrascale synth`: write templates and manifests of a cluster file, validated."""

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
    from ultrascale.errors import QuestionError
    from ultrascale.plan import load_app
    from ultrascale.tested_versions import untested

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
        from ultrascale.cli.summary import summary

        summary(file, assembly=output, manifests=manifests)
