"""SVG: shapes, text that is cut where it does not fit, and the document around them."""

from collections.abc import Iterable, Iterator, Sequence

from ultrascale.report.markup import (
    Content,
    Markup,
    element,
    empty,
    joined,
    plain,
    text,
)

# Widths of letters in a wide sans-serif font (DejaVu Sans), in sizes of the font. Text that is
# measured by them fits in narrower fonts too.
_NARROW = frozenset("ijl.,:;'|! ()[]ftI/-")
_WIDE = frozenset("mwMW@%—")
_OF_NARROW, _OF_WIDE, _OF_CAPITAL, _OF_OTHERS = 0.4, 0.97, 0.73, 0.625
_BOLD = 1.1
_ELLIPSIS = "…"
_FRONT, _MARKS, _TEXTS = 9, 10, 11
_LINE = 16.0


def width_of(words: str, size: float, *, bold: bool = False) -> float:
    """Return the width of a line of text, of a wide font, in pixels."""
    total = sum(
        _OF_NARROW
        if letter in _NARROW
        else _OF_WIDE
        if letter in _WIDE
        else _OF_CAPITAL
        if letter.isupper()
        else _OF_OTHERS
        for letter in words
    )
    return total * size * (_BOLD if bold else 1)


def cut(words: str, width: float, size: float, *, bold: bool = False) -> str:
    """Return as much of ``words`` as fits in ``width``, with an ellipsis where some is left out."""
    if width_of(words, size, bold=bold) <= width:
        return words
    kept = words
    while kept and width_of(kept + _ELLIPSIS, size, bold=bold) > width:
        kept = kept[:-1]
    return kept.rstrip(" ,·") + _ELLIPSIS


def wrapped(
    words: Sequence[str], width: float, size: float, between: str = ", ", *, bold: bool = False
) -> list[str]:
    """Return ``words`` in lines that fit in ``width``; a word that fits in none is parted."""
    lines: list[str] = []
    for index, word in enumerate(words):
        piece = word + (between.rstrip() if index < len(words) - 1 else "")
        if lines and width_of(f"{lines[-1]} {piece}", size, bold=bold) <= width:
            lines[-1] = f"{lines[-1]} {piece}"
        else:
            lines += _pieces(piece, width, size, bold=bold)
    return lines


def _pieces(word: str, width: float, size: float, *, bold: bool) -> Iterator[str]:
    """Yield parts of a word that fit in ``width``, parted after a hyphen where there is one."""
    while len(word) > 1 and width_of(word, size, bold=bold) > width:
        most = next(
            (
                end
                for end in range(len(word), 1, -1)
                if width_of(word[:end], size, bold=bold) <= width
            ),
            1,
        )
        hyphen = word.rfind("-", 1, most) + 1
        end = hyphen if hyphen > most // 2 else most
        yield word[:end]
        word = word[end:]
    yield word


