"""Limits of a pool: values just within are accepted, values beyond are refused."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.config_documents import KARPENTER, mistakes_in, sentences_in, with_pool
from tests.support.pools import (
    CAPACITY_BLOCK,
    ODCR,
    SPOT,
    SYSTEM_POOL,
    make_document,
    pool_document,
)
from ultrascale.catalog import capacity_blocks

ENDS = datetime(2026, 12, 31, 11, 30, tzinfo=UTC)
TAGGED = {key: value for key, value in CAPACITY_BLOCK.items() if key != "reservation"}
FALLBACK = SPOT | {"fallback": "on-demand"}
LONG_NAME = "a" * 50


def block(days: float, **changes: Any) -> dict[str, Any]:
    starts = ENDS - timedelta(days=days)
    window = {"starts": starts.isoformat(), "ends": ENDS.isoformat()}
    return CAPACITY_BLOCK | window | changes


def with_pools(*pools: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return make_document(
        pools=[SYSTEM_POOL, *(pool_document(**pool) for pool in pools)],
        karpenter=KARPENTER,
        **changes,
    )


def two_pools(first: dict[str, Any], second: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return a file of two Karpenter pools: ``changes`` are the second one's."""
    one = {"provisioner": "karpenter", "purchase": first}
    return with_pools(one, {**one, "name": "more", "purchase": second, **changes})


WITHIN = {
    "all 64 instances of a block": with_pool(purchase=CAPACITY_BLOCK, nodes={"max": 64}),
    "a whole UltraServer": with_pool(
        purchase=CAPACITY_BLOCK, instance_types=["trn2u.48xlarge"], nodes={"max": 4}
    ),
    "450 nodes in a managed group": with_pool(nodes={"max": 450}),
    "450 nodes in each of two shards": with_pool(nodes={"max": 450}, shards=2),
    "more in an Auto Scaling group": with_pool(provisioner="self-managed", nodes={"max": 451}),
    "30 managed groups": with_pool(shards=29, nodes={"max": 1}),
    "31 groups, one our own": with_pools(
        {"shards": 29, "nodes": {"max": 1}}, {"name": "own", "provisioner": "self-managed"}
    ),
    "all nodes of a cluster": with_pool(
        provisioner="auto-mode", role="reserved", shards=25, nodes={"static": 4000}
    ),
    "a static burst pool of a node group": with_pool(role="burst", nodes={"static": 2}),
    "a system pool of fixed size": make_document(
        pools=[SYSTEM_POOL | {"provisioner": "auto-mode", "nodes": {"static": 3}}]
    ),
    "40 tags": with_pool(tags={f"tag-{number}": "x" for number in range(40)}),
    "a name of the user's own": with_pool(tags={"Name": "trainer"}),
    "a tag like one of AWS": with_pool(tags={"awsome": "kubernetes.io/cluster/x"}),
    "a name with room for its shards": with_pools(
        {"name": LONG_NAME, "provisioner": "karpenter", "purchase": FALLBACK, "shards": 99}
    ),
    "a name like a fallback of another option": two_pools(
        SPOT, ODCR, name="train-on-demand", role="reserved"
    ),
    "one reservation for two pools of its type": two_pools(ODCR, ODCR),
    "blocks with tags of their own": two_pools(
        TAGGED | {"reservation_tags": {"block": "1", "team": "a"}},
        TAGGED | {"reservation_tags": {"block": "2", "team": "a"}},
    ),
    "blocks of one tag in two zones": two_pools(
        TAGGED | {"reservation_tags": {"team": "a"}},
        TAGGED | {"reservation_tags": {"team": "a"}},
        zones=["us-west-2a"],
    ),
    "blocks of one tag and two types": two_pools(
        TAGGED | {"reservation_tags": {"team": "a"}},
        TAGGED | {"reservation_tags": {"team": "a"}},
        instance_types=["p5en.48xlarge"],
    ),
    "a block and an ODCR of one tag": two_pools(
        TAGGED | {"reservation_tags": {"team": "a"}},
        {"option": "odcr", "reservation_tags": {"team": "a"}},
    ),
    "GB200 on Auto Scaling": with_pool(
        provisioner="self-managed",
        purchase=CAPACITY_BLOCK,
        instance_types=["p6e-gb200.36xlarge"],
        nodes={"max": 18},
    ),
    "CPU types on Auto Mode": with_pool(provisioner="auto-mode", instance_types=["c9g.8xlarge"]),
}


@pytest.mark.parametrize("document", WITHIN.values(), ids=list(WITHIN))
def test_what_is_within_the_limits_is_taken(document: dict[str, Any]) -> None:
    assert mistakes_in(document) == []


@pytest.mark.parametrize("days", sorted(capacity_blocks.DAYS))
def test_a_block_of_every_length_that_is_sold_is_taken(days: int) -> None:
    assert mistakes_in(with_pool(purchase=block(days))) == []


@given(days=st.sampled_from(sorted(capacity_blocks.DAYS)), off=st.floats(-0.9, 0.99))
def test_a_block_that_starts_at_another_hour_is_up_to_a_day_longer_or_shorter(
    days: int, off: float
) -> None:
    assert mistakes_in(with_pool(purchase=block(days + off))) == []


@given(days=st.integers(1, 400).filter(lambda days: days not in capacity_blocks.DAYS))
def test_a_block_of_any_other_length_is_refused_unless_it_was_extended(days: int) -> None:
    (line,) = sentences_in(with_pool(purchase=block(days)))
    extended = mistakes_in(with_pool(purchase=block(days, extended=True)))

    assert line.startswith(f"pools[train].purchase.ends: a window of {days} days")
    assert (extended == []) == (days <= 182) == ("extended: true" in line)


def test_an_extended_block_ends_when_blocks_end() -> None:
    purchase = block(20, extended=True) | {"ends": "2026-12-31T12:00:00Z"}

    (line,) = mistakes_in(with_pool(purchase=purchase))

    assert "block_ends_when_blocks_end" in line


@pytest.mark.parametrize(
    ("instance_type", "minutes"), [("p5.48xlarge", 50), ("p6e-gb200.36xlarge", 80)]
)
def test_a_block_that_leaves_ten_minutes_is_taken_and_one_that_leaves_nine_is_not(
    instance_type: str, minutes: int
) -> None:
    def lines(minutes: int) -> list[str]:
        purchase = block(minutes / 24 / 60)
        return sentences_in(with_pool(purchase=purchase, instance_types=[instance_type]))

    assert lines(minutes) == []
    assert f"drained {minutes - 10} minutes before the end" in lines(minutes - 1)[0]


def test_the_end_of_a_block_is_judged_in_utc() -> None:
    there = block(7, ends="2026-12-31T12:30:00+01:00")

    assert mistakes_in(with_pool(purchase=there)) == []


def test_a_training_plan_is_no_block() -> None:
    """Its window has rules of its own."""
    window = {"starts": "2026-12-01T09:00:00Z", "ends": "2026-12-17T11:30:00Z"}
    plan = "arn:aws:sagemaker:us-west-2:111122223333:training-plan/baseline"
    purchase = {"option": "training-plan", "plan": plan} | window

    document = with_pool(provisioner="hyperpod", purchase=purchase, nodes={"static": 65})

    assert mistakes_in(document) == []
