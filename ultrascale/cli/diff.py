"""`ultrascale diff`: show what a deployment would replace, delete or roll."""

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from ultrascale.cli import options
from ultrascale.cli.output import PROTECTED, say
from ultrascale.errors import QuestionError
from ultrascale.frozen import Frozen
from ultrascale.progress import progress

if TYPE_CHECKING:
    from ultrascale.account import Account
    from ultrascale.guard import Changes
    from ultrascale.guard.templates import Templates
    from ultrascale.plan import ClusterPlan
    from ultrascale.plan.model import ClusterIdentity


def diff(
    file: options.ClusterFile,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="DIR|REVISION",
            help="Compare with an earlier output of `synth`, or with the file in a commit of Git; "
            "by default with the account.",
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
            help="Permit one loss or opening: a name, a logical id, or STACK/ID; repeatable.",
        ),
    ] = None,
    profile: options.AskingProfile = None,
    as_json: options.AllAsJson = False,
) -> None:
    """Show what a deployment would replace, delete or roll. Changes nothing.

    Ends with status 3 if a change that no --replace permits would lose something or let somebody
    in, or if CloudFormation could not make it; with 1 if that is not known.
    """
    from ultrascale import plan
    from ultrascale.cli.change_views import as_document, text_lines

    cluster = plan.load(file)
    # Asked before the synthesis, which takes half a minute.
    old = _old_templates(cluster, file, against, profile)
    with new_templates(cluster, file, assembly) as new, progress(f"comparing with {old.name}"):
        changes, note = old.compare(new)
    of = old.name
    changes = changes.permit(*(replace or ()))
    status = 0 if changes.is_safe else PROTECTED
    if as_json:
        head = {"cluster": cluster.name, "region": cluster.region, "against": of, "status": status}
        typer.echo(json.dumps({**head, **as_document(changes)}, indent=2, ensure_ascii=False))
    else:
        say(f"{cluster.name} in {cluster.region}, against {of}")
        if note:
            say(note)
        for line in text_lines(changes):
            say(line)
    if status:
        raise typer.Exit(status)


@contextmanager
def new_templates(
    cluster: "ClusterPlan", file: Path, assembly: Path | None
) -> Generator["Templates"]:
    """Yield the templates of a cluster file, from ``assembly`` or from a synthesis."""
    from ultrascale import guard
    from ultrascale.plan.stacks import stack_names

    if assembly is None:
        with TemporaryDirectory(prefix="ultrascale-diff-") as folder:
            with progress(f"synthesizing {file}"):
                new = guard.synthesize(file, Path(folder))
            yield new
        return
    new = guard.read_assembly_of(cluster, assembly, option="--assembly")
    others = new.keys() - stack_names(cluster.name, cluster.all_pools)
    if others:
        raise QuestionError(
            [
                f"--assembly: {assembly} has a stack that this file has not, got {min(others)}; "
                "synthesize the file anew, or leave the option out"
            ]
        )
    yield new


class _Old(Frozen, kw_only=False):
    """The deployed or earlier state that the new templates are compared with."""

    name: str  # Its name
    # Returns the changes, and a note; the note may be empty.
    compare: Callable[["Templates"], tuple["Changes", str]]


def _old_templates(
    cluster: "ClusterIdentity", file: Path, against: str | None, profile: str | None
) -> _Old:
    from ultrascale import account, guard

    if against is not None:
        name, note = against, ""
        if Path(against).exists():
            old = guard.read_assembly_of(cluster, Path(against), option="--against")
        else:
            with (
                TemporaryDirectory(prefix="ultrascale-diff-") as folder,
                progress(f"synthesizing {file} of {against}"),
            ):
                commit, old = guard.read_revision_of(cluster, file, against, Path(folder))
            name = f"{against} ({commit})"
            note = f"The file of {against} was synthesized by this version of ultrascale"
        return _Old(name, lambda new: (guard.compare(old, new, region=cluster.region), note))
    seen = account.connect_to_owner(cluster.region, cluster.account, profile)
    return _Old(
        f"account {seen.id}", lambda new: _comparison(seen, cluster.name, cluster.region, new)
    )


def _comparison(seen: "Account", name: str, region: str, new: "Templates") -> tuple["Changes", str]:
    from ultrascale import guard

    changes = guard.compare_deployed(seen, name, region, new)
    note = ""
    if not changes.left_stacks and set(changes.new_stacks) == set(new):
        others = ", ".join(guard.other_clusters(seen, name))
        beside = f", beside the clusters that are there: {others}" if others else ""
        note = f"Nothing of it is deployed: a whole cluster would be made{beside}"
    return changes, note
