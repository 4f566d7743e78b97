"""Showback: every cent of a fee has one line, in each month and each grouping."""

from collections import Counter
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.ledgers import (
    BLOCK,
    SIZE,
    at,
    idle,
    node,
    price_list,
    priced,
    reservation,
    used,
    write,
)
from ultrascale.lambdas.ledger import Row
from ultrascale.ledger.price import grouped
from ultrascale.ledger.showback import Showback, groupings

WINDOW = at("2026-12-29T11:30"), at("2027-01-03T11:30")
EXTENDED = WINDOW[0], at("2027-01-05T11:30")
GROUPINGS = groupings({"a": "4711"})
MONTHS = ("2026-12-01", "2027-01-01"), ("2027-01-01", "2027-02-01")


def by(result: Showback, grouping: str) -> dict[str, str]:
    sums = grouped(result.lines, GROUPINGS[grouping])
    return {
        name: f"{float(group.node_seconds) / 3600:.1f} h {group.cents}"
        for name, group in sums.items()
        if BLOCK in name or "cr-" not in name
    }


def own(result: Showback) -> int:
    return sum(line.cents or 0 for line in result.lines if line.key.reservation == BLOCK)


@st.composite
def lives(draw: st.DrawFn) -> tuple[list[Row], Counter[str]]:
    """Return rows of two nodes in a block of three instances, and each team's true use."""
    start, end = WINDOW
    rows: list[Row] = [reservation(start, end, WINDOW, bought=3)]
    use: Counter[str] = Counter()
    for number in range(2):
        edges = sorted(draw(st.sets(st.integers(start, end), min_size=2, max_size=5)))
        for low, high in pairwise(edges):
            teams = draw(st.lists(st.sampled_from("abc"), max_size=3))
            parts = [used(team, 2, job=f"{team}-{number}") for team in teams]
            rows.append(node(low, high, number, [*parts, idle(n=SIZE - 2 * len(teams))]))
            for team in teams:
                use[team] += 2 * (high - low)
    return rows, use


@settings(max_examples=60, deadline=None)
@given(lives(), st.integers(1, 10**8), st.integers(1, 10**7))
def test_all_lines_add_up_to_the_fee_in_each_month_and_no_team_pays_for_another(
    life: tuple[list[Row], Counter[str]], fee: int, extension: int
) -> None:
    rows, use = life
    paid = {"usd": f"{extension / 100:.2f}", "until": EXTENDED[1]}
    later = reservation(WINDOW[1], EXTENDED[1], EXTENDED, bought=3, fee=paid)
    prices = price_list(fee=f"{fee / 100:.2f}")
    with TemporaryDirectory() as folder:
        before = [priced(write(Path(folder), rows), *MONTHS[0], prices)]
        write(Path(folder), [*rows, later])
        months = [priced(Path(folder), *month, prices) for month in MONTHS]
        whole = priced(Path(folder), MONTHS[0][0], MONTHS[1][1], prices)

    assert before[0].lines == months[0].lines, "a closed month changed with an extension"
    assert sum(map(own, months)) == own(whole) == fee + extension
    for result in (*months, whole):
        for name in GROUPINGS.values():
            assert (
                sum(group.total for group in grouped(result.lines, name).values()) == result.cents
            )
    mine = [line for line in whole.lines if line.key.reservation == BLOCK]
    assert sum(line.node_seconds for line in mine) == 3 * (EXTENDED[1] - EXTENDED[0])
    seconds = {
        name: group.node_seconds * SIZE for name, group in grouped(mine, GROUPINGS["team"]).items()
    }
    assert {name: seconds[name] for name in seconds if not name.startswith("(")} == {
        team: Decimal(count) for team, count in use.items() if count
    }
    (prepaid,) = (each for each in months[1].prepaid if each.reservation == BLOCK)
    assert (prepaid.before, prepaid.within, prepaid.after) == (own(months[0]), own(months[1]), 0)
