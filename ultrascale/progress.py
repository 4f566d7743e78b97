"""A line on the terminal that names a command's present work if it takes longer than a second.

The command line turns it on. Elsewhere, and where standard error is no terminal, nothing is
shown.
"""

import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from threading import Event, RLock, Thread
from typing import Any, TextIO, cast

_AFTER_SECONDS = 1.0
_EVERY_SECONDS = 0.2
_COLUMNS = 80


class Step:
    """Work in progress, with its name on the line.

    Args:
        what: Name of the work, such as ``synthesizing my-cluster.yaml``.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self.begun = time.monotonic()

    def say(self, what: str) -> None:
        """Replace the line's words, for example by the next part of the work."""
        self.what = what


class _Aside:
    """A terminal's stream that takes the line away before others write."""

    def __init__(self, stream: TextIO, line: "_Line") -> None:
        self._stream = stream
        self._line = line

    def write(self, text: str) -> int:
        with self._line.lock:
            self._line.erase()
            return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 whatever the stream has
        return getattr(self._stream, name)


class _Line:
    """The last line of a terminal while some work is in progress."""

    def __init__(self, stream: TextIO) -> None:
        self.lock = RLock()
        self._stream = stream
        self._steps: list[Step] = []
        self._drawn = 0
        self._shown = ""
        self._told: Step | None = None
        self._ended = Event()
        self._streams: tuple[TextIO, TextIO] | None = None

    def begin(self, step: Step) -> None:
        with self.lock:
            self._steps.append(step)
            if len(self._steps) > 1:
                return
            self._streams = (sys.stdout, sys.stderr)
            if sys.stdout.isatty():
                sys.stdout = cast("TextIO", _Aside(sys.stdout, self))
            sys.stderr = cast("TextIO", _Aside(sys.stderr, self))
            self._ended = Event()
            Thread(target=self._draw_until, args=(self._ended,), daemon=True).start()

    def end(self, step: Step) -> None:
        with self.lock:
            self.erase()
            self._steps.remove(step)
            if not self._steps and self._streams is not None:
                self._ended.set()
                sys.stdout, sys.stderr = self._streams

    def erase(self) -> None:
        if self._drawn:
            # A terminal shows Ctrl-C as two more characters.
            self._stream.write(f"\r{' ' * (self._drawn + 2)}\r")
            self._stream.flush()
            self._drawn = 0

    def _draw_until(self, ended: Event) -> None:
        while not ended.wait(_EVERY_SECONDS):
            with self.lock:
                if self._steps and not ended.is_set():
                    self._draw(self._steps[-1])

    def _draw(self, step: Step) -> None:
        seconds = time.monotonic() - step.begun
        if seconds < _AFTER_SECONDS:
            return
        if os.environ.get("TERM") == "dumb":
            # This terminal cannot take a line away: each work is named once.
            if step is not self._told:
                self._told = step
                self._stream.write(f"{step.what} …\n")
                self._stream.flush()
            return
        text = f"{step.what} … {seconds:.0f} s"
        room = self._columns() - 3
        if len(text) > room:
            tail = f" … {seconds:.0f} s"
            text = step.what[: room - len(tail)] + tail
        if text == self._shown and self._drawn:
            return
        self._stream.write(f"\r{text}{' ' * (self._drawn - len(text))}")
        self._stream.flush()
        self._drawn, self._shown = len(text), text

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or _COLUMNS
        except (OSError, ValueError):
            return _COLUMNS


_line: _Line | None = None


def show_progress() -> None:
    """Show work in progress from now on, if standard error is a terminal."""
    global _line
    _line = _Line(sys.stderr) if sys.stderr.isatty() else None


@contextmanager
def progress(what: str) -> Generator[Step]:
    """Name the work of the block on the terminal once it has taken a second.

    The line stands on standard error, counts the seconds, and is gone at the end of the block.
    Other output stands above it. Blocks may be nested: the inner one is shown. Without
    `show_progress` nothing is shown.

    Args:
        what: Name of the work, such as ``synthesizing my-cluster.yaml``.
    """
    step, line = Step(what), _line
    if line is None:
        yield step
        return
    line.begin(step)
    try:
        yield step
    finally:
        line.end(step)
