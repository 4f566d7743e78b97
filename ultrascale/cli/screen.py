"""Output that fits a terminal's columns; in a pipe, lines and values stay whole."""

import os
import sys
from collections.abc import Iterator, Sequence
from typing import TextIO

from rich import table as rich_table
from rich.box import MARKDOWN
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.segment import Segment

from ultrascale.cli.output import columns, wrapped

# Wider than any printed line.
_WHOLE = 10_000


def screen(*, stderr: bool = False) -> Console:
    """Return a console for tables; it has no colors with NO_COLOR or on a dumb terminal."""
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") in {"dumb", "unknown"}
    return Console(
        stderr=stderr,
        width=columns(_stream(stderr)) or _WHOLE,
        color_system=None if plain else "auto",
        highlight=False,
        markup=False,
        emoji=False,
        # Reason: rich would cut a word that is longer than a line.
        soft_wrap=True,
    )


def _stream(stderr: bool) -> TextIO:
    return sys.stderr if stderr else sys.stdout


class Table(rich_table.Table):
    """A table whose values are never cut.

    If the terminal is too narrow for the longest words of all columns, each row becomes a block:
    its first value, and below it a line for each other value.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.box is MARKDOWN:
            whole = options.update(width=_WHOLE, max_width=_WHOLE)
            yield from super().__rich_console__(console, whole)
            return
        whole = options.update(width=_WHOLE, max_width=_WHOLE)
        sizes = [_sizes(column, console, whole) for column in self.columns]
        natural = Measurement.get(console, whole, self).maximum
        frame = natural - sum(most for _, most in sizes)
        if natural <= options.max_width:
            yield from _stripped_segments(super().__rich_console__(console, options))
            return
        room = options.max_width - frame - sum(least for least, _ in sizes)
        if room < 0:
            for line in self._blocks(options.max_width):
                yield Segment(line)
                yield Segment.line()
            return
        for column, width in zip(self.columns, _shared_widths(sizes, room), strict=True):
            column.width = width
        yield from _stripped_segments(super().__rich_console__(console, options))

    def _blocks(self, width: int) -> Iterator[str]:
        yield str(self.title or "")
        names = [" ".join(str(column.header).split()) for column in self.columns]
        indent = max(map(len, names[1:]), default=0)
        for row in zip(*(column.cells for column in self.columns), strict=True):
            first, *others = (" ".join(str(cell).split()) for cell in row)
            yield wrapped(f"{names[0]} {first}".strip(), width)
            for name, value in zip(names[1:], others, strict=True):
                if value:
                    yield wrapped(f"  {name:{indent}}  {value}", width, hang=indent + 2)


def _stripped_segments(rendered: RenderResult) -> Iterator[Segment]:
    """Yield the segments of lines, without blanks at the ends of lines."""
    segments = (each for each in rendered if isinstance(each, Segment))
    for line in Segment.split_lines(segments):
        while line and not line[-1].text.strip():
            line.pop()
        if line:
            text, style, control = line.pop()
            line.append(Segment(text.rstrip(), style, control))
        yield from line
        yield Segment.line()


def _sizes(column: rich_table.Column, console: Console, options: ConsoleOptions) -> tuple[int, int]:
    """Return a column's smallest width without cut words, and the width of its longest line."""
    least = most = 1
    for cell in (column.header, *column.cells):
        size = Measurement.get(console, options, cell)
        least, most = max(least, size.minimum), max(most, size.maximum)
    return (most if column.no_wrap else least), most


def _shared_widths(sizes: Sequence[tuple[int, int]], room: int) -> Sequence[int]:
    """Return the widths of columns that share ``room``; nearly fitting columns get it first."""
    widths = [least for least, _ in sizes]
    for place in sorted(range(len(sizes)), key=lambda each: sizes[each][1] - sizes[each][0]):
        least, most = sizes[place]
        widths[place] += min(most - least, room)
        room -= widths[place] - least
    return widths
