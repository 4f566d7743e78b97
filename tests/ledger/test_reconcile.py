"""The bill: nothing is unexplained in any variant, and each planted fault is the one named."""

import gzip
from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import bills
from tests.support.bills import ARN, Cur, fee_line, line, lines_of
from tests.support.ledgers import (
    BLOCK,
    TYPE,
    busy,
    idle,
    ledger,
    node,
    price_list,
    reservation,
    utc,
    write,
)
from ultrascale.errors import ConfigError
from ultrascale.lambdas.ledger import Row
from ultrascale.ledger.bill import read_bill
from ultrascale.ledger.reconcile import Reconciled, Uses, reconcile
from ultrascale.ledger.showback import Showback

CLUSTER = "mixed-capacity"
MONTH = utc("2026-12-01"), utc("2027-01-01")
WINDOW = utc("2026-12-02T11:30"), utc("2026-12-04T11:30")
FEE, RATE = "5000.00", 60.0
BURST = {"purchase": "on-demand", "reservation": "", "pool": "gpu-burst"}
ROWS: Sequence[Row] = [
    reservation(*WINDOW, WINDOW),
    *(node(*WINDOW, number, [busy("a", 6), idle(n=2)]) for number in range(2)),
    node(utc("2026-12-05T10:00"), utc("2026-12-05T13:30"), 7, [busy("b")], **BURST),
    node(utc("2026-12-05T10:20"), utc("2026-12-05T12:00"), 8, [busy("c", 4), idle(n=4)], **BURST),
]
EMPTY = [line(utc("2026-10-15"), "DataTransfer", 1), line(utc("2026-11-15"), "DataTransfer", 1)]
HOURS = lines_of(ROWS, RATE)


def outcome(
    folder: Path,
    lines: Sequence[Cur],
    rows: Sequence[Row] = ROWS,
    *,
    fee: str | None = FEE,
    by_type: Sequence[str] = (),
) -> tuple[Showback, Reconciled]:
    uses = Uses(by_type)
    prices = price_list(fee, ec2=RATE)
    result = ledger(write(folder / "ledger", rows), prices).showback(*MONTH, uses.add)
    file = bills.write(folder / "cur.csv.gz", [*EMPTY, *lines])
    return result, reconcile(result, uses, read_bill([file], CLUSTER, {TYPE}, net=False))


