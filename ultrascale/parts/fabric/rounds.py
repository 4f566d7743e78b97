"""Search for bad nodes by measurements between pairs, in a bounded number of rounds.

A measurement between two nodes fails if one of them is bad. The first round pairs neighbours in the
network, so that one bad node spoils one pair. Each later round pairs suspects with nodes that have
passed. A node counts as bad only after it failed beside a node that passed with another. Up to a
third of the nodes may be bad: then every node is judged within `most_rounds`. Nodes that are still
suspect after the last round are reported as undecided, and not cordoned.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

Pair = tuple[str, str]


def most_rounds(nodes: int) -> int:
    """Return the most rounds for a number of nodes: ceil(log2 n) + 2."""
    return math.ceil(math.log2(nodes)) + 2 if nodes > 1 else 0


@dataclass
class Search:
    """The state of a search."""

    nodes: Sequence[str]  # Nodes; neighbours in the network stand beside each other
    good: set[str] = field(default_factory=set[str])  # Nodes that passed
    bad: set[str] = field(default_factory=set[str])  # Nodes that failed beside a good one
    # Pairs of distant good nodes whose measurement failed: the fault is in the network between
    # them, not in a node
    paths: list[Pair] = field(default_factory=list[Pair])
    lost: set[str] = field(default_factory=set[str])  # Nodes that cannot be measured any more
    rounds: int = 0  # Rounds that were measured
    _crossed: bool = False

    @property
    def suspects(self) -> list[str]:
        """Nodes that are neither good nor bad nor lost, in the order of the network."""
        judged = self.good | self.bad | self.lost
        return [node for node in self.nodes if node not in judged]

    def next_round(self) -> list[Pair]:
        """Return the pairs to measure at the same time; empty when the search is over."""
        if self.rounds >= most_rounds(len(self.nodes)):
            return []
        suspects = self.suspects
        partners = [node for node in self.nodes if node in self.good and node not in self.lost]
        if not suspects:
            return self._pairs_across(partners)
        if not partners:
            # Neighbours first. While all pairs fail, each node gets another partner.
            return _round_of_pairs(suspects, self.rounds)
        beside = self._pairs_with_good(suspects, partners)
        busy = {node for pair in beside for node in pair}
        idle = [node for node in partners if node not in busy]
        return [*beside, *self._pairs_across(idle)]

    def lose(self, nodes: Iterable[str]) -> None:
        """Exclude nodes from all later rounds; they are not judged any more."""
        self.lost |= {node for node in nodes if node not in self.bad}

    def record(self, passed: Mapping[Pair, bool]) -> None:
        """Record the results of a round's pairs."""
        good_before = set(self.good)
        for pair, well in passed.items():
            if well:
                self.good |= set(pair)
            elif good_before.issuperset(pair):
                self.paths.append(pair)
            else:
                self.bad |= {
                    node
                    for node, other in (pair, pair[::-1])
                    if other in good_before and node not in good_before
                }
        # A node that passed beside a node that later proves bad has passed nevertheless.
        self.bad -= self.good
        self._crossed |= any(good_before.issuperset(pair) for pair in passed)
        self.rounds += 1

    def _pairs_with_good(self, suspects: Sequence[str], partners: Sequence[str]) -> list[Pair]:
        """Pair each suspect with the good node nearest to it that is still free."""
        place = {node: number for number, node in enumerate(self.nodes)}
        free = [place[node] for node in partners]
        pairs: list[Pair] = []
        for suspect in suspects:
            if not free:
                break
            nearest = min(free, key=lambda each: abs(each - place[suspect]))
            free.remove(nearest)
            pairs.append((suspect, self.nodes[nearest]))
        return pairs

    def _pairs_across(self, idle: Sequence[str]) -> list[Pair]:
        """Pair good nodes of the two halves of the network once, through its upper layers."""
        half = len(idle) // 2
        if self._crossed or len(self.nodes) < _LEAST_TO_CROSS or half == 0:
            return []
        return [*zip(idle[:half], idle[half:], strict=False)]


# Of three nodes two are neighbours twice.
_LEAST_TO_CROSS = 4


def _round_of_pairs(nodes: Sequence[str], round_number: int) -> list[Pair]:
    """Return the pairs of a round in which each node meets a new partner.

    Round 0 pairs neighbours. Once all nodes have met, there are no more pairs.

    Source: https://en.wikipedia.org/wiki/Round-robin_tournament#Circle_method
    """
    even = [*nodes, *([""] if len(nodes) % 2 else [])]
    # The circle method pairs first and last, second and last but one, and so on.
    fixed, *turning = [*even[::2], *reversed(even[1::2])]
    if round_number >= len(turning):
        return []
    turned = [fixed, *turning[round_number:], *turning[:round_number]]
    half = len(turned) // 2
    pairs = zip(turned[:half], reversed(turned[half:]), strict=True)
    return [(one, other) for one, other in pairs if one and other]


def in_order(groups: Mapping[str, str], nodes: Iterable[str]) -> list[str]:
    """Return ``nodes`` in an order in which the nodes of a network group stand together.

    Args:
        groups: Path of groups of each node, from the highest layer to the lowest; nodes without a
            path come last.
        nodes: Nodes.
    """
    return sorted(nodes, key=lambda node: (node not in groups, groups.get(node, ""), node))
