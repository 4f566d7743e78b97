"""`ultrascale ledger`: money by team, the bill's verdict as a status, and wrong files by name."""

import csv
import gzip
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from tests.support import bills
from tests.support.account import connects
from tests.support.bills import ARN, fee_line, line
from tests.support.command_line import Ultrascale
from tests.support.fake_aws import Refusal
from tests.support.ledgers import BLOCK, FILE, TYPE, busy, idle, node, reservation, utc, write
from tests.support.stub_api_server import Object
from ultrascale.lambdas.ledger import Row

WINDOW = utc("2026-10-29T11:30"), utc("2026-11-02T11:30")
ROWS = [
    reservation(*WINDOW, WINDOW),
    node(*WINDOW, 1, [busy("a", 6), idle("job waits", 2)]),
    node(utc("2026-10-30T11:30"), WINDOW[1], 2, [busy("b")]),
]
PRICES = f"""region,service,item,unit,price,currency,valid_on,source
us-east-2,ec2-capacity-block,{BLOCK},fee,12345.67,USD,2026-10-20,invoice
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "prices.csv").write_text(PRICES)
    return write(tmp_path, ROWS)


def output(ultrascale: Ultrascale, folder: Path, *words: str, status: int = 0) -> str:
    """Return what is printed: without an error, where a form for programs is asked, on stdout."""
    own = ("--source", str(folder), "--prices", str(folder / "prices.csv"))
    answer = ultrascale("ledger", FILE, *own, *words)
    assert answer.returncode == status, answer.stderr
    return answer.stdout + ("" if {"--csv", "--json"} & {*words} else answer.stderr)


def test_each_team_sees_its_hours_and_money_and_finance_what_was_used_before(
    ultrascale: Ultrascale, folder: Path
) -> None:
    text = output(ultrascale, folder, "--month", "2026-11")

    # Both nodes of the block are used for 35.5 of its 96 hours: 12,345.67 x 35.5 / 96 = 4,565.33.
    assert re.search(r"^ *b +35\.5 +2,282\.66 +50\.0 %$", text, re.MULTILINE)
    assert "sum 4,565.33" in text
    assert f"{BLOCK}: 4,565.33 = 12,345.67 - 7,780.34 - 0.00" in text
    assert "measured every 60 s" in text
    assert f"{BLOCK}: a fee of 12,345.67, by invoice on 2026-10-20" in text


def test_the_finest_lines_add_up_over_both_months_to_the_fee(
    ultrascale: Ultrascale, folder: Path
) -> None:
    cents = 0
    for month in ("2026-10", "2026-11"):
        rows = csv.DictReader(io.StringIO(output(ultrascale, folder, "--month", month, "--csv")))
        cents += sum(round(float(row["usd"]) * 100) for row in rows if row["reservation"] == BLOCK)
    both = ("--from", "2026-10-01", "--until", "2026-12-01")
    document = json.loads(output(ultrascale, folder, *both, "--json", "--by", "reason"))

    assert cents == document["cents"] == 1234567
    names = [group["name"] for group in document["groups"] if group["cents"]]
    assert names == ["(used)", "missing", "job waits", "drain"]


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("--month", "2026-13"), 64, "--month: no time, got '2026-13'; write it as 2027-01"),
        (("--month", "0000-01"), 64, "--month: no time"),
        (("--month", "2026-12"), 64, "is to come, or empty"),
        (("--month", "2026-10", "--from", "2026-10-02"), 64, "neither goes with --month"),
        (("--from", "yesterday"), 64, "--from: no time"),
        (("--source", "/nowhere"), 64, "there is no folder /nowhere"),
        (("--redact",), 64, "needs --reconcile"),
        (("--from", "2026-10-02T11:30", "--reconcile", "cur.csv"), 64, "bill has whole hours"),
        (
            ("--from", "2026-10-26", "--until", "2026-11-04"),
            0,
            "not measured: 0.00 % of the node-hours, 44.44 % of the time\n"
            "days without a file: 2026-10-26 to 2026-10-28, 2026-11-03\n",
        ),
    ],
)
def test_a_wrong_option_or_a_day_without_a_file_is_named(
    ultrascale: Ultrascale, folder: Path, words: tuple[str, ...], status: int, said: str
) -> None:
    assert said in output(ultrascale, folder, *words, status=status)


WRONG: dict[str, tuple[Callable[[Path], object], str]] = {
    "another cluster": (lambda folder: write(folder, ROWS, name="other"), "of cluster 'other'"),
    "a newer format": (
        lambda folder: write(folder, [cast("Row", {**ROWS[0], "window": "P4D"})], v=2),
        "format 2 of the ledger",
    ),
    "cut off": (
        lambda folder: [
            file.write_bytes(file.read_bytes()[:60]) for file in folder.glob("ledger/*-30/*")
        ],
        "no whole file of a ledger",
    ),
    "no ledger": (
        lambda folder: [
            file.write_bytes(gzip.compress(b"{}\n")) for file in folder.glob("ledger/*-30/*")
        ],
        "no whole file of a ledger",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_file_that_is_no_ledger_of_the_cluster_gives_no_sums(
    ultrascale: Ultrascale, folder: Path, case: str
) -> None:
    spoil, words = WRONG[case]
    spoil(folder)

    text = output(ultrascale, folder, "--month", "2026-10", status=1)

    assert words in text
    assert "day=2026-10-30" in text


def test_a_bill_beyond_the_tolerance_ends_with_status_3(
    ultrascale: Ultrascale, folder: Path
) -> None:
    stray = line(utc("2026-10-30"), f"BoxUsage:{TYPE}", 99, resource="i-0123456789abcdef0")
    fee = fee_line(WINDOW[0], "12345.67", arn=ARN)
    good = bills.write(folder / "good.csv", [fee])
    bad = bills.write(folder / "bad.csv.gz", [fee, stray])
    month = ("--month", "2026-10", "--reconcile")

    assert "differs by 0.00 %, within" in output(ultrascale, folder, *month, str(good))
    text = output(ultrascale, folder, *month, str(bad), status=3)
    assert "99.00: in the bill, not in the ledger: i-0123456789abcdef0" in text
    output(ultrascale, folder, *month, str(bad), "--tolerance", "5")
    table = ultrascale("ledger", FILE, "--source", folder, "--csv", *month, bad)
    assert table.stdout.startswith("reservation,purchase,pool,")
    assert "beyond the tolerance of 0.5 %" in table.stderr
    both = ("--from", "2026-10-01", "--until", "2026-11-09", "--reconcile", str(good))
    assert "no line of 2026-11" in output(ultrascale, folder, *both, status=1)
    shapes = output(ultrascale, folder, *month, str(bad), "--redact", status=3)
    assert shapes == f"Usage,USE2-BoxUsage:{TYPE},,i-X,reservation empty\n"


def test_a_month_without_a_line_has_a_header_and_says_why_it_is_empty(
    ultrascale: Ultrascale, folder: Path
) -> None:
    answer = ultrascale("ledger", FILE, "--source", folder, "--month", "2026-09", "--csv")

    columns = "reservation,purchase,pool,type,reason,namespace,team,queue,job,"
    assert answer.stdout == f"{columns}cost_center,node_hours,usd,basis\n"
    assert "days without a file: 2026-09-01 to 2026-09-30" in answer.stderr


def test_the_setup_names_the_cluster_its_reservations_and_all_columns(
    ultrascale: Ultrascale, folder: Path
) -> None:
    text = output(ultrascale, folder, "--setup", "--net")

    assert f"{bills.CR_ARN} LIKE '%{BLOCK}'" in text
    assert f"{bills.CR_ARN} LIKE '%RESERVATION-OF-gpu-reserved-odcr'" in text
    assert "element_at(resource_tags, 'aws_eks_cluster_name') = 'mixed-capacity'" in text
    assert "line_item_net_unblended_cost" in text
    assert not re.search(r",\s*,", text)
    assert "${day}" in text


def test_the_report_draws_who_used_the_days_before_with_the_sums_of_the_ledger(
    ultrascale: Ultrascale, folder: Path
) -> None:
    own = ("--ledger", str(folder), "--prices", str(folder / "prices.csv"))
    page = ultrascale("report", FILE, "-o", "-", *own)
    (folder / "empty").mkdir()
    empty = ultrascale("report", FILE, "-o", "-", "--ledger", folder / "empty")
    assert empty.returncode == 0, empty.stderr
    text = ultrascale("report", FILE, "-o", "-", "--markdown", *own).stdout

    assert page.returncode == 0, page.stderr
    assert '<section id="ledger"' in page.stdout
    assert 'aria-label="Drawing of who used it"' in page.stdout
    assert "USD a day by reason" in page.stdout
    assert "### Who used it" in text
    assert "| b | 72.0 | " in text
    # All of the block lies within the 28 days: its reasons add up to the fee.
    reasons = text.partition("cost by reason.")[2].partition("###")[0]
    amounts = re.findall(r"\| ([\d,]+\.\d\d) \|$", reasons, re.MULTILINE)
    assert sum(round(float(usd.replace(",", "")) * 100) for usd in amounts) == 1234567


def test_the_ledger_of_the_stack_is_read_where_no_folder_is_named(
    ultrascale: Ultrascale, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {str(file.relative_to(folder)): file.read_bytes() for file in folder.glob("ledger/*/*")}
    stack = {"StackName": "s", "StackStatus": "CREATE_COMPLETE", "CreationTime": 0}
    output = {"Description": "Bucket ledger", "OutputKey": "Name", "OutputValue": "the-ledger"}

    def list_keys(asked: Object) -> Object:
        return {"Contents": [{"Key": key} for key in files if key.startswith(asked["Prefix"])]}

    def read(asked: Object) -> Object:
        if asked["Key"] not in files:
            raise Refusal("NoSuchKey", "")
        return {"Body": io.BytesIO(files[asked["Key"]])}

    aws = connects(
        monkeypatch,
        {
            "cloudformation:DescribeStacks": {"Stacks": [stack | {"Outputs": [output]}]},
            "s3:ListBucket": list_keys,
            "s3:GetObject": read,
        },
        region="us-east-2",
    )
    own = ("ledger", FILE, "--month", "2026-10", "--prices", str(folder / "prices.csv"))

    of_stack = ultrascale(*own)

    assert of_stack.returncode == 0, of_stack.stderr
    assert of_stack.stdout == ultrascale(*own, "--source", str(folder)).stdout
    assert {item["Bucket"] for item in aws.parameters("s3:GetObject")} == {"the-ledger"}
    assert len(aws.parameters("s3:GetObject")) == 4, "files of November are not read"
    file = tmp_path / "elsewhere.yaml"
    file.write_text(FILE.read_text().replace("region:", "account: '999988887777'\nregion:", 1))
    theirs = ("ledger", file, *own[2:])
    assert "the cluster file names account 999988887777" in ultrascale(*theirs).stderr
    # Finance reads the bucket with a role of its own account.
    read_by_name = ultrascale(*theirs, "--source", "s3://the-ledger/ledger")
    assert read_by_name.stdout == of_stack.stdout
    absent = Refusal("ValidationError", "does not exist")
    aws.answers = {**aws.answers, "cloudformation:DescribeStacks": absent}
    nothing = ultrascale(*own)
    assert nothing.returncode == 64
    assert "has no bucket of a ledger; write observability.ledger" in nothing.stderr


def test_the_file_states_the_fee_and_the_account_that_pays(
    ultrascale: Ultrascale, folder: Path, tmp_path: Path
) -> None:
    file = tmp_path / "cluster.yaml"
    text = FILE.read_text()
    for before, after in (
        ("2026-12-01T11:30:00Z", "2026-10-29T11:30:00Z"),
        ("2026-12-15T11:30:00Z", "2026-11-02T11:30:00Z\n      extended: true\n      fee: 999.99"),
        ("queueing: volcano", "queueing: volcano\n  queues: [{name: a, cost_center: '4711'}]"),
    ):
        text = text.replace(before, after)
    file.write_text(text)
    own = ("ledger", file, "--source", folder, "--from", "2026-10-29", "--until", "2026-11-03")

    answer = ultrascale(*own, "--json", "--by", "cost-center")

    assert answer.returncode == 0, answer.stderr
    document = json.loads(answer.stdout)
    assert document["cents"] == 99999
    assert {"4711", "(namespace ns-b)"} <= {group["name"] for group in document["groups"]}
    assert "a fee of 999.99, by the cluster file" in " ".join(document["prices"])
