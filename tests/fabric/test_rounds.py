"""Bad nodes are found by pairs, within a bounded number of rounds."""

import math
from collections.abc import Collection

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ultrascale.parts.fabric.rounds import Pair, Search, in_order, most_rounds


def searched(nodes: list[str], bad: set[str], slow: Collection[Pair] = ()) -> Search:
    """Search nodes; pairs with one of ``bad`` fail, and those of ``slow``."""
    search = Search(nodes=nodes)
    while pairs := search.next_round():
        busy = [node for pair in pairs for node in pair]
        assert len(busy) == len(set(busy)), "a node measures one partner at a time"
        search.record({pair: bad.isdisjoint(pair) and pair not in slow for pair in pairs})
    return search


def numbered(count: int) -> list[str]:
    return [f"n{number:03}" for number in range(count)]


@st.composite
def up_to_a_third(draw: st.DrawFn) -> tuple[int, set[str]]:
    count = draw(st.integers(2, 300))
    return count, draw(st.sets(st.sampled_from(numbered(count)), max_size=count // 3))


# One node of three is bad, and no pair of the first round passes.
@example(planted=(3, {"n000"}))
@given(planted=up_to_a_third())
def test_up_to_a_third_of_bad_nodes_is_found_within_log2_n_plus_2_rounds(
    planted: tuple[int, set[str]],
) -> None:
    count, bad = planted
    nodes = numbered(count)
    search = searched(nodes, bad)
    assert search.bad == bad
    assert search.good == set(nodes) - bad
    assert search.rounds <= math.ceil(math.log2(count)) + 2
    assert not search.paths


@given(data=st.data(), count=st.integers(1, 60))
def test_no_good_node_is_ever_called_bad_however_many_are(data: st.DataObject, count: int) -> None:
    nodes = numbered(count)
    bad = data.draw(st.sets(st.sampled_from(nodes)))
    search = searched(nodes, bad)
    assert search.bad <= bad
    assert search.good <= set(nodes) - bad
    assert search.rounds <= most_rounds(count)


@pytest.mark.parametrize("count", range(2, 8))
def test_nodes_that_always_fail_get_another_partner_each_round(count: int) -> None:
    search = Search(nodes=numbered(count))
    met: list[frozenset[str]] = []
    while pairs := search.next_round():
        met += map(frozenset, pairs)
        search.record(dict.fromkeys(pairs, False))
    assert len(met) == len(set(met))


def test_a_node_that_is_lost_is_neither_measured_again_nor_judged() -> None:
    search = Search(nodes=numbered(6))
    first = search.next_round()
    search.lose(["n001"])
    search.record({pair: True for pair in first if "n001" not in pair})
    pairs = search.next_round()
    assert ("n000", "n002") in pairs
    assert all("n001" not in pair for pair in pairs)
    search.record(dict.fromkeys(pairs, True))
    assert "n001" not in search.suspects
    assert not search.bad


def test_two_nodes_cannot_tell_which_of_them_is_bad() -> None:
    search = searched(["a", "b"], {"a"})
    assert search.bad == set()
    assert search.suspects == ["a", "b"]


def test_one_node_is_not_measured() -> None:
    assert Search(nodes=["a"]).next_round() == []


def test_a_slow_path_between_groups_is_named_and_no_node_is() -> None:
    nodes = [f"n{number}" for number in range(8)]
    slow = {(one, other) for one in nodes[:4] for other in nodes[4:]}
    search = searched(nodes, set(), slow)
    assert search.bad == set()
    assert len(search.paths) == 4
    assert search.rounds == 2


def test_neighbours_in_the_network_are_measured_first() -> None:
    groups = {"a": "1/1", "b": "2/1", "c": "1/1", "d": "2/1"}
    search = Search(nodes=in_order(groups, ["a", "b", "c", "d"]))
    assert search.next_round() == [("a", "c"), ("b", "d")]


@pytest.mark.parametrize(("nodes", "rounds"), [(1, 0), (2, 3), (16, 6), (17, 7), (16_384, 16)])
def test_rounds_are_bounded_by_the_number_of_nodes(nodes: int, rounds: int) -> None:
    assert most_rounds(nodes) == rounds
