"""The line that follows a job's pods: redrawn in a terminal, elsewhere a line for each change."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from ultrascale.jobs.progress import Progress

_SHOWN = ("pending", "scheduled", "pulling", "running")
_PASSING = ("terminating", "succeeded", "failed")
# Seconds between two plain lines that differ in numbers alone: a job of ten thousand pods starts
# for minutes.
_PLAIN_EVERY = 5.0


@contextmanager
def shown() -> Generator[Callable[[Progress], None]]:
    """Give a function that shows each progress on standard error."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Plain()
        return
    spinner = Spinner("dots")
    with Live(spinner, console=console, refresh_per_second=4) as live:

        def show(progress: Progress) -> None:
            spinner.update(text=Text("\n".join(_lines(progress))))
            if progress.up or progress.state.result is not None:
                live.update(Text("\n".join(_lines(progress))))

        yield show


class _Plain:
    def __init__(self) -> None:
        self._said: tuple[object, ...] = ()
        self._counts = ""
        self._when = 0.0

    def __call__(self, progress: Progress) -> None:
        state = progress.state
        saying = (state.phase, state.retries, progress.waiting, progress.up)
        counts = _counts(progress)
        now = time.monotonic()
        passed = now - self._when >= _PLAIN_EVERY
        if saying == self._said and (counts == self._counts or not passed):
            return
        self._said, self._counts, self._when = saying, counts, now
        for line in _lines(progress):
            typer.echo(line, err=True)


def _lines(progress: Progress) -> list[str]:
    state = progress.state
    retries = f", restart {state.retries} of {state.most_retries}" if state.retries else ""
    first = f"{progress.name}: {state.phase}{retries}: {_counts(progress)}"
    return [first, *(f"  {reason}" for reason in progress.waiting)]


def _counts(progress: Progress) -> str:
    pods = progress.pods
    shown = [f"{each} {pods[each]}" for each in _SHOWN]
    shown += [f"{each} {pods[each]}" for each in _PASSING if pods[each]]
    return f"{' · '.join(shown)} of {progress.state.wanted}"
