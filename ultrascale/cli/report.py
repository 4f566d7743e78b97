"""`ultrascale report`: draw a cluster as a page, or as Markdown for a pull request."""

import os
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Annotated

import typer

from ultrascale.cli import options
from ultrascale.cli.options import PriceFileOption, price_list
from ultrascale.cli.output import say
from ultrascale.errors import QuestionError, UltrascaleError, UsageError
from ultrascale.release import VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ultrascale.ledger.showback import Showback
    from ultrascale.plan import ClusterPlan
    from ultrascale.report import Comparison

_STDOUT = Path("-")


_Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="OUT",
        help="File to write, or - for standard output; by default report.html or report.md.",
    ),
]
_Against = Annotated[
    Path | None,
    typer.Option(
        "--against",
        metavar="DIR",
        help="Show what a deployment would change of this earlier output of `cdk synth`.",
    ),
]
_Assembly = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="With --against: use this output of `cdk synth` for FILE; do not synthesize.",
    ),
]
_Ledger = Annotated[
    str | None,
    typer.Option(
        metavar="DIR|s3://…", help="Show who used it, by the ledger in a folder or bucket."
    ),
]
_DAYS = 28


def report(
    file: options.ClusterFile,
    output: _Output = None,
    against: _Against = None,
    assembly: _Assembly = None,
    at: options.At = None,
    prices: PriceFileOption = None,
    ledger: _Ledger = None,
    profile: options.AskingProfile = None,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Write Markdown for a pull request.")
    ] = False,
) -> None:
    """Draw a cluster: topology, calendar, cost, control plane, quotas, decisions. Asks no account.

    The page is one HTML file that loads nothing else. Markdown has at most 60,000 characters. Equal
    input gives equal bytes. With --ledger it begins with who used the cluster in the last 28 days;
    S3 is asked where the ledger is in a bucket.
    """
    from ultrascale import plan
    from ultrascale.cli.ledger import open_ledger
    from ultrascale.lambdas.ledger import DAY
    from ultrascale.plan.needs.calendar import read_time
    from ultrascale.plan.needs.report import plan_needs
    from ultrascale.report import render_markdown, render_page

    if assembly is not None and against is None:
        raise UsageError(["--assembly: needs --against DIR, with which it is compared"])
    out = output or Path("report.md" if as_markdown else "report.html")
    _refuse_output(file, out)
    moment = None if at is None else read_time(at)
    cluster = plan.load(file)
    needs = plan_needs(
        cluster, moment, price_list(prices, cluster.region), now=moment or options.now()
    )
    comparison = None if against is None else _comparison(cluster, file, against, assembly)
    render = render_markdown if as_markdown else render_page
    name = "standard input" if file == _STDOUT else file.name
    used: Sequence[Showback] = ()
    if ledger is not None:
        end = int((moment or options.now()).timestamp()) // DAY * DAY
        opened = open_ledger(file, cluster, ledger, prices, profile)
        # All days in one listing.
        opened.files(end - _DAYS * DAY, end)
        used = [opened.showback(end - n * DAY, end - (n - 1) * DAY) for n in range(_DAYS, 0, -1)]
    text = render(needs, file=name, version=VERSION, comparison=comparison, ledger=used)
    if out == _STDOUT:
        typer.echo(text, nl=False)
        return
    try:
        write_whole(out, text)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        todo = "name a file that you can write with --output"
        raise UltrascaleError(f"{out}: nothing was written: {reason}; {todo}") from None
    say(f"wrote {out}", err=True)


def _comparison(
    cluster: "ClusterPlan", file: Path, against: Path, assembly: Path | None
) -> "Comparison":
    from ultrascale import guard
    from ultrascale.cli.diff import new_templates
    from ultrascale.report import Comparison

    # Asked before the synthesis, which takes half a minute.
    old = guard.read_assembly_of(cluster, against, option="--against")
    with new_templates(cluster, file, assembly) as new:
        changes = guard.compare(old, new, region=cluster.region)
    return Comparison(against=str(against), changes=changes)


def _refuse_output(file: Path, out: Path) -> None:
    """Refuse a path that the report may not be written to.

    Raises:
        QuestionError: The path is a folder, is in no existing folder, or is the cluster file.
    """
    if out == _STDOUT:
        return
    if out.is_dir():
        raise QuestionError([f"--output: is a folder, got {out}; name a file in it"])
    if not out.parent.is_dir():
        raise QuestionError([f"--output: there is no folder {out.parent}; make it first"])
    with suppress(OSError):
        if out.samefile(file):
            raise QuestionError([f"--output: is the cluster file, got {out}; name another file"])


def write_whole(out: Path, text: str) -> None:
    """Write all of ``text`` or nothing: a complete new file replaces the old file.

    Raises:
        OSError: The file cannot be written.
    """
    target = out.resolve()
    if target.exists() and not target.is_file():
        # A device or a pipe is written to; a file never replaces it.
        target.write_text(text, encoding="utf-8")
        return
    with NamedTemporaryFile(
        "w", dir=target.parent, prefix=".whole-", delete=False, encoding="utf-8", newline="\n"
    ) as new:
        try:
            new.write(text)
            new.close()
            _keep_mode(target, Path(new.name))
            Path(new.name).replace(target)
        except BaseException:
            Path(new.name).unlink(missing_ok=True)
            raise


def _keep_mode(target: Path, new: Path) -> None:
    """Give the new file the mode of the replaced file, or the usual mode of a new file."""
    if target.exists():
        new.chmod(target.stat().st_mode)
        return
    mask = os.umask(0)
    os.umask(mask)
    new.chmod(0o666 & ~mask)
