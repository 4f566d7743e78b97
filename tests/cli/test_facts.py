"""`ultrascale facts`, and the warnings of `check`, as their user sees them."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.command_line import Ultrascale
from tests.support.folders import ROOT
from ultrascale.cli import options

SERVING = ROOT / "clusters" / "serving.yaml"


def test_a_file_that_rests_on_an_expired_fact_ends_with_3(ultrascale: Ultrascale) -> None:
    answer = ultrascale("facts", SERVING, "--expired", "--at", "2026-12-05T00:00Z", "--json")
    assert answer.returncode == 3
    document = json.loads(answer.stdout)
    release = next(fact for fact in document["facts"] if fact["kind"] == "ami-release")
    assert release["value"] == "1.35.8-20260930"
    assert (release["seen"], release["age_days"], release["expired"]) == ("2026-10-06", 60, True)
    assert "pools.gpu" in release["used_by"]
    assert document["expired_count"] == len(document["facts"]) < document["count"]


def test_facts_that_expire_soon_are_counted_within_days(ultrascale: Ultrascale) -> None:
    at = ("--at", "2026-11-30T00:00Z", "--json", "--expired")
    now, soon = (
        json.loads(ultrascale("facts", SERVING, *at, "--within", days).stdout)["expired_count"]
        for days in ("0d", "30d")
    )
    assert now < soon


def test_prices_of_today_take_the_place_of_expired_ones(
    ultrascale: Ultrascale, tmp_path: Path
) -> None:
    file = tmp_path / "prices.csv"
    columns = "region,service,item,unit,price,currency,valid_on,source"
    rows = (f"us-east-1,{item},hour,0.1,USD,2026-11-20,mine" for item in ("eks,cluster",))
    file.write_text("\n".join((columns, *rows, "")))
    at = ("--at", "2026-11-22T00:00Z", "--expired", "--json")
    told = ultrascale("facts", SERVING, *at, "--prices", file)
    names = {fact["name"] for fact in json.loads(told.stdout)["facts"]}
    assert names == {"us-east-1 vpc public-ipv4"}


def test_without_a_file_all_are_listed_and_none_is_a_verdict(ultrascale: Ultrascale) -> None:
    answer = ultrascale("facts", "--at", "2030-01-01T00:00Z")
    assert answer.returncode == 0
    assert "skypilot" in answer.stdout


@pytest.mark.parametrize("words", [("--within", "soon"), ("--within", "30"), ("--at", "monday")])
def test_no_day_is_guessed(words: tuple[str, str], ultrascale: Ultrascale) -> None:
    assert ultrascale("facts", SERVING, *words).returncode == 64


def test_an_old_list_of_advisories_is_told(
    ultrascale: Ultrascale, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(options, "now", lambda: datetime(2026, 12, 12, tzinfo=UTC))
    answer = ultrascale("check", SERVING)
    assert answer.returncode == 0
    assert "advisories advisories.csv, of 2026-11-28, expired on 2026-12-12" in answer.stderr
    assert ultrascale("facts", SERVING, "--expired").returncode == 3


def test_check_warns_of_each_kind_once_and_passes(ultrascale: Ultrascale) -> None:
    answer = ultrascale("check", SERVING, "--json")
    assert answer.returncode == 0
    told = [
        row for row in json.loads(answer.stdout)["diagnostics"] if row["code"] == "expired_facts"
    ]
    assert [row["severity"] for row in told] == ["warning"]
    assert "public-ipv4" in told[0]["message"]
    assert "and 1 more of its kind" in told[0]["message"]
