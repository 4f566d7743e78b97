"""Standard output whose reader may leave, as `head` does, without changing how a command ends."""

import os
import sys
from collections.abc import Iterable
from io import BufferedWriter, RawIOBase, TextIOWrapper

import typer
from typing_extensions import Buffer


class _Pipe(RawIOBase):
    """A file descriptor that goes on to take bytes when nobody reads them any more."""

    def __init__(self, descriptor: int) -> None:
        self.reader_is_gone = False
        self._descriptor = descriptor

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def write(self, data: Buffer, /) -> int:
        try:
            return os.write(self._descriptor, data)
        except BrokenPipeError:
            self.reader_is_gone = True
            # Programs that this one starts write to it too.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._descriptor)
            return memoryview(data).nbytes


def outlive_reader() -> None:
    """Let a command go on, and end with its own status, when nobody reads what it prints.

    The status of `diff` and `plan` is a verdict, which ``ultrascale diff FILE | head`` must keep.
    """
    told = sys.stdout
    if told is sys.__stdout__ and isinstance(told, TextIOWrapper):
        told.flush()
        sys.stdout = TextIOWrapper(
            BufferedWriter(_Pipe(told.fileno())),
            encoding=told.encoding,
            errors=told.errors,
            line_buffering=told.line_buffering,
        )


def reader_is_gone() -> bool:
    """Return whether nobody reads standard output any more, as of the last line printed."""
    buffer = getattr(sys.stdout, "buffer", None)
    raw = getattr(buffer, "raw", None)
    return isinstance(raw, _Pipe) and raw.reader_is_gone


def print_lines(lines: Iterable[str]) -> None:
    """Print lines as they come, as long as somebody reads them."""
    for line in lines:
        typer.echo(line)
        if reader_is_gone():
            return
