"""Completion in a shell: the script of each shell, and the names in a cluster file.

The shell waits for the answer at every press of Tab: the cluster file is read only as YAML, without
its types. A file that cannot be read silently completes nothing.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path

import typer

from ultrascale.documents import look_up, mapping, objects, sequence, text
from ultrascale.errors import UsageError

SHELLS = ("bash", "zsh", "fish")
# This module is slow to import, and its list of names lacks these functions.
_TYPER = "typer.completion"
_PROGRAM, _VARIABLE = "ultrascale", "_ULTRASCALE_COMPLETE"


def shell() -> str:
    """Return the name of the shell that started this program.

    Raises:
        UsageError: The shell is not known.
    """
    import shellingham

    try:
        return shellingham.detect_shell()[0]
    except shellingham.ShellDetectionFailure:
        name = Path(os.environ.get("SHELL", "")).name
    if not name:
        raise UsageError([f"SHELL: your shell is not known; write {', '.join(SHELLS)}"])
    return name


def script(name: str) -> str:
    """Return the completion script for a shell.

    Raises:
        UsageError: There is no script for the shell.
    """
    return import_module(_TYPER).get_completion_script(
        prog_name=_PROGRAM, complete_var=_VARIABLE, shell=_known_shell(name)
    )


def install(name: str) -> Path:
    """Write the completion script to a place where the shell finds it, and return the path.

    Raises:
        UsageError: There is no script for the shell, or its place cannot be written to.
    """
    known, scripts = _known_shell(name), import_module(_TYPER)
    try:
        _, path = scripts.install(shell=known, prog_name=_PROGRAM, complete_var=_VARIABLE)
    except OSError as error:
        wrong = f"not written, {error}"
        raise UsageError([f"--install-completion: {wrong}; use --show-completion {name}"]) from None
    return path


def _known_shell(name: str) -> str:
    if name not in SHELLS:
        raise UsageError([f"SHELL: no completion for {name!r}; write {', '.join(SHELLS)}"])
    return name


def answer_shells() -> None:
    """Make the command line answer completion requests of shells, in each shell's form."""
    import_module(_TYPER).completion_init()


def pools(ctx: typer.Context, incomplete: str) -> Sequence[str]:
    """Return the names of the pools in the cluster file."""
    named = (text(pool, "name") for pool in objects(_document(ctx), "pools"))
    return matching_names(incomplete, named)


def jobs(ctx: typer.Context, incomplete: str) -> Sequence[str]:
    """Return the names of the jobs in the cluster file."""
    return matching_names(incomplete, mapping(_document(ctx), "jobs"))


def jobs_of_kind(kind: str) -> Callable[[typer.Context, str], Sequence[str]]:
    """Return what completes the names of the jobs of one kind."""

    def names(ctx: typer.Context, incomplete: str) -> Sequence[str]:
        stated = mapping(_document(ctx), "jobs")
        own = (name for name in stated if text(stated, name, "kind") == kind)
        return matching_names(incomplete, own)

    return names


def queues(ctx: typer.Context, incomplete: str) -> Sequence[str]:
    """Return the names of the queues in the cluster file."""
    found = objects(_document(ctx), "scheduling", "queues")
    return matching_names(incomplete, (text(queue, "name") for queue in found))


def storage(ctx: typer.Context, incomplete: str) -> Sequence[str]:
    """Return the names of file systems, buckets and repositories that the cluster file makes."""
    document = _document(ctx)
    found: list[str] = []
    for keys in (("storage", "lustre"), ("storage", "buckets"), ("images", "repositories")):
        found += [
            each if isinstance(each, str) else text(each, "name")
            for each in sequence(document, *keys)
            if look_up(each, "existing") is None
        ]
    return matching_names(incomplete, found)


def tables(incomplete: str) -> Sequence[str]:
    """Return the names of the tables of a plan."""
    from ultrascale.cli.table_names import TABLES

    return matching_names(incomplete, TABLES)


def instance_types(incomplete: str) -> Sequence[str]:
    """Return the instance types of the catalog."""
    from ultrascale.catalog import INSTANCE_TYPES

    return matching_names(incomplete, INSTANCE_TYPES)


def families(incomplete: str) -> Sequence[str]:
    """Return instance types by prefix: first families, then whole names."""
    from ultrascale.catalog import INSTANCE_TYPES

    whole = matching_names(incomplete, INSTANCE_TYPES) if "." in incomplete else ()
    return whole or matching_names(incomplete, (name.partition(".")[0] for name in INSTANCE_TYPES))


def regions(incomplete: str) -> Sequence[str]:
    """Return the AWS Regions of the catalog."""
    from ultrascale.catalog.regions import REGIONS

    return matching_names(incomplete, REGIONS)


def matching_names(incomplete: str, names: Iterable[str]) -> Sequence[str]:
    """Return the names that begin so, each once."""
    return [name for name in dict.fromkeys(names) if name and name.startswith(incomplete)]


def _document(ctx: typer.Context) -> object:
    """Return the document of the cluster file on the command line; None without a readable file."""
    named = ctx.params.get("file") or ctx.params.get("named")
    place: object = next(iter(sequence(named)), named)
    if not isinstance(place, (str, Path)):
        # An option whose value is still missing keeps the arguments from being parsed.
        words = f"{os.environ.get('COMP_WORDS', '')} {os.environ.get('_TYPER_COMPLETE_ARGS', '')}"
        place = next((word for word in words.split() if word.endswith((".yaml", ".yml"))), None)
    if not isinstance(place, (str, Path)):
        return None
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return yaml.load(Path(place).expanduser().read_bytes(), loader)
    except (OSError, ValueError, yaml.YAMLError, RecursionError):
        return None