class Canvas:
    """A drawing.

    Attributes:
        id: Prefix of the ids in it, as several drawings share a page.
        width: Its width, in pixels.
    """

    def __init__(self, id: str, width: float) -> None:
        self.id = id
        self.width = width
        self._parts: list[tuple[int, Markup]] = []

    def _add(self, part: Markup, layer: int = _FRONT) -> None:
        self._parts.append((layer, part))

    def rect(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        class_: str,
        *,
        radius: float = 0,
        layer: int = _FRONT,
    ) -> None:
        """Draw a rectangle; what has a lower layer lies behind it."""
        shape = empty(
            "rect",
            x=x,
            y=y,
            width=max(width, 0),
            height=max(height, 0),
            rx=radius or None,
            class_=class_,
        )
        self._add(shape, layer)

    def swatch(self, x: float, y: float, width: float, height: float, kind: str) -> None:
        """Draw a rectangle in the colour and the pattern of a purchase option."""
        self.rect(x, y, width, height, f"fill-{kind}", radius=min(2, width / 2))
        if kind in PATTERNS:
            pattern = empty(
                "rect",
                x=x,
                y=y,
                width=max(width, 0),
                height=max(height, 0),
                fill=f"url(#{self.id}-{kind})",
            )
            self._add(pattern)

    def path(self, shape: str, class_: str) -> None:
        """Draw a path."""
        self._add(empty("path", d=shape, class_=class_))

    def line(self, x1: float, y1: float, x2: float, y2: float, class_: str) -> None:
        """Draw a line."""
        self._add(empty("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_))

    def mark_line(self, x1: float, y1: float, x2: float, y2: float, class_: str) -> None:
        """Draw a line in front of all shapes, and behind all texts."""
        self._add(empty("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_), _MARKS)

    def back_line(self, x1: float, y1: float, x2: float, y2: float, class_: str) -> None:
        """Draw a line behind everything."""
        self._add(empty("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_), 0)

    def write(
        self,
        x: float,
        y: float,
        *contents: Content,
        class_: str = "t",
        anchor: str | None = None,
        tooltip: str = "",
        axis: str | None = None,
    ) -> None:
        """Write a line of text, its base line at ``y``; ``axis`` names that which it is of."""
        title = [element("title", tooltip)] if tooltip else []
        words = element(
            "text",
            *title,
            text(*contents, tag="tspan"),
            x=x,
            y=y,
            class_=class_,
            text_anchor=anchor,
            data_axis=axis,
        )
        self._add(words, _TEXTS)

    def write_cut(
        self, x: float, y: float, words: str, width: float, size: float, class_: str = "t"
    ) -> None:
        """Write as much of a line as fits; all of it is its tooltip."""
        bold = "b" in class_.split()
        cut_words = cut(words, width, size, bold=bold)
        self.write(x, y, cut_words, class_=class_, tooltip=words if cut_words != words else "")

    def paragraph(
        self, x: float, y: float, words: str, width: float, size: float, class_: str = "t"
    ) -> float:
        """Write a text in as many lines as it takes; returns the base line of the last."""
        bold = "b" in class_.split()
        for index, line in enumerate(wrapped(words.split(" "), width, size, " ", bold=bold)):
            y += _LINE if index else 0
            self.write(x, y, line, class_=class_)
        return y

    def document(
        self,
        height: float,
        *,
        title: str,
        description: str,
        class_: str | None = None,
        style: str = "",
        background: bool = False,
    ) -> Markup:
        """Return the drawing as an element of SVG.

        Args:
            height: Its height, in pixels.
            title: Its name.
            description: What it shows, in words.
            class_: Class of the element.
            style: Style sheet of a drawing that stands alone.
            background: Whether it has a background of its own.
        """
        parts: list[Markup] = [
            element("title", title, id=f"{self.id}-title"),
            element("desc", description, id=f"{self.id}-desc"),
        ]
        if style:
            parts.append(Markup(f"<style>{style}</style>"))
        parts.append(self._patterns())
        if background:
            parts.append(empty("rect", width=self.width, height=height, class_="page", rx=10))
        drawn = [part for _, part in sorted(self._parts, key=lambda each: each[0])]
        return element(
            "svg",
            joined([*parts, *drawn], "\n"),
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {self.width:g} {height:g}",
            width=self.width,
            height=height,
            role="img",
            aria_labelledby=f"{self.id}-title {self.id}-desc",
            class_=class_,
        )

    def _patterns(self) -> Markup:
        patterns = [
            element(
                "pattern",
                empty("path", d=path, class_="pattern"),
                id=f"{self.id}-{kind}",
                width=size,
                height=size,
                patternUnits="userSpaceOnUse",
            )
            for kind, (size, path) in PATTERNS.items()
        ]
        return element("defs", joined(patterns))


PATTERNS = {
    "spot": (8, "M-2 2L2-2M0 8L8 0M6 10L10 6"),
    "capacity-block": (6, "M3 0V6"),
    "training-plan": (8, "M0 0L8 8M8 0L0 8"),
    "odcr": (6, "M1.5 3H4.5M3 1.5V4.5"),
    "drain": (4, "M0 2H4M2 0V4"),
}
"""Size of the tile and path of the pattern of each purchase option, beside its colour."""


def text_width(contents: Iterable[Content], size: float, *, bold: bool = False) -> float:
    """Return the width of a line of texts and figures."""
    return width_of("".join(plain(each) for each in contents), size, bold=bold)
