"""The way from the core to the table of parts."""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from ultrascale.core.part import Part

if TYPE_CHECKING:
    from ultrascale import config
    from ultrascale.plan.model import PlannedPart


@cache
def all_parts() -> "Sequence[Part[config.Section, PlannedPart]]":
    """Return every part, in the order of the table."""
    # Parts import the core: it imports their table at its first question, not when it is loaded.
    from ultrascale.parts.table import PARTS

    return PARTS
