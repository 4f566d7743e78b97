"""Sections of the report, and the blocks that they consist of."""

from typing import NamedTuple

from ultrascale.plan.needs.tables import Table, Tone


class Block(NamedTuple):
    """A block of a section.

    Attributes:
        table: Its table; None without one.
        note: Its sentence.
        items: Its list of sentences.
        commands: Its list of commands.
        heading: Heading above it.
        summary: Title of a block that the reader unfolds; empty for an open block.
        page_only: Whether Markdown leaves the block out.
        open_on_page: Whether only Markdown folds the block.
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
    """A section of the report; it contains the drawing with the section's id."""

    id: str
    title: str
    blocks: tuple[Block, ...]
    tone: Tone | None = None
    verdict: str = ""
