"""The oracle of addresses agrees with cases that a person counts on paper."""

import pytest

from tests.support.oracles.addresses import blocks_hold, every_assignment, survives
from ultrascale.plan.network.assignment import Draw, Nodes, Room


@pytest.mark.parametrize(
    ("blocks", "draw", "holds"),
    [
        # A single address may lie in the one whole block.
        ((16,), Draw(addresses=1, prefixes=1), False),
        ((16, 3), Draw(addresses=3, prefixes=1), False),
        ((16, 16), Draw(addresses=1, prefixes=1), True),
        ((3,), Draw(addresses=3), True),
        ((3,), Draw(addresses=4), False),
        ((15,), Draw(prefixes=1), False),
    ],
)
def test_a_subnet_holds_what_it_gives_in_any_order(
    blocks: tuple[int, ...], draw: Draw, holds: bool
) -> None:
    assert blocks_hold(blocks, draw) == holds


def shard(count: int, *, spreads: bool = True) -> Nodes:
    node = Draw(addresses=1)
    return Nodes(name="a", subnets=("s", "t"), count=count, each=node, spreads=spreads)


def test_nodes_that_spread_may_have_one_subnet_or_both() -> None:
    assert [*every_assignment([shard(1)])] == [{"a": ("s",)}, {"a": ("t",)}, {"a": ("s", "t")}]
    assert len([*every_assignment([shard(1, spreads=False)])]) == 2


@pytest.mark.parametrize(("count", "alone"), [(4, True), (5, False)])
def test_a_shard_survives_as_long_as_each_node_finds_an_address(count: int, alone: bool) -> None:
    rooms = [Room(id="s", addresses=4, prefixes=0), Room(id="t", addresses=4, prefixes=0)]

    assert survives(rooms, [shard(count)], {}, {"a": ("s",)}) == alone
    assert survives(rooms, [shard(count)], {}, {"a": ("s", "t")})
