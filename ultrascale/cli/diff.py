"""`ultrascale diff`: what a deployment of a cluster file would replace, delete or roll."""

import json
from collections.abc import Generator, Set
from contextlib import contextmanager
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
    with _new_templates(file, assembly) as new:
        _refuse_others("--assembly", assembly, new.keys() - stack_names(cluster), cluster.name)
        old, of, new = _old_templates(cluster, against, profile, new)
    changes = compare(old, new, region=cluster.region).permit(*(replace or ()))
    status = 0 if changes.is_safe else PROTECTED
    if as_json:
        head = {"cluster": cluster.name, "region": cluster.region, "against": of, "status": status}
        typer.echo(json.dumps({**head, **as_document(changes)}, indent=2, ensure_ascii=False))
    else:
        typer.echo(f"{cluster.name} in {cluster.region}, against {of}")
        for line in text_lines(changes):
            typer.echo(line)
    if status:
        raise typer.Exit(status)


@contextmanager
def _new_templates(file: Path, assembly: Path | None) -> Generator["Templates"]:
    from ultrascale import guard

    if assembly is not None:
        yield guard.read_assembly(assembly)
        return
    with TemporaryDirectory(prefix="ultrascale-diff-") as folder:
        yield guard.synthesize(file, Path(folder))


def _old_templates(
    cluster: plan.ClusterPlan, against: Path | None, profile: str | None, new: "Templates"
) -> tuple["Templates", str, "Templates"]:
    """Return what is deployed, in which words, and the new templates as that has them."""
    from ultrascale import account, guard

    if against is not None:
        old = guard.read_assembly(against)
        # A stack of a pool that the file has no more is the cluster's all the same.
        others = {name for name in old if not name.startswith(f"{cluster.name}-")}
        _refuse_others("--against", against, others, cluster.name)
        return old, str(against), new
    seen = account.connect(cluster.region, profile)
    if cluster.account not in (None, seen.id):
        raise AccountError(
            f"the credentials are of account {seen.id}, and the file is for {cluster.account}; "
            "name a profile of that one by --profile"
        )
    deployed = guard.read_deployed(seen, cluster.name, new)
    return deployed, f"account {seen.id}", guard.as_deployed(new)


def _refuse_others(option: str, folder: Path | None, others: Set[str], cluster: str) -> None:
    """Refuse the assembly of another cluster: all of it would be new, and nothing protected."""
    if others:
        raise QuestionError(
            [
                f"{option}: {folder} has stacks that are not of {cluster}, got {min(others)}; name "
                "what `cdk synth` wrote for this file"
            ]
        )