@pytest.mark.parametrize(
    ("month", "arn", "amortized", "split"),
    list(product(("2026-11-20", "2026-12-02"), ("", ARN), (0.0, 52.08), (False, True))),
)
def test_a_month_reconciles_in_each_form_that_the_bill_may_have(
    tmp_path: Path, month: str, arn: str, amortized: float, split: bool
) -> None:
    hours = lines_of(ROWS, RATE, amortized=amortized, split=split)

    _, result = outcome(tmp_path, [fee_line(utc(month), FEE, arn=arn), *hours])

    assert result.differences == ()
    assert result.share == 0
    way = "its ARN" if arn else "usage type, day and amount"
    assert f"fee of {BLOCK}: matched by {way}" in result.remarks
    assert sum(line.cents or 0 for line in result.lines if line.key.reservation == BLOCK) == 500000
    paid = {line.key.team: line.cents for line in result.lines if line.basis == "bill"}
    assert paid == {"b": 21000, "c": 5000, "": 5000}
    assert all(line.key.purchase == "on-demand" for line in result.lines if line.basis == "bill")


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(MONTH[0], MONTH[1] - 60),
            st.integers(60, 90_000),
            st.sampled_from(("on-demand", "spot")),
        ),
        min_size=1,
        max_size=4,
    ),
    st.integers(1, 10**6),
)
def test_lines_take_all_of_the_bill_whatever_nodes_did(
    lives: list[tuple[int, int, str]], cents: int
) -> None:
    rows: list[Row] = []
    for number, (start, seconds, purchase) in enumerate(lives):
        middle, end = (min(start + part, MONTH[1]) for part in (seconds // 3, seconds))
        own = {**BURST, "purchase": purchase}
        for low, high, parts in (
            (start, middle, [busy("a", 3), busy("b", 5)]),
            (middle, end, [busy("a", 4), idle(n=4)]),
        ):
            if low < high:
                rows.append(node(low, high, number, parts, **own))
    rate = cents / 100
    with TemporaryDirectory() as name:
        folder, uses = Path(name), Uses(())
        opened = ledger(write(folder / "ledger", rows), price_list(ec2=rate, ec2_spot=rate))
        showback = opened.showback(*MONTH, uses.add)
        lines = [line(MONTH[0], "DataTransfer", 1), *lines_of(rows, rate)]
        file = bills.write(folder / "cur.csv", lines)
        bill = read_bill([file], CLUSTER, {TYPE}, net=False)

    result = reconcile(showback, uses, bill)

    whole = sum(item.usd for item in bill.charges)
    assert [item for item in result.differences if item.name != "rounding"] == []
    assert sum(line.cents or 0 for line in result.lines if line.basis == "bill") == round(
        whole * 100
    )


def _change_hour(lines: Sequence[Cur], **change: str) -> list[Cur]:
    """Return lines with a change of instance 7 in the hour from 11."""
    return [{**item, **change} if _is_seven(item) else item for item in lines]


def _is_seven(item: Cur) -> bool:
    own = item["line_item_resource_id"].endswith("7")
    return own and "T11" in item["line_item_usage_start_date"]


FEE_LINE = fee_line(WINDOW[0], FEE, arn=ARN)
SEVEN = "i-00000000000000007"
STRAY = line(utc("2026-12-05T11:00"), f"BoxUsage:{TYPE}", 60, resource="i-0123456789abcdef0")
REFUND = {
    "line_item_resource_id": SEVEN,
    "line_item_unblended_cost": "-20",
    "line_item_line_item_type": "Refund",
}
FAULTS: dict[str, tuple[Callable[[], list[Cur]], str, str]] = {
    "a missing hour": (
        lambda: [FEE_LINE, *(item for item in HOURS if not _is_seven(item))],
        f"in the ledger, not in the bill: {SEVEN}",
        "-60.00",
    ),
    "a doubled hour": (
        lambda: [FEE_LINE, *HOURS, *(item for item in HOURS if _is_seven(item))],
        f"billed twice: {SEVEN}",
        "60.00",
    ),
    "another rate": (
        lambda: [FEE_LINE, *_change_hour(HOURS, line_item_unblended_cost="75")],
        f"rate: {TYPE}, on-demand",
        "15.00",
    ),
    "a stray instance": (
        lambda: [FEE_LINE, *HOURS, STRAY],
        "in the bill, not in the ledger: i-0123456789abcdef0",
        "60.00",
    ),
    "a refund": (
        lambda: [FEE_LINE, *HOURS, fee_line(WINDOW[0], "-1200.00", arn=ARN, item="Refund")],
        f"refund: {BLOCK}",
        "-1200.00",
    ),
    "a missing fee": (
        lambda: HOURS,
        f"in the ledger, not in the bill: fee of {BLOCK}",
        "-5000.00",
    ),
    "a doubled fee": (
        lambda: [FEE_LINE, FEE_LINE, *HOURS],
        f"billed twice: {BLOCK}",
        "5000.00",
    ),
    "another fee": (
        lambda: [fee_line(WINDOW[0], "5100.00", arn=ARN), *HOURS],
        f"another fee than the ledger's: {BLOCK}",
        "100.00",
    ),
    "a refund of an hour": (
        lambda: [FEE_LINE, *HOURS, {**STRAY, **REFUND}],
        f"refund: {SEVEN}",
        "-20.00",
    ),
    "a fee of another type of line": (
        lambda: [fee_line(WINDOW[0], "5100.00", arn=ARN, item="Upfront"), *HOURS],
        f"another fee than the ledger's: {BLOCK}",
        "100.00",
    ),
    "a fee of another block": (
        lambda: [FEE_LINE, *HOURS, fee_line(utc("2026-12-20"), "77.00")],
        f"in the bill, not in the ledger: {TYPE} on 2026-12-20",
        "77.00",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_the_one_that_is_named(tmp_path: Path, fault: str) -> None:
    lines, name, usd = FAULTS[fault]

    _, result = outcome(tmp_path, lines())

    assert [(item.name, f"{item.usd:.2f}", item.counts) for item in result.differences] == [
        (name, usd, True)
    ]
    assert result.share > 0.001
    # What the ledger does not have is charged to nobody, and what is not billed has no money.
    paid = sum(line.cents or 0 for line in result.lines if line.basis == "bill")
    missing, another = fault == "a missing hour", fault == "another rate"
    assert paid == 31000 - 6000 * missing + 1500 * another


def test_a_fee_of_the_month_before_is_no_difference_of_this_one(tmp_path: Path) -> None:
    before = fee_line(utc("2026-11-03"), "77.00", arn=ARN.replace(BLOCK, "cr-0123456789abcdef0"))

    _, result = outcome(tmp_path, [FEE_LINE, *HOURS, before])

    assert result.differences == ()
    assert "fee of cr-0123456789abcdef0, 77.00: in no month of the period" in result.remarks


def test_a_fee_that_the_ledger_lacks_is_named_by_its_reservation(tmp_path: Path) -> None:
    _, result = outcome(tmp_path, [FEE_LINE, *HOURS], fee=None)

    assert [(item.name, item.usd) for item in result.differences] == [
        (f"no fee in the ledger: {BLOCK}", Decimal("5000.00"))
    ]
    assert {line.cents for line in result.lines if line.key.reservation == BLOCK} == {None}


def test_an_instance_that_is_in_no_bill_has_hours_and_no_money(tmp_path: Path) -> None:
    _, result = outcome(tmp_path, [FEE_LINE])

    assert {line.cents for line in result.lines if not line.key.reservation} == {None}
    assert {line.basis for line in result.lines if not line.key.reservation} == {"unknown"}


@pytest.mark.parametrize("hours", [2, 5])
def test_nodes_of_hyperpod_are_held_by_type_and_those_of_another_cluster_are_named(
    tmp_path: Path, hours: int
) -> None:
    start, kind = utc("2026-12-05T10:00"), f"ml.{TYPE}"
    own = {**BURST, "type": kind, "pool": "hyperpod", "instance": "i-07"}
    rows = [node(start, start + 3600, number, [busy("b")], **own) for number in (1, 2)]
    plan = line(start, f"Cluster:{kind}", 0, hours=8)
    other = line(start, "Cluster:VolumeUsage.gp2", 5)

    _, result = outcome(
        tmp_path,
        [line(start, f"Cluster:{kind}", 60 * hours, hours=hours), plan, other],
        rows,
        fee=None,
        by_type=["hyperpod"],
    )

    counted = [(item.name, round(item.usd, 2)) for item in result.differences if item.counts]
    # An hour more may be that in which a node starts.
    assert counted == ([(f"in the bill, not in the ledger: {kind}", 120)] if hours > 3 else [])
    paid = {line.key.team: line.cents for line in result.lines if line.key.pool == "hyperpod"}
    assert paid == {"b": 6000 * min(hours, 3)}


def test_hours_of_a_savings_plan_count_at_their_effective_cost(tmp_path: Path) -> None:
    own = {"line_item_line_item_type": "SavingsPlanCoveredUsage"}
    covered = _change_hour(HOURS, savings_plan_savings_plan_effective_cost="33.5", **own)
    fees = [
        line(utc("2026-12-05"), "ComputeSP:1yr", 900, item="SavingsPlanRecurringFee"),
        line(WINDOW[0], f"CapacityBlockFee:{TYPE}", 900, item="Tax"),
        line(WINDOW[0], f"Reservation:{TYPE}", 0, arn=ARN),
    ]

    _, result = outcome(tmp_path, [FEE_LINE, *covered, *fees])

    assert sum(line.cents or 0 for line in result.lines if line.basis == "bill") == 31000 - 2650
    assert [(item.name, f"{item.usd:.2f}", item.counts) for item in result.differences] == [
        (f"rate of Spot, Savings Plans or Reserved Instances: {TYPE}, on-demand", "-26.50", False)
    ]
    assert result.share == 0


def test_a_reserved_and_idle_hour_is_paid_by_its_own_line_and_boots_by_their_pool(
    tmp_path: Path,
) -> None:
    start, end, name = utc("2026-12-05T10:00"), utc("2026-12-05T12:00"), "cr-0eeeeeeeeeeeeeee5"
    own = {"purchase": "odcr", "reservation": name, "pool": "gpu-reserved-odcr"}
    rows = [
        reservation(start, end, None, 2, **own),
        node(start + 600, end, 7, [busy("b")], **own),
    ]
    arn = f"arn:aws:ec2:us-east-2:1:capacity-reservation/{name}"
    lines = [
        line(hour, f"UnusedBox:{TYPE}", 60, resource=arn, arn=arn) for hour in (start, start + 3600)
    ]
    # Its instance ran before the node joined, and after it was gone.
    lines += [
        line(hour, f"BoxUsage:{TYPE}", usd, hours=usd / 60, resource=SEVEN, arn=arn)
        for hour, usd in ((start, 60), (start + 3600, 60), (start + 7200, 3))
    ]
    _, result = outcome(tmp_path, lines, rows, fee=None)

    assert {
        line.key.team or line.key.reason: line.cents for line in result.lines if line.cents
    } == {
        "b": 12300,
        "missing": 12000,
    }
    assert [(item.name, item.counts) for item in result.differences] == [
        ("not measured", False),
        ("time between two measurements", False),
    ]


def test_lines_that_two_files_share_count_once_and_other_clusters_not_at_all(
    tmp_path: Path,
) -> None:
    other = line(utc("2026-12-05"), f"BoxUsage:{TYPE}", 60, tags='{"aws:eks:cluster-name": "x"}')
    same = {**STRAY, "identity_line_item_id": "one", "resource_tags": "null"}
    # Ids are unique in a month alone.
    later = {**same, **line(utc("2027-01-05"), f"BoxUsage:{TYPE}", 60, resource=SEVEN)}
    first = bills.write(tmp_path / "a.csv", [same, other])
    second = bills.write(tmp_path / "b.csv", [same, {**later, "identity_line_item_id": "one"}])

    bill = read_bill([first, second], CLUSTER, {TYPE}, net=False)

    assert [charge.resource for charge in bill.charges] == ["i-0123456789abcdef0", SEVEN]
    assert bill.repeated == 1


def test_net_takes_the_costs_after_discounts(tmp_path: Path) -> None:
    bill = read_bill([bills.write(tmp_path / "a.csv", [STRAY])], CLUSTER, {TYPE}, net=True)

    assert [charge.usd for charge in bill.charges] == [Decimal(30)]


def test_what_could_not_be_matched_has_no_amounts_and_no_ids(tmp_path: Path) -> None:
    _, result = outcome(tmp_path, [FEE_LINE, *HOURS, STRAY])

    assert result.shapes == (f"Usage,USE2-BoxUsage:{TYPE},,i-X,reservation empty",)


WRONG: dict[str, tuple[Callable[[Path], object], str]] = {
    "no reservation columns": (
        lambda file: bills.write(file, HOURS, without=[bills.CR_ARN]),
        "INCLUDE_CAPACITY_RESERVATION_DATA",
    ),
    "no column of Savings Plans": (
        lambda file: bills.write(
            file,
            [{**STRAY, "line_item_line_item_type": "SavingsPlanCoveredUsage"}],
            without=["savings_plan_savings_plan_effective_cost"],
        ),
        "whose cost is in savings_plan_savings_plan_effective_cost",
    ),
    "daily grain": (
        lambda file: bills.write(
            file, [{**STRAY, "line_item_usage_end_date": "2026-12-06T11:00:00Z"}]
        ),
        "daily or monthly grain",
    ),
    "another currency": (
        lambda file: bills.write(file, [{**STRAY, "line_item_currency_code": "EUR"}]),
        "in EUR",
    ),
    "no number": (
        lambda file: bills.write(file, [{**STRAY, "line_item_unblended_cost": "1,5"}]),
        "cur.csv:2:1: line_item_unblended_cost: no number, got '1,5'",
    ),
    "broken gzip": (
        lambda file: file.write_bytes(gzip.compress(b"identity_line_item_id" * 9)[:10] + b"x" * 9),
        "cannot be read",
    ),
    "cut off": (
        lambda file: bills.write(file, HOURS) and file.write_bytes(file.read_bytes()[:-40]),
        "unexpected end of data",
    ),
    "Parquet": (lambda file: file.write_bytes(b"PAR1...."), "Parquet is not read"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_bill_that_would_give_other_sums_is_refused_with_the_way_out(
    tmp_path: Path, case: str
) -> None:
    make, words = WRONG[case]
    make(tmp_path / "cur.csv")

    with pytest.raises(ConfigError) as refusal:
        read_bill([tmp_path / "cur.csv"], CLUSTER, {TYPE}, net=False)

    assert words in str(refusal.value)


def test_everything_wrong_in_all_bills_is_named_at_once_up_to_a_limit(tmp_path: Path) -> None:
    euros = [{**item, "line_item_currency_code": "EUR"} for item in HOURS[:40]]
    files = [
        bills.write(tmp_path / "a.csv", [{**STRAY, "line_item_usage_start_date": "today"}]),
        bills.write(tmp_path / "b.csv", euros),
    ]

    with pytest.raises(ConfigError) as refusal:
        read_bill(files, CLUSTER, {TYPE}, net=False)

    first, *others = str(refusal.value).splitlines()
    assert "a.csv:2:1: Invalid isoformat string" in first
    assert len(others) == 19
    assert all(f"b.csv:{number}:1: in EUR" in text for number, text in enumerate(others, 2))
