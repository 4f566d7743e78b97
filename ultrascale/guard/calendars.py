"""Capacity Blocks whose nodes their calendar would give back before the block ends."""

from collections.abc import Iterator, Mapping

from ultrascale.guard.figures import number
from ultrascale.guard.model import Change, RolledPool
from ultrascale.guard.properties import at
from ultrascale.guard.protection import shorter_protection
from ultrascale.guard.replacement import Worlds
from ultrascale.guard.templates import Key

_CALENDAR = "Custom::BlockCalendar"
# A time in UTC, of which the earlier is the lesser text.
_UNTIL = "Window/UsableUntil"


def shortened_windows(changes: Mapping[Key, Change], worlds: Worlds) -> Iterator[RolledPool]:
    """Yield the pools that the calendar would empty earlier than it would have.

    Args:
        changes: What happens to each resource.
        worlds: Both sides.
    """
    for key, change in changes.items():
        if change.type != _CALENDAR or change.action != "updated":
            continue
        old, new = worlds.old.properties(key), worlds.new.properties(key)
        before, after = at(old, _UNTIL), at(new, _UNTIL)
        if isinstance(before, str) and isinstance(after, str) and after < before:
            lost, instead = shorter_protection()
            yield RolledPool(
                pool=str(old["Pool"]),
                stack=change.stack,
                rolling="ends",
                nodes=number(old.get("Size")),
                at_once="all at once, by its calendar",
                why=(f"{_UNTIL} from {before} to {after}",),
                usd_per_hour=None,
                lost=lost,
                instead=instead,
            )
