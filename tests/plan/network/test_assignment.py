"""Nodes in subnets of other people: what is planned fits, and what fits is planned."""

from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.oracles.addresses import BLOCK, blocks_hold, every_assignment, survives
from ultrascale.plan.network.assignment import Draw, Nodes, Room, assign

IDS = ("s1", "s2", "s3")


@st.composite
def fleets(draw: st.DrawFn) -> tuple[list[Room], list[Nodes], Mapping[str, Draw]]:
    """Draw up to three subnets, three shards that use some of them, and what else stands there."""
    ids = IDS[: draw(st.integers(1, 3))]
    prefixes = draw(st.booleans())
    rooms: list[Room] = []
    for id in ids:
        blocks = draw(st.integers(0, 6)) if prefixes else 0
        rooms.append(Room(id=id, addresses=blocks * 16 + draw(st.integers(0, 12)), prefixes=blocks))
    # NodePools of a zone take equally much, groups what they like.
    alike = Draw(addresses=1, prefixes=1) if prefixes else Draw(addresses=draw(st.integers(1, 4)))
    nodes: list[Nodes] = []
    for number in range(draw(st.integers(1, 3))):
        spreads = draw(st.booleans())
        own = Draw(addresses=draw(st.integers(1, 5)), prefixes=int(prefixes))
        nodes.append(
            Nodes(
                name=f"pool{number}",
                subnets=tuple(sorted(draw(st.sets(st.sampled_from(ids), min_size=1)))),
                count=draw(st.integers(1, 3)),
                each=alike if spreads else own,
                spreads=spreads,
            )
        )
    standing = {id: Draw(addresses=draw(st.integers(0, 2))) for id in ids}
    return rooms, nodes, standing


@settings(deadline=None, max_examples=80)
@given(fleet=fleets())
def test_what_is_planned_fits_and_what_fits_is_planned(
    fleet: tuple[list[Room], list[Nodes], Mapping[str, Draw]],
) -> None:
    rooms, nodes, standing = fleet

    found = assign(rooms, nodes, standing)

    if found is not None:
        assert survives(rooms, nodes, standing, found)
    else:
        assert not any(survives(rooms, nodes, standing, each) for each in every_assignment(nodes))


@settings(deadline=None, max_examples=80)
@given(
    blocks=st.lists(st.sampled_from([0, 1, 2, 15, BLOCK]), min_size=1, max_size=4).map(tuple),
    addresses=st.integers(0, 4),
    prefixes=st.integers(0, 3),
)
def test_a_subnet_holds_what_ec2_can_give_in_no_way_too_little(
    blocks: tuple[int, ...], addresses: int, prefixes: int
) -> None:
    room = Room(id="s1", addresses=sum(blocks), prefixes=blocks.count(BLOCK))
    draw = Draw(addresses=addresses, prefixes=prefixes)

    assert room.holds(draw) == blocks_hold(blocks, draw)
