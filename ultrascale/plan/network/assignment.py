"""Assignment of nodes to the subnets of an existing VPC.

EC2 takes a single address from anywhere in a subnet, so each may break another block of 16, and
nothing can be reserved in another owner's subnet. Nodes fit where they get their addresses wherever
EC2 takes the others from, and in whatever order nodes come and go.

Sources:
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-prefix-eni.html
    https://github.com/aws/karpenter-provider-aws/blob/1d927085/pkg/providers/subnet/subnet.go
    (`ZonalSubnetsForLaunch`: of several subnets of a zone the one with the most free addresses)
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

from ultrascale.catalog import eks
from ultrascale.frozen import Frozen

# Steps of the search, in all and for one way to spread NodePools; beyond them nodes count as too
# many. Users' files need a few dozen.
_MOST_STEPS = 8_000
_STEPS_OF_A_WAY = 1_500


class Draw(Frozen):
    """Addresses that a node, or another user, takes from a subnet."""

    addresses: int = 0  # Single addresses
    prefixes: int = 0  # Aligned blocks of 16 addresses (/28)

    def __add__(self, other: "Draw") -> "Draw":
        return Draw(
            addresses=self.addresses + other.addresses, prefixes=self.prefixes + other.prefixes
        )

    def __mul__(self, count: int) -> "Draw":
        """Return the draw of ``count`` equal users."""
        return Draw(addresses=self.addresses * count, prefixes=self.prefixes * count)

    @property
    def total(self) -> int:
        """All addresses, with those of prefixes."""
        return self.addresses + self.prefixes * eks.ADDRESSES_PER_PREFIX


NOTHING = Draw()


class Room(Frozen):
    """Free addresses of a subnet."""

    id: str  # Its id
    addresses: int  # Its free addresses, with those of free blocks
    prefixes: int  # Its free, aligned blocks of 16 addresses

    def holds(self, draw: Draw) -> bool:
        """Return whether the subnet holds ``draw``, wherever EC2 takes single addresses from."""
        if not draw.prefixes:
            return draw.addresses <= self.addresses
        return draw.prefixes + draw.addresses <= self.prefixes


class Nodes(Frozen):
    """The nodes of one pool, or of one shard of it, in one zone."""

    name: str  # Name of the shard
    subnets: tuple[str, ...]  # Ids of their possible subnets
    count: int  # Most nodes at a time, without those of updates
    surge: int = 0  # Nodes that an update adds before it ends as many
    each: Draw  # Addresses of a node
    # Whether their provisioner takes the subnet with the most free addresses for each node, so that
    # several subnets count. EC2 Auto Scaling and HyperPod document no order.
    spreads: bool

    @property
    def all(self) -> Draw:
        """Addresses of all of the nodes."""
        return self.each * (self.count + self.surge)

    @property
    def words(self) -> str:
        """Sum of the addresses."""
        added = f" and {self.surge} while it is updated" if self.surge else ""
        nodes = f"{self.count:,} nodes of {self.name}{added}"
        return f"{self.all.total:,} for {nodes}, {self.each.total} each"


Assigned = Mapping[str, tuple[str, ...]]
"""Subnets of each shard, by its name."""


def assign(
    rooms: Sequence[Room], nodes: Sequence[Nodes], standing: Mapping[str, Draw]
) -> Assigned | None:
    """Return the subnets of a zone for each shard; None where they are too small.

    NodePools have every subnet of their use where each alone holds all of them. Otherwise each
    shard has one subnet, the first in the file that leaves room for the others. A NodePool that
    fits into no single one is spread over several, with others like it, so that the other users of
    those subnets get their addresses in whatever order they come.

    Args:
        rooms: The subnets, in file order.
        nodes: The zone's nodes, in file order.
        standing: Other users of addresses, by subnet.
    """
    chosen: dict[str, tuple[str, ...]] = {}
    for part_rooms, part_nodes in parts(rooms, nodes):
        part = _Part(part_rooms, part_nodes, standing).assign()
        if part is None:
            return None
        chosen |= part
    return chosen


def parts(
    rooms: Sequence[Room], nodes: Sequence[Nodes]
) -> Iterator[tuple[list[Room], list[Nodes]]]:
    """Yield subnets that share nodes, each with these; a subnet without any is a part as well."""
    joined: list[set[str]] = [{room.id} for room in rooms]
    for node in nodes:
        touched = [part for part in joined if part & {*node.subnets}]
        joined = [part for part in joined if part not in touched]
        joined.append(set[str]().union(*touched))
    for part in joined:
        yield (
            [room for room in rooms if room.id in part],
            [node for node in nodes if part & {*node.subnets} or (not part and not node.subnets)],
        )


class _Spread(Frozen, kw_only=False):
    """Shards that share several subnets: each node goes where most addresses are free."""

    names: frozenset[str]  # Their names
    subnets: tuple[str, ...]  # Ids of the subnets
    count: int  # Nodes of all of them
    each: Draw  # Addresses of a node, the most among them


class _Part:
    """Subnets of a zone that share nodes."""

    def __init__(
        self, rooms: Sequence[Room], nodes: Sequence[Nodes], standing: Mapping[str, Draw]
    ) -> None:
        self._rooms = rooms
        self._nodes = [node for node in nodes if node.count]
        self._idle = [node for node in nodes if not node.count]
        self._standing = {room.id: standing.get(room.id, NOTHING) for room in rooms}
        self._left = _MOST_STEPS

    def assign(self) -> Assigned | None:
        if not all(room.holds(self._standing[room.id]) for room in self._rooms):
            return None
        if not all(node.subnets for node in (*self._nodes, *self._idle)):
            return None
        chosen = self._all_subnets()
        if chosen is None and self._may_fit():
            chosen = next(self._assignments(), None)
        if chosen is None:
            return None
        return {**chosen, **{node.name: node.subnets for node in self._idle}}

    def _may_fit(self) -> bool:
        needed = sum((node.all for node in self._nodes), sum(self._standing.values(), NOTHING))
        addresses = sum(room.addresses for room in self._rooms)
        prefixes = sum(room.prefixes for room in self._rooms)
        return needed.total <= addresses and needed.prefixes <= prefixes

    def _all_subnets(self) -> Assigned | None:
        """Return all subnets for each NodePool, where any one holds all NodePools."""
        free = [node for node in self._nodes if node.spreads]
        loads = {
            room.id: sum(
                (node.all for node in free if room.id in node.subnets), self._standing[room.id]
            )
            for room in self._rooms
        }
        if not all(room.holds(loads[room.id]) for room in self._rooms):
            return None
        chosen = self._single_subnets([node for node in self._nodes if not node.spreads], loads)
        if chosen is None:
            return None
        return {**chosen, **{node.name: node.subnets for node in free}}

    def _assignments(self) -> Iterator[Assigned]:
        """Yield assignments, those that spread nothing first."""
        for spreads in itertools.chain([()], self._spreads()):
            self._left -= 1
            if self._left <= 0:
                return
            names = frozenset[str]().union(*(spread.names for spread in spreads))
            rest = [node for node in self._nodes if node.name not in names]

            def suits(loads: Mapping[str, Draw], spreads: Sequence[_Spread] = spreads) -> bool:
                return all(_is_held(self._rooms, spread, loads) for spread in spreads)

            chosen = self._single_subnets(rest, self._standing, suits)
            if chosen is None:
                # Large ones first need fewer steps, and displace the others.
                largest = sorted(rest, key=lambda node: -node.all.total)
                chosen = self._single_subnets(largest, self._standing, suits)
            if chosen is not None:
                yield {
                    **chosen,
                    **{name: spread.subnets for spread in spreads for name in spread.names},
                }

    def _spreads(self) -> Iterator[tuple[_Spread, ...]]:
        """Yield shards to spread: most of them, over most subnets, first."""
        single: list[_Spread] = []
        for spread in self._candidate_spreads():
            self._left -= 1
            if self._left <= 0:
                return
            if _is_held(self._rooms, spread, self._standing):
                single.append(spread)
                yield (spread,)
        for one, other in itertools.combinations(single, 2):
            self._left -= 1
            if self._left <= 0:
                return
            if not one.names & other.names and not {*one.subnets} & {*other.subnets}:
                yield one, other

    def _candidate_spreads(self) -> Iterator[_Spread]:
        alike: dict[tuple[tuple[str, ...], int, Draw], list[Nodes]] = {}
        for node in self._nodes:
            if node.spreads:
                alike.setdefault((node.subnets, node.count, node.each), []).append(node)
        counts = itertools.product(*(range(len(shards), -1, -1) for shards in alike.values()))
        for taken in sorted(counts, key=sum, reverse=True):
            shards = [
                shard
                for count, same in zip(taken, alike.values(), strict=True)
                for shard in same[:count]
            ]
            if not shards:
                continue
            common = [
                room.id for room in self._rooms if all(room.id in shard.subnets for shard in shards)
            ]
            for size in range(len(common), 1, -1):
                for subnets in itertools.combinations(common, size):
                    yield _Spread(
                        names=frozenset(shard.name for shard in shards),
                        subnets=subnets,
                        count=sum(shard.count for shard in shards),
                        each=Draw(
                            addresses=max(shard.each.addresses for shard in shards),
                            prefixes=max(shard.each.prefixes for shard in shards),
                        ),
                    )

    def _single_subnets(
        self,
        nodes: Sequence[Nodes],
        loads: Mapping[str, Draw],
        suits: Callable[[Mapping[str, Draw]], bool] = lambda _: True,
    ) -> Assigned | None:
        """Return the first subnet of each of ``nodes`` that leaves room for the others.

        Args:
            nodes: Shards of a single subnet each.
            loads: Other loads of the subnets.
            suits: Whether the loads of all leave room for the spread shards.
        """
        rooms = {room.id: room for room in self._rooms}
        failed: set[tuple[int, tuple[Draw, ...]]] = set()
        last = max(self._left - _STEPS_OF_A_WAY, 0)

        def rest(at: int, loads: Mapping[str, Draw]) -> dict[str, tuple[str, ...]] | None:
            state = (at, tuple(loads[id] for id in rooms))
            if state in failed or self._left <= last:
                return None
            self._left -= 1
            if at == len(nodes):
                if suits(loads):
                    return {}
                failed.add(state)
                return None
            for id in nodes[at].subnets:
                after = loads[id] + nodes[at].all
                if not rooms[id].holds(after):
                    continue
                chosen = rest(at + 1, {**loads, id: after})
                if chosen is not None:
                    return {nodes[at].name: (id,), **chosen}
            failed.add(state)
            return None

        return rest(0, loads)


def _is_held(rooms: Sequence[Room], spread: _Spread, loads: Mapping[str, Draw]) -> bool:
    """Return whether ``spread`` fits into its subnets beside ``loads``, in any order."""
    own = [room for room in rooms if room.id in spread.subnets]
    size = spread.each.total
    # Room of a subnet for the nodes once all others are there.
    left = {room.id: room.addresses - loads[room.id].total for room in own}
    if sum(max(free, 0) // size for free in left.values()) < spread.count:
        return False
    for room in own:
        others = [left[other.id] for other in own if other.id != room.id]
        most = _most_nodes(room.addresses, others, size=size, count=spread.count)
        if not room.holds(loads[room.id] + spread.each * most):
            return False
    return True


def _most_nodes(free: int, others: Sequence[int], *, size: int, count: int) -> int:
    """Return the most nodes that come into a subnet before its other loads.

    A node comes where no other subnet has more free addresses.

    Args:
        free: Free addresses of the subnet.
        others: Those of the other subnets, less their other loads.
        size: Addresses of a node.
        count: All nodes.
    """
    low, high = 0, count
    while low < high:
        nodes = (low + high + 1) // 2
        level = free - (nodes - 1) * size
        elsewhere = sum(max(0, -((level - other) // size)) for other in others)
        if nodes + elsewhere <= count:
            low = nodes
        else:
            high = nodes - 1
    return low
