"""Boxes of a drawing, in pixels: a template writes them as SVG.

Columns have fixed widths. No text is measured: a line gets as many characters as fit if all are
wide, and a box hides what lies beyond its edge.
"""

from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import NamedTuple

from ultrascale.plan.needs.tables import Content, Datum, Line

WIDTH = 1160
PAD, GAP, LINE = 12, 10, 16
_STRIPE, _BELOW = 10, 14
_SIZES = {"h": 15, "n": 13, "t": 12, "s": 11}
# Widths of a character as a share of the font size: letters and digits of DejaVu Sans, a wide font.
_CHARACTER, _BOLD = 0.62, 0.7


class Card(NamedTuple):
    """Contents of a box."""

    # Style and words of its lines; words are broken into lines, figures are not
    rows: tuple[tuple[str, Content | Line], ...] = ()
    style: str = ""  # Style of its frame; empty for none
    fill: str = ""  # Purchase option that gives its left edge, or a whole `bar`, colour and pattern
    # Used share of its room, drawn as a bar below the lines; None without the bar
    share: float | None = None
    axis: str = ""  # Axis that it labels; empty for none


class Box(NamedTuple):
    """A card at its place in the drawing."""

    x: int  # Its left edge
    y: int  # Its upper edge
    width: int  # Its width
    height: int  # Its height
    left: int  # Indent of its lines
    lines: tuple[tuple[int, str, Line], ...]  # Base line, style and words of each line
    card: Card  # Its contents

    @property
    def end(self) -> int:
        """Lower edge of the box, with the gap below it."""
        return self.y + self.height + GAP

    @property
    def filled(self) -> int:
        """Width of the colored part of the bar."""
        return self.width if self.card.style == "bar" else _STRIPE


class Drawing(NamedTuple):
    """A drawing; boxes that come first lie behind later boxes."""

    width: int
    height: int
    boxes: tuple[Box, ...]


def box_of(card: Card, x: float, y: float, width: float, height: float | None = None) -> Box:
    """Return ``card`` as a box; without ``height``, the number of lines gives the height."""
    pad = PAD if card.style else 0
    left = _STRIPE + 8 if card.fill else pad
    lines = [(style, line) for style, own in card.rows for line in _lines(own, style, width - left)]
    below = 0 if card.share is None else _BELOW
    return Box(
        round(x),
        round(y),
        max(round(width), 1),
        LINE * len(lines) + below + pad + 4 if height is None else max(round(height), 1),
        left,
        tuple((pad // 2 + LINE * (i + 1) - 2, *line) for i, line in enumerate(lines)),
        card,
    )


def _lines(words: Content | Line, style: str, width: float) -> Iterator[Line]:
    """Yield words in lines of a column; a word longer than a line is split."""
    if not isinstance(words, str):
        yield (words,) if isinstance(words, Datum) else words
        return
    wide = _BOLD if "b" in style.split() else _CHARACTER
    count = int((width - PAD) / (_SIZES[style[0]] * wide))
    for line in wrap(" ".join(words.split()), max(count, 1), break_on_hyphens=False):
        yield (line,)


def legend_of(y: float, column: int, names: Mapping[str, tuple[str, Line]]) -> list[Box]:
    """Return a legend in columns of a fixed width.

    Args:
        y: Its upper edge.
        column: Width of a column.
        names: Fill and words of each entry, by its name.
    """
    count = WIDTH // column
    return [
        box_of(
            Card((("t", words),), fill=fill), PAD + i % count * column, y + i // count * 24, column
        )
        for i, (fill, words) in enumerate(names.values())
    ]
