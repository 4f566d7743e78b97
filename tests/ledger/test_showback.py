"""Showback: every cent of a fee has one line, in each month and each grouping."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.ledgers import (
    BLOCK,
    POOL,
    SIZE,
    busy,
    idle,
    ledger,
    next_state,
    node,
    price_list,
    priced,
    reservation,
    utc,
    write,
)
from ultrascale.lambdas.ledger import STATE, Row
from ultrascale.lambdas.ledger_state import State
from ultrascale.ledger.price import group_by
from ultrascale.ledger.showback import Showback, groupings, price_words

WINDOW = utc("2026-12-29T11:30"), utc("2027-01-03T11:30")
EXTENDED = WINDOW[0], utc("2027-01-05T11:30")
ENDS = EXTENDED[1], utc("2027-01-06T11:30")
GROUPINGS = groupings({"a": "4711"})
MONTHS = ("2026-12-01", "2027-01-01"), ("2027-01-01", "2027-02-01")


def cost(result: Showback) -> int:
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
            parts = [busy(team, 2, job=f"{team}-{number}") for team in teams]
            rows.append(node(low, high, number, [*parts, idle(n=SIZE - 2 * len(teams))]))
            for team in teams:
                use[team] += 2 * (high - low)
    return rows, use


@settings(max_examples=60, deadline=None)
@given(
    lives(),
    st.integers(1, 10**8),
    st.lists(st.integers(0, 10**7), min_size=2, max_size=2),
    st.integers(WINDOW[0] + 1, ENDS[-1] - 1),
)
def test_all_lines_add_up_to_the_fee_in_each_month_and_no_team_pays_for_another(
    life: tuple[list[Row], Counter[str]], fee: int, extensions: list[int], cut: int
) -> None:
    rows, use = life
    edges = [*pairwise((WINDOW[1], *ENDS))]
    fees = [
        {"usd": f"{cents / 100:.2f}", "since": since, "until": until}
        for cents, (since, until) in zip(extensions, edges, strict=True)
    ]
    later = [
        reservation(since, until, (WINDOW[0], until), bought=3, fees=fees[: number + 1])
        for number, (since, until) in enumerate(edges)
    ]
    prices = price_list(fee=f"{fee / 100:.2f}")
    with TemporaryDirectory() as folder:
        before = priced(write(Path(folder), rows), *MONTHS[0], prices)
        write(Path(folder), [*rows, *later])
        months = [priced(Path(folder), *month, prices) for month in MONTHS]
        whole = priced(Path(folder), MONTHS[0][0], MONTHS[1][1], prices)
        opened = ledger(Path(folder), prices)
        parts = [opened.showback(*span) for span in ((whole.starts, cut), (cut, whole.ends))]

    assert before.lines == months[0].lines, "a closed month changed with an extension"
    assert sum(map(cost, months)) == cost(whole) == fee + sum(extensions)
    for result in (*months, whole, *parts):
        for name in GROUPINGS.values():
            assert (
                sum(group.total for group in group_by(result.lines, name).values()) == result.cents
            )
    assert sum(map(cost, parts)) == cost(whole), "a period that ends within a month lost a cent"
    mine = [line for line in whole.lines if line.key.reservation == BLOCK]
    assert sum(line.node_seconds for line in mine) == 3 * (ENDS[-1] - WINDOW[0])
    seconds = {
        name: group.node_seconds * SIZE for name, group in group_by(mine, GROUPINGS["team"]).items()
    }
    assert {name: seconds[name] for name in seconds if not name.startswith("(")} == {
        team: Decimal(count) for team, count in use.items() if count
    }
    (prepaid,) = (item for item in months[1].prepaid if item.reservation == BLOCK)
    assert (prepaid.before, prepaid.within, prepaid.after) == (cost(months[0]), cost(months[1]), 0)


def test_a_month_in_which_the_function_stopped_is_the_same_once_it_is_back(tmp_path: Path) -> None:
    stop, back = utc("2026-12-30T12:00"), utc("2027-01-02T08:00")
    rows = [reservation(0, 0, WINDOW, 1), node(0, 0, 1, [busy("a")])]
    states = [next_state(None, rows, WINDOW[0], 60, {})]
    for now in (utc("2026-12-30"), stop):
        states.append(next_state(replace(states[-1], at=now - 60), rows, now, 60, {}))
    for state in states:
        add_files(tmp_path, state.files)
    prices = price_list("500.00")
    text = states[-1].text()
    add_files(tmp_path, {STATE: text})

    stopped = priced(tmp_path, *MONTHS[0], prices)
    (tmp_path / STATE).unlink()
    add_files(tmp_path, next_state(State.parse(text), rows, back, 60, {}).files)

    assert stopped.lines == priced(tmp_path, *MONTHS[0], prices).lines
    seconds = {line.key.team: line.node_seconds for line in stopped.lines if line.key.team}
    assert seconds == {"a": stop + 60 - WINDOW[0]}
    assert {line.key.purchase for line in stopped.lines} == {"capacity-block"}
    assert stopped.unmeasured > 0

    # The function died after midnight, before it wrote the files of the day before.
    last = replace(State.parse(text), at=utc("2026-12-31") - 30)
    died = next_state(last, rows, utc("2026-12-31"), 60, {})
    folder = tmp_path / "died"
    add_files(folder, {STATE: died.text()})
    day = ledger(folder, prices).showback(utc("2026-12-30"), utc("2026-12-31"))
    assert {line.key.team for line in day.lines if line.cents} == {"a"}


def add_files(folder: Path, files: Mapping[str, bytes]) -> None:
    for key, content in files.items():
        (folder / key).parent.mkdir(parents=True, exist_ok=True)
        (folder / key).write_bytes(content)


BURST = {"purchase": "on-demand", "reservation": "", "pool": "gpu-burst"}
DAY = utc("2026-12-05"), utc("2026-12-06")


def test_rates_are_estimates_for_the_time_of_nodes_and_a_reservation_counts_whole(
    tmp_path: Path,
) -> None:
    odcr = {"purchase": "odcr", "reservation": "cr-0eeeeeeeeeeeeeee5", "pool": "gpu-reserved-odcr"}
    start, end = DAY
    rows: list[Row] = [
        node(start, start + 3600, 1, [busy("a", 4), idle(n=4)], **BURST),
        node(start, start + 3600, 2, [busy("b")], **{**BURST, "purchase": "spot"}),
        reservation(start, end, None, 2, **odcr),
        *(node(start, end, number, [busy("c")], **odcr) for number in (3, 4, 5)),
    ]
    folder = write(tmp_path, rows)

    result = priced(folder, "2026-12-05", "2026-12-06", price_list(ec2=60.0, ec2_spot=20.0))
    teams = {
        (line.key.purchase, line.key.team): (line.cents, line.basis)
        for line in result.lines
        if line.cents
    }

    assert teams == {
        ("on-demand", "a"): (3000, "estimate"),
        ("on-demand", ""): (3000, "estimate"),
        ("spot", "b"): (2000, "estimate"),
        ("odcr", "c"): (2 * 24 * 6000, "estimate"),
        # The third node of two that are reserved is On-Demand.
        ("spill", "c"): (24 * 6000, "estimate"),
    }
    assert all(line.cents is None for line in result.lines if line.basis == "unknown")


def test_a_fee_that_nobody_states_gives_hours_and_no_money(tmp_path: Path) -> None:
    folder = write(tmp_path, [reservation(*WINDOW, WINDOW), node(*WINDOW, 1, [busy("a")])])

    result = priced(folder, "2026-12-20", "2027-01-01", price_list())

    own = [line for line in result.lines if line.key.reservation == BLOCK]
    assert {line.cents for line in own} == {None}
    words = " ".join(price_words(result))
    assert f"no fee of {BLOCK}: its lines have hours and no money" in words
    assert "cr-0bbbbbbbbbbbbbbb2" not in words, "a block of the file that is not of the period"
    assert not result.prepaid


def test_no_team_pays_for_the_time_before_the_ledger(tmp_path: Path) -> None:
    late = WINDOW[0] + 86_400
    rows = [reservation(late, WINDOW[1], WINDOW, 1), node(late, WINDOW[1], 1, [busy("a")])]

    result = priced(write(tmp_path, rows), MONTHS[0][0], MONTHS[1][1], price_list("500.00"))

    cents = {line.key.team: line.cents for line in result.lines if line.key.reservation == BLOCK}
    assert cents == {"a": 40000, "": 10000}
    reasons = {line.key.reason for line in result.lines if line.key.reservation == BLOCK}
    assert reasons == {"", "not measured"}


Fees = dict[int | None, str]
FEES: dict[str, tuple[Fees, str | None, str | None, dict[int, int | None]]] = {
    "the price file": ({}, None, "100.00", {WINDOW[1]: 10000}),
    "the file before a price file": ({None: "200"}, None, "100.00", {WINDOW[1]: 20000}),
    "an extension that AWS tells": (
        {},
        "50.5",
        "100.00",
        {WINDOW[1]: 10000, EXTENDED[1]: 5050},
    ),
    "an extension that the file tells": (
        {WINDOW[1]: "200", EXTENDED[1]: "70"},
        "50.5",
        "100.00",
        {WINDOW[1]: 20000, EXTENDED[1]: 7000},
    ),
    "an extension that the file does not know yet": (
        {WINDOW[1]: "200"},
        "50.5",
        None,
        {WINDOW[1]: 20000, EXTENDED[1]: 5050},
    ),
    "the fee of the purchase, with an end that was moved": (
        {None: "200"},
        "50.5",
        None,
        {WINDOW[1]: 20000, EXTENDED[1]: 5050},
    ),
}


@pytest.mark.parametrize("case", FEES)
def test_each_extension_is_a_time_with_a_fee_of_its_own(tmp_path: Path, case: str) -> None:
    stated, extension, listed, cents = FEES[case]
    rows: list[Row] = [reservation(*WINDOW, WINDOW)]
    if extension is not None:
        paid = {"usd": extension, "since": WINDOW[1], "until": EXTENDED[1]}
        rows.append(reservation(WINDOW[1], EXTENDED[1], EXTENDED, fees=[paid]))
    fees = {BLOCK: {end: Decimal(usd) for end, usd in stated.items()}}
    opened = ledger(write(tmp_path, rows), price_list(fee=listed), fees)

    # Rows of December, before the extension, are not in the period.
    result = opened.showback(utc("2027-01-01"), utc("2027-02-01"))

    assert windows_of_block(result) == cents


def windows_of_block(result: Showback) -> dict[int, int | None]:
    (bought,) = (item for item in result.bought if item.key.reservation == BLOCK)
    return {window.ends: window.cents for window in bought.windows}


def test_the_block_before_is_not_paid_by_the_fee_of_the_next_one_in_its_pool(
    tmp_path: Path,
) -> None:
    folder = write(tmp_path, [reservation(*WINDOW, WINDOW)])
    usd: dict[int | None, Decimal] = {None: Decimal(900)}

    # In the file another block has the pool by now, or tags found one in December.
    for fees in ({"cr-0fffffffffffffff9": usd}, {POOL: usd}):
        result = ledger(folder, price_list(), fees).showback(utc("2027-01-01"), utc("2027-02-01"))
        assert windows_of_block(result) == {WINDOW[1]: None}


def test_a_plan_costs_what_sagemaker_says_and_not_the_files_fee_beside_it(tmp_path: Path) -> None:
    own = {"usd": "300.00", "since": WINDOW[0], "until": WINDOW[1]}
    rows = [reservation(*WINDOW, WINDOW, purchase="training-plan", fees=[own])]
    opened = ledger(write(tmp_path, rows), price_list(), {BLOCK: {None: Decimal(299)}})

    assert windows_of_block(opened.showback(*WINDOW)) == {WINDOW[1]: 30000}


def test_a_gap_is_not_charged_to_a_reservation_that_is_gone(tmp_path: Path) -> None:
    first, second, third = map(utc, ("2026-12-01", "2026-12-02", "2026-12-03"))
    gap: Row = {"v": 1, "kind": "gap", "from": second, "to": second + 600}
    rows = [
        reservation(first, first + 3_600, None, purchase="odcr", reservation="cr-0e"),
        node(first, third, 1, [busy("a")], reservation=""),
        gap,
    ]
    result = priced(write(tmp_path, rows), "2026-12-01", "2026-12-03", price_list())
    lines = [line for line in result.lines if line.key.reservation == "cr-0e"]
    assert [line.node_seconds for line in lines] == [2 * 3_600]
