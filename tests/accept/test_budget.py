"""Money of an acceptance: it is told before, asked for, and never exceeded."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.accept_cluster import stage, write_file
from tests.support.pools import CAPACITY_BLOCK, POOL, SYSTEM_POOL, as_text, loads_own, make_document
from ultrascale.accept import budget, levels
from ultrascale.accept.model import Check
from ultrascale.catalog.prices import Price, PriceList, catalog_prices
from ultrascale.errors import QuestionError
from ultrascale.plan import ClusterPlan, plan_cluster


def priced(tmp_path: Path) -> tuple[ClusterPlan, list[Check]]:
    plan = stage(write_file(tmp_path, "none")).run.plan
    price = Price(
        region="us-west-2",
        service="ec2",
        item="c7i.2xlarge",
        unit="hour",
        price=0.6,
        currency="USD",
        valid_on=datetime(2026, 12, 1, tzinfo=UTC).date(),
        source="a contract",
    )
    checks = levels.checks(plan, ["nodes", "storage"])
    return plan, [*budget.with_prices(checks, plan, PriceList([price]))]


def test_the_price_is_told_before_the_first_pod(tmp_path: Path) -> None:
    _, checks = priced(tmp_path)
    # Two nodes for 52 minutes, and one for 22, at $0.60 an hour.
    assert budget.usd_of(checks) == pytest.approx(126 / 60 * 0.6)
    assert [*budget.cost_lines(checks)] == [
        "storage: job work: 2 of work for at most 52 minutes, 1 of work for at most 22 minutes, "
        "$1.26; a stop leaves jobs with a deadline, nodes until their provisioner takes them, "
        "accept/RUN on volumes",
        "$1.26 in all, beside what the cluster costs anyway",
    ]


@pytest.mark.parametrize(
    ("usd", "words"), [(None, "missing"), (1.25, "the cheapest of them"), (0, "the cheapest")]
)
def test_more_than_the_budget_is_refused(tmp_path: Path, usd: float | None, words: str) -> None:
    _, checks = priced(tmp_path)
    with pytest.raises(QuestionError, match=f"--budget: .*{words}"):
        budget.refuse_beyond(checks, usd)
    budget.refuse_beyond(checks, 1.27)


def test_nodes_without_a_known_price_are_refused(tmp_path: Path) -> None:
    plan, checks = priced(tmp_path)
    unpriced = budget.with_prices(checks, plan, PriceList([]))
    with pytest.raises(QuestionError, match="--prices: no price of nodes of work"):
        budget.refuse_beyond(unpriced, 1e6)


def test_checks_without_nodes_need_no_budget(tmp_path: Path) -> None:
    plan, _ = priced(tmp_path)
    budget.refuse_beyond(levels.checks(plan, ["objects", "nodes"]), None)


OPENS, CLOSES = (datetime(2026, 12, day, 11, 30, tzinfo=UTC) for day in (1, 8))


@pytest.mark.parametrize(
    ("at", "runs"),
    [
        (OPENS - timedelta(minutes=1), False),
        (OPENS, True),
        (CLOSES - timedelta(hours=5), True),
        (CLOSES - timedelta(minutes=90), False),
        (CLOSES + timedelta(days=1), False),
    ],
)
def test_a_check_that_a_window_cuts_off_is_not_run(
    tmp_path: Path, at: datetime, *, runs: bool
) -> None:
    staged = stage(write_file(tmp_path, "none"))
    nodes = {"min": 0, "max": 2}
    pool = POOL | {"purchase": CAPACITY_BLOCK, "instance_types": ["p5.48xlarge"], "nodes": nodes}
    document = make_document(
        account="111122223333",
        pools=[SYSTEM_POOL, pool],
        storage={"buckets": ["checkpoints"]},
        images={"repositories": ["trainer"], "builds": {"trainer": "nvidia"}},
    )
    plan = plan_cluster(loads_own(as_text(document)))
    (check,) = budget.in_time(levels.checks(plan, ["storage"]), plan, at)
    assert bool(check.costs) is runs
    if not runs:
        (found,) = check.run(staged.run)
        assert (found.state, "window of pool train" in found.evidence) == ("not run", True)
    # Paid up front at no listed price, it counts as On-Demand.
    assert all(
        cost.usd
        for each in budget.with_prices([check], plan, catalog_prices())
        for cost in each.costs
    )
