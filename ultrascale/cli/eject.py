"""`ultrascale eject`: take files of the product out, to change them."""

from pathlib import Path
from typing import Annotated

import typer

from ultrascale.cli.output import say
from ultrascale.errors import UsageError


def _complete(incomplete: str) -> list[str]:
    from ultrascale.ejected import EJECTABLE

    return [name for name in EJECTABLE if name.startswith(incomplete)]


def eject(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME...", help="Such as images/nvidia; see --list.", autocompletion=_complete
        ),
    ] = None,
    *,
    to: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder of the cluster files that use it.")
    ] = Path(),
    show: Annotated[
        bool, typer.Option("--list", help="List what can be ejected, and what is.")
    ] = False,
    reviewed: Annotated[
        bool,
        typer.Option(
            "--reviewed",
            help="Stop warning that the product's own has changed: your copy has what you need.",
        ),
    ] = False,
) -> None:
    """Take Dockerfiles, the backend's rules, a chart or jobs out into your folder.

    From then on cluster files in that folder use your copy. A record beside it, ejected.json, says
    of which version it is. To use the product's own again, delete the copy and its entry there.
    """
    if show:
        if names or reviewed:
            raise UsageError(["--list: it takes no NAME and no --reviewed; leave them out"])
        _list(to)
        return
    if not names:
        raise UsageError(["NAME: missing; `ultrascale eject --list` names what there is"])
    if reviewed:
        from ultrascale.eject import review

        review(names, to)
        say(f"{', '.join(names)}: recorded as reviewed")
        return
    from ultrascale.eject import eject as take_out
    from ultrascale.ejected import EJECTABLE

    used = {to / each.copy: each.use for each in EJECTABLE.values()}
    for copy in take_out(names, to):
        say(f"{copy}: yours" + ("" if used[copy] == "path" else f", used by cluster files in {to}"))
    if not _has_cluster_file(to):
        say(f"no cluster file lies in {to}: those elsewhere do not use it", err=True)


def _list(folder: Path) -> None:
    from rich.box import SIMPLE

    from ultrascale.cli.screen import Table, screen
    from ultrascale.ejected import EJECTABLE, read_ejected

    copies = {each.name: each for each in read_ejected(folder)}
    table = Table("name", "what it is", f"in {folder}", box=SIMPLE)
    for name, known in EJECTABLE.items():
        copy = copies.get(name)
        changed = ", ours has changed since" if copy and copy.changed else ""
        state = f"your copy of {copy.version}{changed}" if copy else ""
        table.add_row(name, known.purpose, state)
    screen().print(table)


def _has_cluster_file(folder: Path) -> bool:
    for path in (*folder.glob("*.yaml"), *folder.glob("*.yml")):
        try:
            if "\npools:" in f"\n{path.read_text(encoding='utf-8')}":
                return True
        except (OSError, UnicodeError):
            continue
    return False
