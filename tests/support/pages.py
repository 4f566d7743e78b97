"""Pages of HTML, read as a browser reads them, and their figures."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser

from ultrascale.documents import Json

_VOID = frozenset({"meta", "link", "br", "img", "input", "hr"})


@dataclass
class Element:
    """An element, with all that it holds."""

    name: str  # Its name
    attributes: Mapping[str, str]  # Its attributes
    # Elements and texts in it, in order
    children: "list[Element | str]" = field(default_factory=lambda: [])

    def walk(self) -> "Iterator[Element]":
        """Yield the element, and each one below it."""
        yield self
        for child in self.children:
            if isinstance(child, Element):
                yield from child.walk()

    def all(self, *names: str) -> "list[Element]":
        """Return the elements of these names, in order."""
        return [element for element in self.walk() if element.name in names]

    @property
    def text(self) -> str:
        """Text in it, without elements."""
        return "".join(child if isinstance(child, str) else child.text for child in self.children)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {})
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = self._new(tag, attrs)
        if tag not in _VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._new(tag, attrs)

    def _new(self, tag: str, attrs: list[tuple[str, str | None]]) -> Element:
        keys = [key for key, _ in attrs]
        assert len(keys) == len({*keys}), f"an attribute of {tag} stands twice"
        element = Element(tag, {key: value or "" for key, value in attrs})
        self._open[-1].children.append(element)
        return element

    def handle_endtag(self, tag: str) -> None:
        assert self._open[-1].name == tag, f"</{tag}> ends <{self._open[-1].name}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)

    def close(self) -> None:
        super().close()
        assert self._open == [self.root], f"<{self._open[-1].name}> has no end"


def read_page(page: str) -> Element:
    """Return a page; fails where its elements are not nested, or an attribute stands twice."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    return reader.root


def at_path(document: Json, path: str) -> Json:
    """Return what stands in a document at keys and indices parted by dots.

    A key of a mapping may hold dots itself.
    """
    if not path:
        return document
    if isinstance(document, Mapping):
        key = max((key for key in document if path == key or path.startswith(f"{key}.")), key=len)
        return at_path(document[key], path[len(key) + 1 :])
    index, _, rest = path.partition(".")
    assert isinstance(document, list | tuple)
    return at_path(document[int(index)], rest)


def number_in(text: str) -> float:
    """Return the number that a figure shows."""
    number = r"-?[\d,]+(?:\.\d+)?(?:e-\d+)?"
    found = re.fullmatch(rf"(?:at least )?\$?({number})", text)
    assert found is not None, text
    return float(found[1].replace(",", ""))
