"""Search for offers: valid requests, the order of results and the rate of requests."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.folders import ROOT
from tests.support.offers import AT, STARTS, Clock, make_offer
from tests.support.pools import HYPERPOD_POOL, SYSTEM_POOL, make_cluster, pool_document
from ultrascale.catalog import capacity_blocks
from ultrascale.errors import ConfigError
from ultrascale.offers.blocks import Throttle
from ultrascale.offers.find import region_gates
from ultrascale.offers.model import Part, nodes_at_once, ranked, sizes
from ultrascale.offers.request import Wish, remarks, request_of, requests_of, reservable, warnings
from ultrascale.plan import load, plan_cluster

GOOD: dict[str, Any] = {
    "regions": ("us-west-2",),
    "instance_types": ("p5.48xlarge",),
    "count": 16,
    "days": 7,
}
BLOCK = {
    "option": "capacity-block",
    "reservation": "cr-0f1e2d3c4b5a69788",
    "starts": "2026-12-01T11:30:00Z",
    "ends": "2026-12-08T11:30:00Z",
}


def make_wish(**changes: Any) -> Wish:
    return Wish(**{**GOOD, **changes})


def refused(**changes: Any) -> str:
    with pytest.raises(ConfigError) as refusal:
        request_of(make_wish(**changes), AT)
    return str(refusal.value)


# --- what options say ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"regions": ()}, "--region: missing; write it as in --region us-west-2"),
        ({"regions": ("us-west-9",)}, "--region: unknown Region 'us-west-9'; did you mean"),
        ({"regions": ("us-west-2",) * 11}, "--region: 11 Regions; AWS scores 10 at most"),
        (
            {"instance_types": ("p5.48xlrge",)},
            "--type: unknown instance type 'p5.48xlrge'; did you mean p5.48xlarge?",
        ),
        ({"instance_types": ("ml.p5.48xlarge",)}, "write p5.48xlarge"),
        ({"count": 0}, "--count: no nodes, got 0"),
        ({"count": 257}, "--count: an account may have 256 instances"),
        ({"days": None}, "--days: missing"),
        ({"days": 15}, "got 15; write 14 or 21, or add --option training-plan"),
        ({"days": 183}, "--days: Capacity Blocks and training plans last 1 to 182 days, got 183"),
        ({"days": 0}, "--days: Capacity Blocks and training plans last 1 to 182 days, got 0"),
        ({"starts": "2027-02-01"}, "--starts: nothing is sold more than 8 weeks ahead"),
        ({"starts": "2026-11-20"}, "--starts: over, got 2026-11-20T00:00Z"),
        ({"starts": "2026-11-21"}, "--starts: over, got 2026-11-21T00:00Z; write --starts 2026-11"),
        ({"until": "2026-11-20"}, "over, got 2026-11-20T00:00Z; write --until 2026-11-21T10:00Z"),
        (
            {"regions": ("us-west-2", "us-gov-west-1")},
            "--region: no credentials work in both us-west-2 and us-gov-west-1; ask for each by",
        ),
        ({"starts": "2026-12-01T08:00"}, "--starts: not a time in UTC"),
        ({"starts": "soon"}, "--starts: not a time in UTC, got 'soon'"),
        ({"until": "2027-02-01"}, "--until: nothing is sold more than 8 weeks ahead"),
        ({"starts": "2026-12-02", "until": "2026-12-01"}, "--until: before the earliest start"),
        ({"zones": ("us-east-1a",)}, "--zone: not a zone of us-west-2, got 'us-east-1a'"),
        ({"options": ("block",)}, "--option: unknown 'block'; write capacity-block"),
    ],
)
def test_a_wrong_option_is_refused_before_aws_is_asked(changes: dict[str, Any], told: str) -> None:
    assert told in refused(**changes)


def test_all_mistakes_are_told_at_once() -> None:
    told = refused(regions=("us-west-9",), instance_types=("p5",), count=-1, days=15, starts="x")
    assert [line.split(":")[0] for line in told.splitlines()] == [
        "--starts",
        "--region",
        "--type",
        "--days",
        "--count",
    ]


@given(days=st.integers(-1, 200))
def test_a_block_is_asked_for_in_exactly_the_lengths_that_are_sold(days: int) -> None:
    wish = make_wish(days=days, options=("capacity-block",))
    if days in capacity_blocks.DAYS:
        assert request_of(wish, AT).days == days
    else:
        with pytest.raises(ConfigError):
            request_of(wish, AT)


@pytest.mark.parametrize(
    "changes",
    [
        {"days": 15, "options": ("training-plan",)},
        {"days": None, "count": 1000, "options": ("spot",)},
    ],
    ids=["plans are sold by the day", "spot has no length"],
)
def test_what_only_blocks_demand_is_demanded_of_blocks_only(changes: dict[str, Any]) -> None:
    request = request_of(make_wish(**changes), AT)
    assert request.options == changes["options"]


def test_a_region_that_lists_no_such_type_is_warned_of_and_asked() -> None:
    """The list ages; a refusal would hide capacity that is there."""
    request = request_of(make_wish(instance_types=("p5e.48xlarge",)), AT)
    assert [line.split(";")[0] for line in warnings(request)] == [
        "p5e.48xlarge is not listed On-Demand in us-west-2"
    ]


# --- what the pools of a file say ---------------------------------------------------------------


def test_a_pool_asks_for_its_nodes_its_window_and_its_zone() -> None:
    plan = plan_cluster(make_cluster(pools=[SYSTEM_POOL, pool_document(purchase=BLOCK)]))
    (request,) = requests_of(plan, None, Wish(), AT)
    assert (request.pool, request.instance_types, request.count) == ("train", ("p5.48xlarge",), 16)
    assert (request.days, request.starts, request.until) == (7, STARTS, None)
    assert request.zones == ("us-west-2b",)
    assert request.options == ("capacity-block", "spot")


def test_a_hyperpod_pool_asks_for_training_plans_only() -> None:
    """HyperPod runs on nothing that EC2 sells."""
    plan = plan_cluster(make_cluster(pools=[SYSTEM_POOL, HYPERPOD_POOL]))
    (request,) = requests_of(plan, None, Wish(), AT)
    assert request.options == ("training-plan",)
    assert list(warnings(request)) == []


def test_an_option_that_is_for_none_of_the_pools_is_refused_and_for_one_of_them_said() -> None:
    """Nothing is asked for, and "nothing is on offer" would be untrue."""
    plans = Wish(days=7, options=("training-plan",))
    train = plan_cluster(make_cluster(pools=[SYSTEM_POOL, pool_document()]))
    with_hyperpod = load(Path(ROOT / "clusters" / "hybrid-hyperpod.yaml"))
    with pytest.raises(ConfigError, match="--option: none of these is for train; HyperPod pools"):
        requests_of(train, None, plans, AT)
    told = remarks(requests_of(with_hyperpod, None, plans, AT))
    assert any(line.startswith("eks-spot: nothing is asked for: HyperPod pools") for line in told)


def test_options_replace_what_the_file_says() -> None:
    plan = plan_cluster(make_cluster(pools=[SYSTEM_POOL, pool_document(purchase=BLOCK)]))
    wish = Wish(regions=("us-east-2",), count=4, days=14, starts="2026-12-05")
    (request,) = requests_of(plan, "train", wish, AT)
    assert (request.regions, request.count, request.days) == (("us-east-2",), 4, 14)
    assert request.starts == STARTS + timedelta(days=3, hours=12, minutes=30)
    assert request.zones == ()


def test_a_pool_without_a_window_asks_for_spot_and_says_what_it_needs_for_more() -> None:
    plan = plan_cluster(make_cluster(pools=[SYSTEM_POOL, pool_document()]))
    (request,) = requests_of(plan, None, Wish(), AT)
    assert reservable(request, "p5.48xlarge") == frozenset()
    assert remarks([request])[0] == "train: Capacity Blocks are not asked for: add --days"


def test_a_fleet_beyond_all_blocks_is_said_and_not_asked_for() -> None:
    plan = plan_cluster(make_cluster(pools=[SYSTEM_POOL, pool_document(nodes={"max": 300})]))
    (request,) = requests_of(plan, None, Wish(days=7), AT)
    assert reservable(request, "p5.48xlarge") == frozenset()
    assert "train: 300 nodes are more than the 256" in remarks([request])[0]


@pytest.mark.parametrize(
    ("pool", "at", "told"),
    [
        ("trian", AT, "trian: no such pool; the file has system, train"),
        (None, AT + timedelta(days=30), "train: --starts or purchase.starts: over"),
        (None, AT - timedelta(days=60), "train: --starts or purchase.starts: nothing is sold"),
    ],
)
def test_a_pool_that_cannot_be_asked_for_is_refused(pool: str | None, at: Any, told: str) -> None:
    plan = plan_cluster(make_cluster(pools=[SYSTEM_POOL, pool_document(purchase=BLOCK)]))
    with pytest.raises(ConfigError) as refusal:
        requests_of(plan, pool, Wish(), at)
    assert told in str(refusal.value)


# --- pieces -------------------------------------------------------------------------------------


@given(count=st.integers(1, 256))
def test_the_pieces_are_the_whole_and_none_is_larger_than_a_block(count: int) -> None:
    found = sizes("p5.48xlarge", count)
    assert sum(size.count * size.pieces for size in found) == count
    assert all(0 < size.count <= capacity_blocks.MOST_INSTANCES for size in found)


def test_parts_at_the_same_time_are_added_and_parts_one_after_the_other_are_not() -> None:
    def part(day: int, count: int) -> Part:
        starts = STARTS + timedelta(days=day)
        ends = starts + timedelta(days=1)
        return Part(
            zone=None,
            zone_id=None,
            instance_type="p5.48xlarge",
            count=count,
            starts=starts,
            usable_until=ends,
            ends=ends,
        )

    assert nodes_at_once([part(0, 8), part(0, 4), part(1, 10)]) == 12


# --- order --------------------------------------------------------------------------------------

LATER = STARTS + timedelta(days=1)


@pytest.mark.parametrize(
    ("by", "order"),
    [
        ("price", ["cheap", "score 9", "score 3", "early", "late", "dear", "unknown"]),
        ("start", ["score 9", "score 3", "cheap", "early", "dear", "unknown", "late"]),
    ],
)
def test_the_cheapest_or_the_earliest_is_first_and_of_equal_ones_the_other(
    by: Any, order: list[str]
) -> None:
    spot: dict[str, Any] = {"option": "spot", "starts": None, "hourly": "20"}
    offers = [
        make_offer(id="late", hourly="30", starts=LATER),
        make_offer(id="unknown", hourly=None),
        make_offer(id="dear", hourly="40"),
        make_offer(id="early", hourly="30"),
        make_offer(id="cheap", hourly="1"),
        *(make_offer(id=f"score {score}", score=score, **spot) for score in (3, 9)),
    ]

    assert [offer.id for offer in ranked(offers, by)] == order


# --- rate ---------------------------------------------------------------------------------------


def test_requests_go_at_once_until_the_bucket_is_empty_and_then_at_its_rate() -> None:
    clock = Clock()
    throttle = Throttle(at_once=10, per_second=0.15, clock=lambda: clock.now, sleep=clock.sleep)
    for _ in range(12):
        throttle.take()
    assert clock.slept == [pytest.approx(1 / 0.15)] * 2


def test_a_bucket_fills_while_nobody_asks_and_never_beyond_its_size() -> None:
    clock = Clock()
    throttle = Throttle(at_once=2, per_second=1, clock=lambda: clock.now, sleep=clock.sleep)
    throttle.take()
    clock.now += 3600
    for _ in range(3):
        throttle.take()
    assert clock.slept == [1]


def test_each_region_has_its_own_bucket() -> None:
    gates = region_gates()
    assert gates("us-west-2") is gates("us-west-2")
    assert gates("us-west-2") is not gates("us-east-2")
    assert (gates("us-west-2").at_once, gates("us-west-2").per_second) == (10, 0.15)
