"""`ultrascale diff`: show what a deployment would replace, delete or roll."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from ultrascale import plan
from ultrascale.errors import QuestionError
from ultrascale.plan.stacks import stack_names

if TYPE_CHECKING:
    from ultrascale.guard import Changes
    from ultrascale.guard.templates import Templates

PROTECTED = 3
"""Exit status where something protected would go, or CloudFormation could not do the change."""


def diff(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The cluster file.")],
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            metavar="DIR",
            help="Compare with an earlier output of `cdk synth`; by default with the account.",
        ),
    ] = None,
    assembly: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Use the output of `cdk synth` for FILE; do not synthesize."
        ),
    ] = None,
    replace: Annotated[
        list[str] | None,
        typer.Option(
            "--replace",
            metavar="NAME",
            help="Permit one loss: a name, a logical id, or STACK/ID; repeatable.",
        ),
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="Profile of the AWS CLI's configuration to ask with.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all of it as JSON.")] = False,
) -> None:
    """Show what a deployment would replace, delete or roll. Changes nothing.

    Ends with status 3 where something protected would go that no --replace names, or where
    CloudFormation could not do the change, and with 1 where that is not known.
    """
    from ultrascale.cli.change_views import as_document, text_lines

    cluster = plan.load(file)
    with _new_templates(cluster, file, assembly) as new:
        of, changes, note = _compared(cluster, against, profile, new)
    changes = changes.permit(*(replace or ()))
    status = 0 if changes.is_safe else PROTECTED
    if as_json:
        head = {"cluster": cluster.name, "region": cluster.region, "against": of, "status": status}
        typer.echo(json.dumps({**head, **as_document(changes)}, indent=2, ensure_ascii=False))
    else:
        typer.echo(f"{cluster.name} in {cluster.region}, against {of}")
        if note:
            typer.echo(note)
        for line in text_lines(changes):
            typer.echo(line)
    if status:
        raise typer.Exit(status)


@contextmanager
def _new_templates(
    cluster: plan.ClusterPlan, file: Path, assembly: Path | None
) -> Generator["Templates"]:
    from ultrascale import guard

    if assembly is None:
        with TemporaryDirectory(prefix="ultrascale-diff-") as folder:
            yield guard.synthesize(file, Path(folder))
        return
    new = guard.read_assembly_of(cluster, assembly, option="--assembly")
    others = new.keys() - stack_names(cluster)
    if others:
        raise QuestionError(
            [
                f"--assembly: {assembly} has a stack that this file has not, got {min(others)}; "
                "synthesize the file anew, or leave the option out"
            ]
        )
    yield new


def _compared(
    cluster: plan.ClusterPlan, against: Path | None, profile: str | None, new: "Templates"
) -> tuple[str, "Changes", str]:
    """Return the name of the old state, the changes, and a note; the note may be empty."""
    from ultrascale import account, guard

    if against is not None:
        old = guard.read_assembly_of(cluster, against, option="--against")
        return str(against), guard.compare(old, new, region=cluster.region), ""
    seen = account.connect_to_owner(cluster, profile)
    changes = guard.compare_deployed(seen, cluster, new)
    note = ""
    if not changes.left_stacks and set(changes.new_stacks) == set(new):
        others = ", ".join(guard.other_clusters(seen, cluster.name))
        beside = f", beside the clusters that are there: {others}" if others else ""
        note = f"Nothing of it is deployed: a whole cluster would be made{beside}"
    return f"account {seen.id}", changes, note
