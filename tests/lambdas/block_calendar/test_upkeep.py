"""Upkeep of node groups by the block calendar, and cases that it leaves to people."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

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
    OVER,
    RECLAIMED,
    SIZE,
    STARTS,
    ULTRASERVER,
    WINDOW,
    ApiError,
    Pool,
    node_group,
    run,
)
from ultrascale.lambdas.block_calendar.decision import ReservationLostError, UnusedNodesError
from ultrascale.lambdas.block_calendar.entry import Deploy


class TestNodeGroup:
    @pytest.mark.parametrize("minutes", [0, 1, 59])
    def test_in_the_first_hour_one_that_the_schedule_missed_is_filled(self, minutes: int) -> None:
        group = node_group(0)

        run(group, STARTS + minutes * MINUTE)

        assert group.nodes == SIZE

    @pytest.mark.parametrize("minutes", [60, 61, 24 * 60])
    def test_a_0_that_is_set_for_an_upgrade_later_stays_and_raises_as_its_nodes_are_paid(
        self, minutes: int
    ) -> None:
        group = node_group(0)

        with pytest.raises(UnusedNodesError, match="16 paid nodes stand unused"):
            run(group, STARTS + minutes * MINUTE)

        assert group.nodes == 0

    @pytest.mark.parametrize("state", NOT_YET)
    def test_a_0_is_no_error_while_there_is_nothing_to_use(self, state: str) -> None:
        group = node_group(0)

        run(group, INSIDE, state)

        assert group.nodes == 0

    @pytest.mark.parametrize("state", NOT_YET)
    def test_it_does_not_wait_as_auto_scaling_tries_again_by_itself(self, state: str) -> None:
        group = node_group(0)

        run(group, STARTS, state)

        assert group.nodes == SIZE

    @pytest.mark.parametrize("nodes", [0, SIZE])
    @pytest.mark.parametrize("state", LOST)
    def test_a_reservation_that_is_lost_is_an_error_each_minute(
        self, state: str, nodes: int
    ) -> None:
        with pytest.raises(ReservationLostError, match=state):
            run(node_group(nodes), INSIDE, state)

    def test_what_an_api_failed_to_do_at_the_start_the_next_minute_does(self) -> None:
        group = node_group(0, down="set_size")
        with pytest.raises(ApiError):
            run(group, STARTS)

        group.down = None
        run(group, STARTS + MINUTE)

        assert group.nodes == SIZE

    @pytest.mark.parametrize("moment", DRAINING + RECLAIMED)
    def test_one_that_eks_empties_is_left_to_eks(self, moment: str) -> None:
        group = node_group(SIZE, emptied_by_eks=True)

        run(group, MOMENTS[moment])

        assert group.calls == ["reservation"]

    @pytest.mark.parametrize("before_end", [70, 60, 40, 1])
    def test_of_ultraservers_none_is_left_to_eks_which_comes_too_late(
        self, before_end: int
    ) -> None:
        group = node_group(SIZE, emptied_by_eks=True)

        run(group, ENDS - before_end * MINUTE, window=ULTRASERVER)

        assert group.nodes == 0

    @pytest.mark.parametrize("moment", DRAINING + RECLAIMED)
    def test_one_that_eks_does_not_empty_is_emptied(self, moment: str) -> None:
        group = node_group(SIZE)

        run(group, MOMENTS[moment])

        assert group.nodes == 0

    @pytest.mark.parametrize("emptied_by_eks", [True, False])
    @pytest.mark.parametrize("moment", OVER)
    def test_after_the_end_what_the_yearly_schedule_asked_for_is_taken_back(
        self, moment: str, emptied_by_eks: bool
    ) -> None:
        group = node_group(SIZE, emptied_by_eks=emptied_by_eks)

        run(group, MOMENTS[moment])

        assert group.nodes == 0


def node_pool(nodes: int) -> Pool:
    return Pool(nodes=nodes)


Make = Callable[[int], Pool]


@pytest.mark.parametrize("make", [node_pool, node_group], ids=["NodePool", "node group"])
class TestDeploy:
    @pytest.mark.parametrize("now", [STARTS, STARTS + HOUR, INSIDE, WINDOW.usable_until - MINUTE])
    @pytest.mark.parametrize("deploy", [FIRST_DEPLOY, Deploy(size_before=SIZE)], ids=str)
    def test_inside_the_window_it_fills_an_empty_pool(
        self, make: Make, deploy: Deploy, now: datetime
    ) -> None:
        pool = make(0)

        run(pool, now, deploy=deploy)

        assert pool.nodes == SIZE

    @pytest.mark.parametrize("before", [SIZE - 8, SIZE + 8])
    def test_a_count_that_the_file_changed_replaces_the_calendars_own(
        self, make: Make, before: int
    ) -> None:
        pool = make(before)

        run(pool, INSIDE, deploy=Deploy(size_before=before))

        assert pool.nodes == SIZE

    @pytest.mark.parametrize("nodes", [SIZE - 8, SIZE + 8])
    @pytest.mark.parametrize(
        "deploy", [FIRST_DEPLOY, Deploy(size_before=SIZE), Deploy(size_before=4)], ids=str
    )
    def test_a_count_that_somebody_set_stays(self, make: Make, deploy: Deploy, nodes: int) -> None:
        pool = make(nodes)

        run(pool, INSIDE, deploy=deploy)

        assert pool.nodes == nodes

    def test_the_schedule_does_not_change_a_count(self, make: Make) -> None:
        pool = make(SIZE - 8)

        run(pool, STARTS + MINUTE)

        assert pool.nodes == SIZE - 8

    def test_before_the_start_it_asks_for_nothing(self, make: Make) -> None:
        pool = make(0)

        run(pool, STARTS - timedelta(days=1), deploy=FIRST_DEPLOY)

        assert pool.calls == []


def test_a_deploy_waits_for_the_reservation_of_a_node_pool() -> None:
    pool = node_pool(0)

    run(pool, INSIDE, "pending", deploy=FIRST_DEPLOY)
    assert pool.nodes == 0

    run(pool, INSIDE + MINUTE)
    assert pool.nodes == SIZE
