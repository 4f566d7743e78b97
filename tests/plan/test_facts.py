"""Facts that expire: a price, an AMI or a page of last year is told, and no template notices."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from functools import cache
from pathlib import Path

import msgspec
import pytest

from tests.support.folders import ROOT
from ultrascale import plan
from ultrascale.catalog import addons, advisories, eks, lives, prices, tables, upgrades, versions
from ultrascale.plan.facts import Fact, all_facts, facts_of

TODAY = date(2026, 11, 30)
# Kinds that an account alone states.
_OF_ACCOUNTS = {"allocatable", "hardware", "network-cards", "spot-price", "start-time"}


@cache
def used(name: str) -> Sequence[Fact]:
    return facts_of(plan.load(ROOT / "clusters" / f"{name}.yaml"))


def names(name: str, kind: str) -> set[str]:
    return {fact.name for fact in used(name) if fact.kind == kind}


def test_no_fact_becomes_good_again_by_waiting() -> None:
    facts = all_facts()
    counts = [
        sum(fact.has_expired(TODAY + timedelta(days=ahead)) for fact in facts)
        for ahead in range(400)
    ]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]


def test_every_kind_that_ages_has_facts_of_which_all_state_source_and_day() -> None:
    facts = all_facts()
    assert {fact.kind for fact in facts} == {kind for kind, _ in lives.lives()} - _OF_ACCOUNTS
    for fact in facts:
        assert fact.source.startswith("https://"), fact
        assert date(2024, 1, 1) < fact.seen <= TODAY, fact
        assert fact.expires > fact.seen, fact


def test_a_life_of_one_fact_is_of_a_fact_that_is_there() -> None:
    known = {(fact.kind, fact.name) for fact in all_facts()}
    assert {(kind, name) for kind, name in lives.lives() if name} <= known


_READERS: dict[str, tuple[str, Callable[[], object]]] = {
    "images.csv": ("2026-08-20", versions.images.__wrapped__),
    "charts.csv": ("2026-11-14", versions.charts.__wrapped__),
    "ami_releases.csv": ("2026-10-06", versions.ami_releases.__wrapped__),
    "image_contents.csv": ("2026-11-28", advisories.image_contents.__wrapped__),
    "readings.csv": ("2026-11-28", lives.readings.__wrapped__),
    "prices.csv": ("2025-09-01", prices.catalog_prices.__wrapped__),
    "addons.json": ("2026-11-21", addons.known_addons.__wrapped__),
    "sources.csv": ("2026-01-22", tables.sources.__wrapped__),
}


@pytest.mark.parametrize("table", _READERS)
def test_a_fact_without_its_day_is_refused(
    table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    day, read = _READERS[table]
    shutil.copytree(tables.FOLDER, tmp_path, dirs_exist_ok=True)
    for module in (tables, prices):
        monkeypatch.setattr(module, "FOLDER", tmp_path)
    monkeypatch.setattr(tables.read_table, "__defaults__", (tmp_path,))
    assert read()
    text = (tmp_path / table).read_text()
    assert day in text
    (tmp_path / table).write_text(text.replace(day, "", 1))
    with pytest.raises((msgspec.ValidationError, ValueError)):
        read()


def test_a_file_rests_on_its_own_versions_types_and_services() -> None:
    assert names("serving", "ami-release") == {"1.35"}
    assert names("serving", "advisories") == {"advisories.csv"}
    assert {"karpenter", "keda", "gateway"} <= names("serving", "chart")
    assert {fact.name: fact.used_by for fact in used("serving")}["keda"] == ("services",)
    assert not names("trainium-bert", "chart") | names("trainium-bert", "advisories")
    assert {"etcd-v2", "neuron-device-plugin"} <= names("trainium-bert", "image")
    assert names("ultra-100k", "tier") == {"tier-8xl"}
    assert names("hybrid-hyperpod", "hyperpod-minor")
    assert names("mixed-capacity", "offer") >= {"capacity_block_regions", "ec2_regions"}
    assert "capacity_block_regions" not in names("serving", "offer")
    assert "us-west-2 ec2 trn1.32xlarge" in names("trainium-bert", "price")


def test_a_reading_states_what_its_table_states() -> None:
    read = {(row.kind, row.name): row for row in lives.readings()}
    ends = {name: row.ends for (kind, name), row in read.items() if kind == "end-of-support"}
    assert ends == upgrades.STANDARD_SUPPORT_ENDS
    newest = read["hyperpod-minor", "newest"]
    assert (newest.value, newest.seen) == (eks.LATEST_HYPERPOD_VERSION, eks.PAGED_HYPERPOD_DAY)
    tiers = {name: row.value for (kind, name), row in read.items() if kind == "tier"}
    assert tiers == {
        name: f"{most.api_seats:,} seats, {most.pods_per_second} pods/s, {most.database_gb} GB"
        for name, most in eks.TIER_LIMITS.items()
    }
    sold = {name: row.source for (kind, name), row in read.items() if kind == "offer"}
    urls = {source.url: source for source in tables.sources().values()}
    columns = {*tables.read_table("offers.csv")[0]} - {"instance_type"}
    assert columns == {*sold}
    for (kind, name), row in read.items():
        assert kind != "offer" or urls[row.source].seen == row.seen, name


def test_an_end_of_support_is_its_own_expiry() -> None:
    (end,) = (fact for fact in used("serving") if fact.kind == "end-of-support")
    assert end.value == str(end.expires) == "2027-03-27"


def test_synthesis_loads_nothing_that_judges_an_age() -> None:
    program = (
        "import sys, json; import ultrascale_stacks.app, ultrascale.plan as plan\n"
        "from pathlib import Path; plan.load(Path('clusters/serving.yaml'))\n"
        "print(json.dumps([name for name in sys.modules if name.startswith('ultrascale')]))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded: list[str] = json.loads(answer.stdout)
    assert "ultrascale.plan.facts" not in loaded
    assert not [name for name in loaded if name.startswith("ultrascale.cli")]


def test_a_recorded_fact_ages_in_place_of_the_catalogs(tmp_path: Path) -> None:
    file = tmp_path / "recorded.yaml"
    shutil.copyfile(ROOT / "clusters" / "serving.yaml", file)
    rows = [{"fact": "end-of-support", "of": "1.35", "value": "2027-05-01", "seen": "2026-11-30"}]
    file.write_text(file.read_text() + f"\nfacts: {json.dumps(rows)}\n")
    (end,) = (fact for fact in facts_of(plan.load(file)) if fact.kind == "end-of-support")
    assert (end.expires, end.used_by) == (date(2027, 5, 1), ("facts",))
