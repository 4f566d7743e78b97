"""Sections of the report, and the blocks that they consist of."""

from typing import NamedTuple

from ultrascale.plan.needs.tables import Table, Tone


class Block(NamedTuple):
    """A block of a section."""

    table: Table | None = None  # Its table; None without one
    note: str = ""  # Its sentence
    items: tuple[str, ...] = ()  # Its list of sentences
    commands: tuple[str, ...] = ()  # Its list of commands
    heading: str = ""  # Heading above it
    summary: str = ""  # Title of a block that the reader unfolds; empty for an open block
    page_only: bool = False  # Whether Markdown leaves the block out
    open_on_page: bool = False  # Whether only Markdown folds the block


class Section(NamedTuple):
    """A section of the report; it contains the drawing with the section's id."""

    id: str
    title: str
    blocks: tuple[Block, ...]
    tone: Tone | None = None
    verdict: str = ""
