"""The search after a teardown: resources that the plan keeps, and orphans.

The search deletes nothing. It reports each request that AWS refuses: the refused answer may hold
resources that cost money.
"""

from collections.abc import Callable, Iterator
from functools import partial

from msgspec.structs import replace

from ultrascale.account import Account
from ultrascale.errors import UnansweredError
from ultrascale.frozen import Frozen
from ultrascale.teardown.ec2 import INSTANCE
from ultrascale.teardown.inventory import as_left, can_look, command, look, searches
from ultrascale.teardown.model import Found, Left, Scope, Search, Teardown, Thing
from ultrascale.teardown.stacks import AGAIN, FUNCTION
from ultrascale.teardown.storage import FILE_SYSTEM, file_system_facts, file_systems


class Sweep(Frozen):
    """Result of the search after a teardown."""

    left: tuple[Left, ...]  # Orphans and things that the plan keeps; the dearest first
    unknown: tuple[str, ...]  # Questions that AWS did not answer, each with the reason

    @property
    def orphans(self) -> tuple[Left, ...]:
        """Things that should be gone and are not."""
        return tuple(thing for thing in self.left if not thing.asked)


def sweep(scope: Scope, teardown: Teardown) -> Sweep:
    """Return the things that are left of a cluster.

    Args:
        scope: The cluster.
        teardown: Its teardown.
    """
    deleted = frozenset(thing.id for thing in teardown.things if thing.kind == FUNCTION)
    scope = replace(scope, functions=deleted)
    left: dict[tuple[str, str], Left] = {}
    unknown: list[str] = []
    for question in _questions(scope, teardown):
        try:
            for thing in question():
                left.setdefault((thing.thing.kind, thing.thing.id), thing)
        except UnansweredError as error:
            unknown.append(str(error))
    return Sweep(
        left=tuple(sorted(left.values(), key=_dearness)), unknown=tuple(dict.fromkeys(unknown))
    )


def _questions(scope: Scope, teardown: Teardown) -> Iterator[Callable[[], Iterator[Left]]]:
    """Yield a function for each request to AWS: the refusal of a request hides no other answer."""
    for kept in teardown.kept:
        if kept.asked:
            yield partial(_kept_left, scope.account, kept)
    for thing in sorted(teardown.things):
        if can_look(thing.kind):
            yield partial(_ungone_left, scope.account, thing)
    for search in searches():
        yield partial(_search_results, search, scope)


def _dearness(left: Left) -> tuple[bool, float, bool, Left]:
    """Return the sort key: instances first, with or without a known price, then by price."""
    return left.thing.kind != INSTANCE, -left.usd_per_hour, not left.paid, left


def _kept_left(account: Account, kept: Left) -> Iterator[Left]:
    if look(account, kept.thing.kind, kept.thing.id) != "gone":
        yield kept


def _ungone_left(account: Account, thing: Thing) -> Iterator[Left]:
    """Yield a thing that the teardown should have deleted and that still exists."""
    if look(account, thing.kind, thing.id) == "gone":
        return
    price = None
    if thing.kind == FILE_SYSTEM and (system := file_systems(account).get(thing.id)):
        _, price = file_system_facts(system)
    found = Found(
        thing=thing,
        why="it was to go, and is there",
        command=f"{AGAIN}, or {command(thing.kind, thing.id, account.region)}",
        price=price,
    )
    yield as_left(found, account.region)


def _search_results(search: Search, scope: Scope) -> Iterator[Left]:
    for found in search(scope):
        thing = found.thing
        if found.certain or look(scope.account, thing.kind, thing.id) != "gone":
            yield as_left(found, scope.plan.region)
