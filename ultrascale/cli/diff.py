"""`ultrascale diff`: what a deployment of a cluster file would replace, delete or roll."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from ultrascale import plan
from ultrascale.errors import AccountError, QuestionError
from ultrascale.plan.stacks import stack_names

if TYPE_CHECKING:
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
            help="Compare with what `cdk synth` wrote there before; without it, with the account.",
        ),
    ] = None,
    assembly: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Take what `cdk synth` wrote there for FILE; do not synthesize."
        ),
    ] = None,
    replace: Annotated[
        list[str] | None,
        typer.Option(
            "--replace",
            metavar="NAME",
            help="Permit that this goes: a name, a logical id, or STACK/ID. Give one for each.",
        ),
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="Profile of the AWS CLI's configuration to ask with.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all of it as JSON.")] = False,
) -> None:
    """Say what a deployment would replace, delete or roll. Changes nothing.

    Ends with status 3 where something protected would go that no --replace names, or where
    CloudFormation could not do the change, and with 1 where that is not known.
    """
    from ultrascale.cli.change_views import as_document, text_lines
    from ultrascale.guard import compare

    cluster = plan.load(file)
    with _new_templates(cluster, file, assembly) as new:
        sides = _sides(cluster, against, profile, new)
    changes = compare(sides.old, sides.new, region=cluster.region).permit(*(replace or ()))
    status = 0 if changes.is_safe else PROTECTED
    if as_json:
        head = {
            "cluster": cluster.name,
            "region": cluster.region,
            "against": sides.of,
            "status": status,
        }
        typer.echo(json.dumps({**head, **as_document(changes)}, indent=2, ensure_ascii=False))
    else:
        typer.echo(f"{cluster.name} in {cluster.region}, against {sides.of}")
        if sides.note:
            typer.echo(sides.note)
        for line in text_lines(changes):
            typer.echo(line)
    if status:
        raise typer.Exit(status)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sides:
    """What is compared.

    Attributes:
        old: What is deployed.
        new: The new templates, as ``old`` has them.
        of: Where ``old`` is from.
        note: What is to be known of it; empty where nothing is.
    """

    old: "Templates"
    new: "Templates"
    of: str
    note: str = ""


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


def _sides(
    cluster: plan.ClusterPlan, against: Path | None, profile: str | None, new: "Templates"
) -> _Sides:
    from ultrascale import account, guard

    if against is not None:
        old = guard.read_assembly_of(cluster, against, option="--against")
        return _Sides(old=old, new=new, of=str(against))
    seen = account.connect(cluster.region, profile)
    if cluster.account not in (None, seen.id):
        raise AccountError(
            f"the credentials are of account {seen.id}, and the file is for {cluster.account}; "
            "name a profile of that one by --profile"
        )
    old = guard.read_deployed(seen, cluster.name, new)
    note = ""
    if not old:
        others = ", ".join(guard.other_clusters(seen, cluster.name))
        beside = f", beside the clusters that are there: {others}" if others else ""
        note = f"Nothing of it is deployed: a whole cluster would be made{beside}"
    return _Sides(old=old, new=guard.as_deployed(new), of=f"account {seen.id}", note=note)
