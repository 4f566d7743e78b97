"""`ultrascale prices` and the option `--prices`, as their user sees them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.account import connects
from tests.support.command_line import Ultrascale
from tests.support.fake_aws import FakeAws, Told, denied
from tests.support.folders import ROOT
from tests.support.price_list import HEADER, P5, product
from ultrascale.pricing.products import ACTION

HYBRID = ROOT / "clusters" / "hybrid-hyperpod.yaml"
AT = ("--at", "2026-11-22T00:00Z")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Callable[[Told], FakeAws]:
    """Let `ultrascale prices` ask an account that answers what a test tells it to."""

    def answers(told: Told) -> FakeAws:
        return connects(monkeypatch, {ACTION: told}, region="us-east-1")

    return answers


def of_ec2(*products: dict[str, Any]) -> Told:
    page = {"FormatVersion": "aws_v1", "PriceList": [json.dumps(each) for each in products]}
    return lambda asked: page if asked["ServiceCode"] == "AmazonEC2" else {"PriceList": []}


def test_prices_are_written_and_taken_before_the_catalogs(
    ultrascale: Ultrascale, asked: Any, tmp_path: Path
) -> None:
    asked(of_ec2(product("p4d.24xlarge", "10"), product("m5.large", "1")))
    file = tmp_path / "prices.csv"

    answer = ultrascale("prices", "us-east-1", HYBRID, "-o", file)

    assert (answer.returncode, answer.stderr) == (0, "")
    assert file.read_text().splitlines()[0] == HEADER
    # m5.large is in no pool.
    assert [line.split(",")[2] for line in file.read_text().splitlines()[1:]] == ["p4d.24xlarge"]
    assert answer.stdout.startswith(f"{file}: 1 prices of us-east-1")
    assert ultrascale("prices", "us-east-1", HYBRID).stdout == file.read_text()
    document = json.loads(ultrascale("plan", HYBRID, "--json", "--prices", file, *AT).stdout)
    hourly = {pool["pool"]: pool["figures"]["usd_per_hour"] for pool in document["pools"]}
    assert hourly["eks-on-demand"]["value"] == 160
    assert hourly["eks-on-demand"]["formula"].endswith("in us-east-1 on 2026-11-20")


def test_what_is_denied_names_the_permission_and_writes_nothing(
    ultrascale: Ultrascale, asked: Any, tmp_path: Path
) -> None:
    asked(denied(ACTION))
    file = tmp_path / "prices.csv"
    answer = ultrascale("prices", "us-east-1", "-o", file)
    assert answer.returncode == 1
    assert "allow pricing:GetProducts on * in a policy" in answer.stderr
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("region", "words"),
    [("us-east-9", "us-east-9"), ("cn-north-1", "CNY"), ("us-gov-west-1", "GovCloud")],
)
def test_a_region_without_prices_is_refused(
    region: str, words: str, ultrascale: Ultrascale
) -> None:
    answer = ultrascale("prices", region)
    assert answer.returncode in (1, 64)
    assert words in answer.stderr


def test_a_wrong_file_is_refused_before_anything_is_printed(
    ultrascale: Ultrascale, tmp_path: Path
) -> None:
    file = tmp_path / "prices.csv"
    file.write_text(f"{HEADER}\n{P5.replace('USD', 'EUR')}\n{P5.replace('p5.', 'p55.')}\n")
    answer = ultrascale("plan", HYBRID, "--prices", file, *AT)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert f"{file}:2:1: currency: not in US dollars, got 'EUR'" in answer.stderr
    assert f"{file}:3:1: item: unknown instance type, got 'p55.48xlarge'" in answer.stderr


@pytest.mark.parametrize(
    ("at", "words"),
    [
        ("2026-11-22T00:00Z", "1 of 1 prices are older than 90 days, the oldest 174 days"),
        # A plan for a later day, or an earlier one, takes the prices that there are now.
        ("2028-01-01T00:00Z", "the oldest 174 days"),
    ],
)
def test_old_prices_are_used_with_a_word_about_their_age(
    ultrascale: Ultrascale, tmp_path: Path, at: str, words: str
) -> None:
    file = tmp_path / "prices.csv"
    file.write_text(f"{HEADER}\n{P5.replace('2026-11-01', '2026-06-01')}\n")
    answer = ultrascale("plan", HYBRID, "--prices", file, "--at", at)
    assert answer.stdout.startswith("hybrid-hyperpod in us-east-1: ")
    assert words in answer.stderr


def test_a_file_of_another_region_is_told(ultrascale: Ultrascale, tmp_path: Path) -> None:
    """Else a user takes the catalog's sum for one of a contract."""
    file = tmp_path / "prices.csv"
    file.write_text(f"{HEADER}\n{P5.replace('us-east-1', 'us-west-2')}\n")
    for command in (("plan", HYBRID), ("report", HYBRID, "-o", "-")):
        answer = ultrascale(*command, "--prices", file, *AT)
        assert answer.returncode == 0
        assert "warning: it has no price of us-east-1, only of us-west-2" in answer.stderr


