"""Sections of the report, and their parts."""

from typing import NamedTuple

from ultrascale.plan.needs.tables import Table, Tone


class Block(NamedTuple):
    """A part of a section.

    Attributes:
        table: Its table; None without one.
        note: Its sentence.
        items: Its list of sentences.
        commands: Its list of commands.
        heading: Heading above it.
        summary: Title of a part that the reader unfolds; empty for an open part.
        page_only: Whether Markdown leaves it out.
        open_on_page: Whether only Markdown folds it.
    """

    table: Table | None = None
    note: str = ""
    items: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    heading: str = ""
    summary: str = ""
    page_only: bool = False
    open_on_page: bool = False


class Section(NamedTuple):
    """A section of the report; it contains the drawing with its id."""

    id: str
    title: str
    blocks: tuple[Block, ...]
    tone: Tone | None = None
    verdict: str = ""
