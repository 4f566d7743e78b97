"""Sizes that the block calendar gives to NodePools and node groups, in each part of their window.

Cases that it leaves to people, as nodes are paid for meanwhile, raise for the alarm.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support.calendar_targets import (
    DRAINING,
    ENDS,
    FIRST_DEPLOY,
    HOUR,
    INSIDE,
    LOST,
    MINUTE,
    MOMENTS,
    NOT_YET,
    OPEN,
    OVER,
    RECLAIMED,
    SIZE,
    STARTS,
    ULTRASERVER,
    WINDOW,
    ApiError,
    Pool,
    entry,
    node_group,
    run,
)
from tests.support.cases import for_each, rows
from ultrascale.lambdas.block_calendar.decision import (
    ReservationLostError,
    UnusedNodesError,
    decide,
)
from ultrascale.lambdas.block_calendar.entry import Deploy, keep
from ultrascale.lambdas.block_calendar.reservation import Block


def node_pool(nodes: int) -> Pool:
    return Pool(nodes=nodes)


Make = Callable[[int], Pool]
# EKS empties it by a scheduled action of its own.
eks_group = partial(node_group, emptied_by_eks=True)
ENDING = DRAINING + RECLAIMED + OVER
IN = {f"{minutes} minutes in": STARTS + minutes * MINUTE for minutes in (1, 59)}
TIMES = MOMENTS | IN


class Row(NamedTuple):
    target: Make
    before: int
    moments: Sequence[str]
    states: Sequence[str]
    after: int
    calls: Sequence[str] | None = None  # Exactly these; None asks for no more than the size


SIZES: Mapping[str, Row] = {
    "before the start nothing is asked for": Row(
        node_pool, 0, ("long before", "just before"), ("active",), 0, ["reservation"]
    ),
    "a NodePool is filled": Row(node_pool, 0, OPEN, ("active",), SIZE),
    "a NodePool waits for its reservation": Row(node_pool, 0, ("inside",), NOT_YET, 0),
    **{
        f"{nodes} nodes that somebody set stay": Row(
            node_pool, nodes, ("inside",), ("active",), nodes, ["reservation", "size"]
        )
        for nodes in (1, SIZE - 1, SIZE, SIZE + 4)
    },
    "jobs are warned before the nodes go": Row(
        node_pool, SIZE, DRAINING, ("active",), 0, ["size", "drain", "set_size", "reservation"]
    ),
    "at the end no state matters": Row(node_pool, SIZE, ENDING, ("active", "expired"), 0),
    "at the end an empty NodePool stays so": Row(node_pool, 0, ENDING, ("active",), 0),
    "a node group that the start missed is filled": Row(
        node_group, 0, ("at the start", *IN), ("active",), SIZE
    ),
    "Auto Scaling tries again by itself": Row(node_group, 0, ("at the start",), NOT_YET, SIZE),
    "a 0 is no error while there is nothing to use": Row(node_group, 0, ("inside",), NOT_YET, 0),
    "what EKS empties is left to EKS": Row(
        eks_group, SIZE, DRAINING + RECLAIMED, ("active",), SIZE, ["reservation"]
    ),
    "what the yearly schedule asked for is taken back": Row(eks_group, SIZE, OVER, ("active",), 0),
    "what EKS does not empty is emptied": Row(node_group, SIZE, ENDING, ("active",), 0),
}


def sizes() -> Iterator[tuple[str, Row, str, str]]:
    for name, row in SIZES.items():
        for moment in row.moments:
            for state in row.states:
                yield f"{name}: {moment}, {state}", row, moment, state


@for_each({name: (row, moment, state) for name, row, moment, state in sizes()})
def test_each_part_of_the_window_has_its_size(row: Row, moment: str, state: str) -> None:
    target = row.target(row.before)

    run(target, TIMES[moment], state)

    assert target.nodes == row.after
    assert row.calls is None or sorted(target.calls) == sorted(row.calls)
    if row.before == row.after:
        assert not {"set_size", "drain"} & {*target.calls}
    # A second run changes nothing.
    target.calls.clear()
    run(target, TIMES[moment], state)
    assert target.nodes == row.after
    assert not {"set_size", "drain"} & {*target.calls}


def test_it_says_what_it_does_and_when_ec2_takes_the_nodes() -> None:
    opened, ended = Pool(nodes=0), Pool(nodes=SIZE)
    report = run(opened, INSIDE)
    run(ended, WINDOW.usable_until)
    assert report == "pool train set from 0 to 16 nodes: the reservation is active"
    assert "pending" in run(Pool(nodes=0), INSIDE, "pending")
    assert ended.calls == ["size", "drain", "set_size", "reservation"]
    assert "EC2 terminates them from 2026-12-08 11:00 UTC on" in ended.message


@pytest.mark.parametrize("state", LOST)
@pytest.mark.parametrize("target", [node_pool(0), node_group(0), node_group(SIZE)], ids=str)
def test_a_reservation_that_is_lost_is_an_error_each_minute(target: Pool, state: str) -> None:
    before = target.nodes
    with pytest.raises(ReservationLostError, match=state):
        run(target, INSIDE, state)
    assert target.nodes == before


@pytest.mark.parametrize("minutes", [60, 61, 24 * 60])
def test_a_0_of_a_group_that_is_set_for_an_upgrade_stays_and_raises_as_its_nodes_are_paid(
    minutes: int,
) -> None:
    group = node_group(0)
    with pytest.raises(UnusedNodesError, match="16 paid nodes stand unused"):
        run(group, STARTS + minutes * MINUTE)
    assert group.nodes == 0


@pytest.mark.parametrize("moment", RECLAIMED + OVER)
def test_once_ec2_takes_the_nodes_no_warning_holds_the_scale_in_up(moment: str) -> None:
    pool = Pool(nodes=SIZE, down="drain")
    run(pool, MOMENTS[moment])
    assert pool.nodes == 0


@rows(
    "target, now, after",
    {
        "size": (Pool(nodes=0, down="size"), INSIDE, SIZE),
        "set_size": (Pool(nodes=0, down="set_size"), INSIDE, SIZE),
        "size at the end": (Pool(nodes=SIZE, down="size"), WINDOW.usable_until, 0),
        "drain": (Pool(nodes=SIZE, down="drain"), WINDOW.usable_until, 0),
        "set_size at the end": (Pool(nodes=SIZE, down="set_size"), WINDOW.usable_until, 0),
        "set_size of a group": (node_group(0, down="set_size"), STARTS, SIZE),
    },
)
def test_what_an_api_failed_to_do_the_next_run_completes(
    target: Pool, now: datetime, after: int
) -> None:
    before = target.nodes
    with pytest.raises(ApiError):
        run(target, now)
    assert target.nodes == before
    target.down = None
    run(target, now + MINUTE)
    assert target.nodes == after


def test_while_ec2_does_not_answer_nothing_is_set() -> None:
    pool = Pool(nodes=0)

    def unreachable() -> Block:
        raise ApiError

    with pytest.raises(ApiError):
        keep(entry(), now=INSIDE, deploy=None, block=unreachable, target=pool)

    assert pool.calls == []


@given(
    minutes=st.integers(min_value=-60, max_value=8 * 24 * 60),
    state=st.sampled_from(("active", *NOT_YET)),
    waits=st.booleans(),
    own=st.sets(st.integers(min_value=0, max_value=64)),
    current=st.integers(min_value=0, max_value=64),
)
def test_inside_the_window_only_its_own_sizes_change_and_nodes_go_only_at_the_end(
    minutes: int, state: str, waits: bool, own: set[int], current: int
) -> None:
    now = STARTS + minutes * MINUTE
    usable = STARTS <= now < WINDOW.usable_until
    assume(not (usable and state == "active" and current == 0 and 0 not in own))

    action = decide(
        now=now,
        window=WINDOW,
        reservation_state=state,
        waits=waits,
        size=SIZE,
        own=own,
        current=current,
    )

    filled = usable and (state == "active" or not waits) and current in own and current != SIZE
    assert (action.size == SIZE) == filled
    assert (action.size == 0) == (now >= WINDOW.usable_until and current > 0)
    assert action.drain <= (action.size == 0 and now < WINDOW.reclaimed_from)


def test_a_window_of_an_ultraserver_ends_earlier_and_eks_comes_too_late() -> None:
    pool = Pool(nodes=SIZE)
    run(pool, ULTRASERVER.usable_until, window=ULTRASERVER)
    assert pool.calls == ["size", "drain", "set_size", "reservation"]
    assert pool.nodes == 0
    for before_end in (70, 60, 40, 1):
        group = eks_group(SIZE)
        run(group, ENDS - before_end * MINUTE, window=ULTRASERVER)
        assert group.nodes == 0


OWN = Deploy(size_before=SIZE)
DEPLOYS: Mapping[str, tuple[int, Deploy | None, int]] = {
    "the first fills an empty pool": (0, FIRST_DEPLOY, SIZE),
    "a later one too": (0, OWN, SIZE),
    **{
        f"{nodes}: a count that the file changed replaces the calendar's own": (
            *(nodes, Deploy(size_before=nodes)),
            SIZE,
        )
        for nodes in (SIZE - 8, SIZE + 8)
    },
    **{
        f"{nodes}, {deploy}: a count that somebody set stays": (nodes, deploy, nodes)
        for nodes in (SIZE - 8, SIZE + 8)
        for deploy in (FIRST_DEPLOY, OWN, Deploy(size_before=4))
    },
    "the schedule does not change a count": (SIZE - 8, None, SIZE - 8),
}


@pytest.mark.parametrize("make", [node_pool, node_group], ids=["NodePool", "node group"])
@rows("before, deploy, after", DEPLOYS)
def test_a_deployment_inside_the_window_sets_no_count_but_the_files(
    make: Make, before: int, deploy: Deploy | None, after: int
) -> None:
    for now in (STARTS, STARTS + HOUR, INSIDE, WINDOW.usable_until - MINUTE):
        target = make(before)
        run(target, now, deploy=deploy)
        assert target.nodes == after, now
    early = make(before)
    run(early, MOMENTS["just before"], deploy=FIRST_DEPLOY)
    assert early.calls == []


def test_a_deploy_waits_for_the_reservation_of_a_node_pool() -> None:
    pool = node_pool(0)
    run(pool, INSIDE, "pending", deploy=FIRST_DEPLOY)
    assert pool.nodes == 0
    run(pool, INSIDE + MINUTE)
    assert pool.nodes == SIZE