def test_the_variable_names_the_file_for_every_command(
    ultrascale: Ultrascale, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "prices.csv"
    file.write_text(f"{HEADER}\nus-east-1,ec2,p4d.24xlarge,hour,1,USD,2026-11-01,contract\n")
    monkeypatch.setenv("ULTRASCALE_PRICES", str(file))
    told = ultrascale("plan", HYBRID, "pools", *AT).stdout
    monkeypatch.setenv("ULTRASCALE_PRICES", "")
    plain = ultrascale("plan", HYBRID, "pools", *AT)

    rows = {row[0]: row for line in told.splitlines() if (row := line.split())}
    assert "16" in rows["eks-on-demand"][7:]
    assert (plain.returncode, "351.32" in plain.stdout) == (0, True)


def test_advice_counts_with_the_users_price(ultrascale: Ultrascale, tmp_path: Path) -> None:
    file = tmp_path / "prices.csv"
    rows = (
        "us-east-1,ec2,p5.48xlarge,hour,30,USD,2026-11-01,contract",
        "us-east-1,ec2-spot,p5.48xlarge,hour,20,USD,2026-11-01,mean of October",
    )
    file.write_text("\n".join([HEADER, *rows]))
    asked = (
        *("advise", "--workload", "batch-inference", "--type", "p5.48xlarge", "--nodes", "2"),
        *("--region", "us-east-1", "--zone", "us-east-1a", "--days", "1", "--json"),
    )

    own = json.loads(ultrascale(*asked, "--prices", file).stdout)
    catalog = json.loads(ultrascale(*asked).stdout)

    def costs(answer: Any) -> dict[str, Any]:
        steps = [answer["choice"], *answer["fallback"]]
        return {step["judged"]["candidate"]["option"]: step["cost"] for step in steps}

    ours, theirs = costs(own), costs(catalog)
    assert ours.keys() == theirs.keys()
    assert ours["spot"]["low"] == ours["spot"]["high"] == 2 * 24 * 20
    assert theirs["spot"]["high"] == pytest.approx(2 * 24 * 55.04)
    if "on-demand" in ours:
        assert ours["on-demand"]["high"] == 2 * 24 * 30


def test_a_place_that_cannot_be_written_is_said(
    ultrascale: Ultrascale, asked: Any, tmp_path: Path
) -> None:
    asked(of_ec2(product("p4d.24xlarge", "10")))
    answer = ultrascale("prices", "us-east-1", "-o", tmp_path / "absent" / "prices.csv")
    assert answer.returncode == 64
    assert "prices.csv cannot be written: No such file or directory" in answer.stderr


def test_a_missing_price_names_the_command_that_gets_it(ultrascale: Ultrascale) -> None:
    answer = ultrascale(
        *("advise", "--workload", "batch-inference", "--type", "g6e.48xlarge", "--nodes", "2"),
        *("--region", "us-west-2", "--zone", "us-west-2b", "--days", "1"),
    )
    assert "ultrascale prices us-west-2 -o prices.csv" in answer.stdout.replace("\n", " ")
