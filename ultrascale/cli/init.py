"""`ultrascale init`: a new cluster file and a repository around it."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from ultrascale.cli import options
from ultrascale.cli.output import say
from ultrascale.errors import UltrascaleError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ultrascale.init import Answers, Source, Start

_NAME = "my-cluster"
_START = "minimal"
_NETWORKS = "Networks that reach its API server over the internet (CIDRs, or none)"


def _complete(incomplete: str) -> list[str]:
    from ultrascale.init.cluster_file import STARTS

    return [name for name in STARTS if name.startswith(incomplete)]


_ClusterName = Annotated[
    str | None, typer.Argument(metavar="NAME", help="Name of the cluster; its file is NAME.yaml.")
]
_From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="START",
        help="minimal, trainium, hopper, hybrid, mixed, teams, auto-mode or ultra; ask nothing.",
        autocompletion=_complete,
    ),
]
_AllowFrom = Annotated[
    str | None,
    typer.Option(
        "--allow-from",
        metavar="CIDR,...",
        help="Networks that reach the API server over the internet, or none.",
    ),
]
_Place = Annotated[
    str | None,
    typer.Option(
        metavar="PLACE",
        help="Source of ultrascale in the CI: WHEEL, s3://…, https://… or git+https://…@COMMIT.",
    ),
]


def init(
    name: _ClusterName = None,
    *,
    start: _From = None,
    region: options.Region = None,
    zones: Annotated[
        str | None, typer.Option(metavar="ZONE,...", help="Availability Zones.")
    ] = None,
    admin: Annotated[
        str | None, typer.Option(metavar="ARN", help="IAM role that administers the cluster.")
    ] = None,
    networks: _AllowFrom = None,
    to: Annotated[
        Path, typer.Option(metavar="FOLDER", help="An empty or new folder; by default this one.")
    ] = Path(),
    source: _Place = None,
    yes: Annotated[bool, typer.Option("--yes", help="Ask nothing; take the defaults.")] = False,
) -> None:
    """Write a cluster file, its jobs and a repository around them into an empty folder.

    Without --from and --yes the command asks at most six questions. It writes nothing before the
    last answer, and the written file passes `ultrascale check`.
    """
    from ultrascale.init import STARTS, given_source, recorded_source, refuse_used_folder
    from ultrascale.init import init as write

    if start is not None and start not in STARTS:
        from ultrascale.config import near

        raise UsageError([f"--from: no such start, got {start!r}; {near(start, STARTS)}"])
    refuse_used_folder(to)
    place = recorded_source(to) if source is None else given_source(source, to)
    given = {"--region": region, "--zones": zones, "--admin": admin, "--allow-from": networks}
    if start is not None or yes:
        chosen = STARTS[start or _START]
        answers = _answers_of_options(chosen, name or _NAME, given)
    else:
        if not sys.stdin.isatty():
            raise UltrascaleError(
                "nothing was written: the command asks, and here is no terminal; add --yes, or "
                f"--from with one of {', '.join(STARTS)}"
            )
        chosen, answers = _answers_of_questions(name, given)
    for path in write(chosen, answers, to, place):
        say(str(to / path))
    _tell_next(answers, to, place)


_Given = dict[str, str | None]


def _answers_of_options(start: "Start", name: str, given: _Given) -> "Answers":
    """Return the defaults of ``start``, overridden by the options.

    Raises:
        UsageError: The options make a file that `check` refuses.
    """
    from ultrascale.init import cluster_text, defaults, mistakes_in

    answers = defaults(start, name, region=given["--region"])
    for option, value in given.items():
        if value is not None:
            answers = _answers_with(answers, option, value)
    if wrong := mistakes_in(cluster_text(start, answers)):
        raise UsageError(wrong)
    return answers


def _answers_with(answers: "Answers", option: str, value: str) -> "Answers":
    if option == "--admin":
        return replace(answers, admin=value.strip())
    listed = tuple(word for word in value.replace(",", " ").split() if word != "none")
    if option == "--zones":
        return replace(answers, zones=listed)
    return replace(answers, networks=listed) if option == "--allow-from" else answers


def _answers_of_questions(name: str | None, given: _Given) -> "tuple[Start, Answers]":
    """Ask for the answers that arguments and options leave open; check every answer at once."""
    from ultrascale.init import STARTS, cluster_text, defaults, mistakes_in

    first = STARTS[_START]
    if name is None:
        name = _answers_after(first, "Name", _NAME, lambda value: defaults(first, value)).name
    else:
        _answers_of_options(first, name, dict.fromkeys(given))
    start = _asked_start()
    answers = defaults(start, name, region=given["--region"])
    if given["--region"] is None:
        at = partial(_defaults_in, start, name)
        answers = _answers_after(start, "Region", answers.region, at)
    for option, question, default in (
        ("--zones", "Availability Zones", ", ".join(answers.zones)),
        ("--admin", "IAM role that administers it", answers.admin),
        ("--allow-from", _NETWORKS, ", ".join(answers.networks) or "none"),
    ):
        if (value := given[option]) is None:
            change = partial(_answers_with, answers, option)
            answers = _answers_after(start, question, default, change)
        else:
            answers = _answers_with(answers, option, value)
    if wrong := mistakes_in(cluster_text(start, answers)):
        raise UsageError(wrong)
    return start, answers


def _defaults_in(start: "Start", name: str, region: str) -> "Answers":
    from ultrascale.init import defaults

    return defaults(start, name, region=region)


def _asked_start() -> "Start":
    from ultrascale.config import near
    from ultrascale.init import STARTS

    def chosen(value: str) -> "Start":
        if value.strip() not in STARTS:
            raise typer.BadParameter(near(value, STARTS))
        return STARTS[value.strip()]

    for short, each in STARTS.items():
        say(f"  {short:<10} {each.summary}")
    return typer.prompt("Start from", default=_START, value_proc=chosen)


def _answers_after(
    start: "Start", question: str, default: str, read: "Callable[[str], Answers]"
) -> "Answers":
    """Ask until the answer makes a file that `check` accepts.

    Args:
        start: The cluster file to start from.
        question: The question.
        default: The answer to a pressed Return.
        read: Returns all answers, including the new one.
    """
    from ultrascale.init import cluster_text, mistakes_in

    def checked(value: str) -> "Answers":
        try:
            answers = read(value.strip())
            wrong = mistakes_in(cluster_text(start, answers))
        except UltrascaleError as error:
            raise typer.BadParameter(str(error)) from None
        if wrong:
            raise typer.BadParameter("\n".join(wrong))
        return answers

    return typer.prompt(question, default=default, value_proc=checked)


def _tell_next(answers: "Answers", folder: Path, source: "Source | None") -> None:
    from ultrascale.init import PLACES, STAND_IN_ACCOUNT, STAND_IN_NETWORK, local_wheel
    from ultrascale.release import PRODUCT, VERSION

    file = folder / f"{answers.name}.yaml"
    if STAND_IN_ACCOUNT in answers.admin:
        say(f"{file}: kubernetes.admins is a stand-in; write the ARN of your own role")
    if STAND_IN_NETWORK in answers.networks:
        say(f"{file}: kubernetes.endpoint.public_cidrs is a stand-in; write your own network")
    if source is None:
        place = local_wheel() or f"PLACE: {PLACES}"
        say(
            f"no CI and no requirements.txt: nothing says where they get {PRODUCT} {VERSION} from; "
            f"to have both, begin in an empty folder with --source {place}"
        )
    elif source.bucket_object:
        say(
            "CI reads the wheel by a role: set the repository's variable ULTRASCALE_ROLE to the "
            f"ARN of one that trusts GitHub's OIDC, and may read {source.bucket_object} alone"
        )
    say(f"next: ultrascale check {file}, then plan, synth, preflight and deploy")
