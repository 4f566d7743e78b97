"""Lines for a reader that may leave, as `head` does, or has a width, as a terminal does."""

import os
import sys
import textwrap
from collections.abc import Iterable
from io import BufferedWriter, RawIOBase, TextIOWrapper
from typing import TextIO

import typer
from typing_extensions import Buffer

from ultrascale.errors import UltrascaleError


class _Pipe(RawIOBase):
    """A file descriptor that accepts bytes even after its reader has gone."""

    def __init__(self, descriptor: int) -> None:
        self.reader_is_gone = False
        self._descriptor = descriptor

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def write(self, data: Buffer, /) -> int:
        try:
            return os.write(self._descriptor, data)
        except BrokenPipeError:
            self.reader_is_gone = True
            self._write_nowhere()
            return memoryview(data).nbytes
        except OSError as error:
            self._write_nowhere()
            reason = (error.strerror or str(error)).lower()
            raise UltrascaleError(f"what was to be printed is not all there: {reason}") from None

    def _write_nowhere(self) -> None:
        # Child processes write to the descriptor too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), self._descriptor)


def outlive_reader() -> None:
    """Let a command go on to its own exit status after the reader of its output has gone.

    The status of `diff` and `plan` is a verdict: ``ultrascale diff FILE | head`` must not change
    it.
    """
    # A program that is started without standard streams has None here.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: PTH123 SIM115 as long as it runs
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: PTH123 SIM115 as long as it runs
    if sys.stdout is sys.__stdout__:
        sys.stdout = _unbreakable_stream(sys.stdout)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _unbreakable_stream(sys.stderr)


def _unbreakable_stream(told: TextIO) -> TextIO:
    if not isinstance(told, TextIOWrapper):
        return told
    told.flush()
    return TextIOWrapper(
        BufferedWriter(_Pipe(told.fileno())),
        encoding=told.encoding,
        errors=told.errors,
        line_buffering=told.line_buffering,
    )


def reader_is_gone() -> bool:
    """Return whether the last line printed to standard output had no reader."""
    buffer = getattr(sys.stdout, "buffer", None)
    raw = getattr(buffer, "raw", None)
    return isinstance(raw, _Pipe) and raw.reader_is_gone


def print_lines(lines: Iterable[str]) -> None:
    """Print lines as they come, until the reader has gone."""
    for line in lines:
        typer.echo(line)
        if reader_is_gone():
            return


_COLUMNS = 80


def columns(stream: TextIO) -> int | None:
    """Return the width of a terminal in characters; None for a pipe or a file."""
    if not stream.isatty():
        return None
    if (told := os.environ.get("COLUMNS", "")).isdigit() and int(told):
        return int(told)
    try:
        return os.get_terminal_size(stream.fileno()).columns or _COLUMNS
    except (OSError, ValueError):
        return _COLUMNS


def wrapped(text: str, width: int | None, *, hang: int = 2) -> str:
    """Return a line broken into lines of at most ``width`` characters; no word is cut.

    Args:
        text: One line.
        width: Characters; None leaves the line whole.
        hang: Spaces before each line but the first.
    """
    if width is None or len(text) <= width:
        return text
    begins = len(text) - len(text.lstrip())
    lines = textwrap.wrap(
        text,
        width,
        subsequent_indent=" " * (begins + hang),
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    )
    return "\n".join(lines)


def say(text: str = "", *, err: bool = False) -> None:
    """Print sentences: on a terminal lines break between words, in a pipe they stay whole."""
    width = columns(sys.stderr if err else sys.stdout)
    typer.echo("\n".join(wrapped(line, width) for line in text.split("\n")), err=err)


# --- Exit statuses of commands; docs/command-line.md lists all statuses ---------------------------


BEYOND = 2
"""No limit that AWS publishes allows the cluster."""
FAILED = 3
"""The account does not fit the cluster, or a check could not ask AWS."""
PROTECTED = 3
"""A protected resource would go, or CloudFormation could not make the change."""
STACK_FAILED = 4
"""A stack failed."""
USAGE = 64
"""The command line itself is wrong: `EX_USAGE` of sysexits(3)."""
INTERRUPTED = 130
"""Ctrl-C."""
