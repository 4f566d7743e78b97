"""Answers about addresses by trying everything, for subnets of a few blocks and a few nodes.

Whoever else is at work decides all that AWS leaves open: where a single address lies, which of
several subnets with equally many free addresses is taken, and who comes and goes first.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from ultrascale.plan.network.assignment import NOTHING, Assigned, Draw, Nodes, Room

BLOCK = 16
# Free addresses in each block of 16 of a subnet.
Blocks = tuple[int, ...]


def blocks_hold(blocks: Blocks, draw: Draw) -> bool:
    """Return whether a subnet gives all of ``draw``, in any order and wherever addresses lie."""
    return _always(tuple(sorted(blocks)), draw.addresses, draw.prefixes)


@cache
def _always(blocks: Blocks, addresses: int, prefixes: int) -> bool:
    if addresses:
        places = [at for at, free in enumerate(blocks) if free]
        if not places:
            return False
        for at in places:
            after = tuple(sorted((*blocks[:at], blocks[at] - 1, *blocks[at + 1 :])))
            if not _always(after, addresses - 1, prefixes):
                return False
    if prefixes:
        if BLOCK not in blocks:
            return False
        at = blocks.index(BLOCK)
        after = tuple(sorted((*blocks[:at], 0, *blocks[at + 1 :])))
        return _always(after, addresses, prefixes - 1)
    return True


def every_assignment(nodes: Sequence[Nodes]) -> Iterator[Assigned]:
    """Yield each way to name the subnets of ``nodes``: one, or several of what spreads."""
    ways: list[list[tuple[str, ...]]] = []
    for each in nodes:
        most = len(each.subnets) if each.spreads else 1
        ways.append(
            [
                subnets
                for size in range(1, most + 1)
                for subnets in itertools.combinations(each.subnets, size)
            ]
        )
    for chosen in itertools.product(*ways):
        yield {each.name: subnets for each, subnets in zip(nodes, chosen, strict=True)}


def survives(
    rooms: Sequence[Room], nodes: Sequence[Nodes], standing: Mapping[str, Draw], assigned: Assigned
) -> bool:
    """Return whether no order of launches and ends leaves anything without its addresses."""
    return _Game(rooms, nodes, standing, assigned).survives()


class _Game:
    """All states that launches and ends lead to.

    A state says how many nodes of each shard lie in each subnet, and which standing draws are
    there.
    """

    def __init__(
        self,
        rooms: Sequence[Room],
        nodes: Sequence[Nodes],
        standing: Mapping[str, Draw],
        assigned: Assigned,
    ) -> None:
        self.rooms = rooms
        self.nodes = nodes
        self.standing = [standing.get(room.id, NOTHING) for room in rooms]
        self.allowed = [
            [at for at, room in enumerate(rooms) if room.id in assigned[each.name]]
            for each in nodes
        ]

    def survives(self) -> bool:
        start = tuple((0,) * len(self.rooms) for _ in (*self.nodes, "standing"))
        seen, waiting = {start}, [start]
        while waiting:
            state = waiting.pop()
            for after in self.moves(state):
                if after is None:
                    return False
                if after not in seen:
                    seen.add(after)
                    waiting.append(after)
        return True

    def moves(
        self, state: tuple[tuple[int, ...], ...]
    ) -> Iterator[tuple[tuple[int, ...], ...] | None]:
        drawn = [self.drawn(state, at) for at in range(len(self.rooms))]
        free = [room.addresses - draw.total for room, draw in zip(self.rooms, drawn, strict=True)]
        for number, each in enumerate(self.nodes):
            counts = state[number]
            yield from (_less(state, number, at) for at, count in enumerate(counts) if count)
            if sum(counts) == each.count:
                continue
            most = max(free[at] for at in self.allowed[number])
            for at in self.allowed[number]:
                # Who documents no order may take any; it has one subnet alone.
                if free[at] == most:
                    after = _more(state, number, at)
                    yield after if self.rooms[at].holds(drawn[at] + each.each) else None
        last = len(self.nodes)
        for at, present in enumerate(state[last]):
            if present:
                yield _less(state, last, at)
            elif self.standing[at] != NOTHING:
                fits = self.rooms[at].holds(drawn[at] + self.standing[at])
                yield _more(state, last, at) if fits else None

    def drawn(self, state: tuple[tuple[int, ...], ...], at: int) -> Draw:
        own = (each.each * state[number][at] for number, each in enumerate(self.nodes))
        return sum(own, self.standing[at] * state[-1][at])


def _more(state: tuple[tuple[int, ...], ...], number: int, at: int) -> tuple[tuple[int, ...], ...]:
    return _changed(state, number, at, 1)


def _less(state: tuple[tuple[int, ...], ...], number: int, at: int) -> tuple[tuple[int, ...], ...]:
    return _changed(state, number, at, -1)


def _changed(
    state: tuple[tuple[int, ...], ...], number: int, at: int, by: int
) -> tuple[tuple[int, ...], ...]:
    row = state[number]
    return (*state[:number], (*row[:at], row[at] + by, *row[at + 1 :]), *state[number + 1 :])
