"""`ultrascale capacity`, as its user sees it."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from unittest.mock import Mock

import pytest
import yaml

from tests.support.account import connects
from tests.support.cases import rows
from tests.support.command_line import Answer, run
from tests.support.fake_aws import FakeAws, Told, denied
from tests.support.offers import AT, BLOCK, BLOCKS, NOT_HELD, PLANS, RESERVATION, answers
from tests.support.pools import SYSTEM_POOL, as_text, make_document, pool_document
from tests.support.price_list import HEADER
from ultrascale.cli import capacity
from ultrascale.offers.purchase import BLOCK_ACTION, PLAN_ACTION, UnsureError

SEARCH = ("--region", "us-west-2", "--type", "p5.48xlarge", "--count", "16", "--days", "7")
ID = "cb-0a1b2c3d4e5f60718"
BUY = ("buy", ID, "--option", "capacity-block", *SEARCH)
EMPTY: dict[str, Told] = {
    "blocks": {"CapacityBlockOfferings": []},
    "plans": {"TrainingPlanOfferings": []},
    "scores": {"SpotPlacementScores": []},
    "prices": {"SpotPriceHistory": []},
}

Capacity = Callable[..., tuple[Answer, FakeAws]]


@pytest.fixture
def capacity_(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Capacity:
    """Runs the command against an account that answers as `tests.support.offers.answers` does."""

    def command(*arguments: str | Path, **changes: Told) -> tuple[Answer, FakeAws]:
        arn = "arn:aws:sagemaker:us-west-2:918273645546:training-plan/baseline"
        sold: dict[str, Told] = {
            BLOCK_ACTION: {"CapacityReservation": RESERVATION},
            PLAN_ACTION: {"TrainingPlanArn": arn},
        }
        told = {**answers(**changes), **NOT_HELD, **sold}
        aws = connects(monkeypatch, told, profiles=(None, "our prod"))
        monkeypatch.setattr(capacity, "now", lambda: AT)
        return run("capacity", *arguments, monkeypatch=monkeypatch, capsys=capsys), aws

    return command


# --- find ---------------------------------------------------------------------------------------


def test_offers_are_shown_with_all_that_decides_between_them(capacity_: Capacity) -> None:
    answer, _ = capacity_(*SEARCH)

    rows = [line.split() for line in answer.stdout.splitlines()]
    options = [
        row[0] for row in rows if row and row[0] in {"spot", "capacity-block", "training-plan"}
    ]
    # 25.50 an hour, 88,000 / 16 / 167.33 hours, 90,000 / 16 / 167 hours.
    assert options == ["spot", "capacity-block", "training-plan"]
    (block,) = (row for row in rows if row[:1] == ["capacity-block"])
    assert block == [
        *("capacity-block", "p5.48xlarge", "us-west-2b", "usw2-az2"),
        *("2026-12-01", "11:30", "2026-12-08", "11:30"),
        *("16", "167.3", "$88,000.00", "$32.87", "0.60", ID),
    ]
    assert "On-Demand: p5.48xlarge in us-west-2: $55.04 an hour on 2025-09-01" in answer.stdout
    assert answer.returncode == 0


def test_the_command_that_shows_the_terms_is_printed_whole(capacity_: Capacity) -> None:
    """A search is found again by its own options only."""
    answer, _ = capacity_(*SEARCH, "--starts", "2026-11-25", "--sort", "start")
    assert (
        f"ultrascale capacity buy {ID} --option capacity-block --region us-west-2 "
        "--type p5.48xlarge --count 16 --days 7 --starts 2026-11-25T00:00:00Z --fee 88000.00"
    ) in answer.stdout


def test_a_source_that_was_denied_is_a_line_with_its_permission(capacity_: Capacity) -> None:
    answer, _ = capacity_(*SEARCH, plans=denied(PLANS))
    (line,) = (each for each in answer.stdout.splitlines() if each.startswith("unknown: "))
    assert line.startswith(f"unknown: training plans of 16 x p5.48xlarge in us-west-2: {PLANS}")
    assert line.endswith(f"allow {PLANS} in a policy")
    assert answer.returncode == 0


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (EMPTY, "nothing is on offer\n"),
        (EMPTY | {"blocks": denied(BLOCKS)}, "no offer is known, and not all was answered:\n"),
    ],
)
def test_nothing_on_offer_has_a_status_of_its_own_and_is_not_said_of_what_is_unknown(
    capacity_: Capacity, changes: dict[str, Told], told: str
) -> None:
    answer, _ = capacity_("find", *SEARCH, **changes)
    assert answer.stdout.startswith(told)
    assert answer.returncode == capacity.NOTHING_FOUND


def test_each_window_of_an_offer_in_parts_is_shown(capacity_: Capacity) -> None:
    """The first zone and the last end alone hide a gap of days and a move to another zone."""
    parts = [
        BLOCK | {"EndDate": BLOCK["StartDate"] + timedelta(days=3)},
        BLOCK
        | {"StartDate": BLOCK["EndDate"] - timedelta(days=3), "AvailabilityZone": "us-west-2c"},
    ]
    keys = ("InstanceType", "AvailabilityZone", "InstanceCount", "StartDate", "EndDate")
    segments = [{key: part[key] for key in keys} for part in parts]

    answer, _ = capacity_(
        *SEARCH,
        blocks={"CapacityBlockOfferings": [BLOCK | {"CapacityBlockOfferingSegments": segments}]},
    )

    for line in (
        f"{ID}: 16 nodes in us-west-2b from 2026-12-01 11:30 until 2026-12-04 11:30",
        f"{ID}: 16 nodes in us-west-2c from 2026-12-05 11:30 until 2026-12-08 11:30",
    ):
        assert line in answer.stdout


def test_programs_read_all_of_it_as_json(capacity_: Capacity) -> None:
    answer, _ = capacity_(*SEARCH, "--region", "us-east-1", "--json", plans=denied(PLANS))

    document = json.loads(answer.stdout)
    assert document["at"] == "2026-11-21T09:00:00Z"
    block = next(each for each in document["offers"] if each["option"] == "capacity-block")
    assert (block["id"], block["fee"], block["zone_id"]) == (ID, 88000.0, "usw2-az2")
    assert block["usable_hours"] == pytest.approx(7 * 24 - 40 / 60)
    assert block["parts"][0]["usable_until"] == "2026-12-08T10:50:00Z"
    assert {each["action"] for each in document["unknown"]} == {PLANS}
    prices = {each["region"]: each["usd_per_hour"] for each in document["on_demand"]}
    assert prices == {"us-west-2": 55.04, "us-east-1": 55.04}


def test_the_pools_of_a_file_are_asked_for(capacity_: Capacity, tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(as_text(make_document(pools=[SYSTEM_POOL, pool_document()])))
    answer, aws = capacity_(file, "train", "--days", "7")
    (asked,) = aws.parameters(BLOCKS)
    assert (asked["InstanceType"], asked["InstanceCount"]) == ("p5.48xlarge", 16)
    assert ["capacity-block", "train"] in [line.split()[:2] for line in answer.stdout.splitlines()]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], ["--region: missing", "--type: missing", "--count: missing", "--days: missing"]),
        ([*SEARCH, "--sort", "zone"], ["--sort: unknown 'zone'; write price or start"]),
        ([*SEARCH, "--days", "15", "--sort", "x"], ["--sort: unknown", "--days: Capacity Blocks"]),
    ],
)
def test_bad_input_is_told_all_at_once_and_exits_1(
    capacity_: Capacity, arguments: list[str], told: list[str]
) -> None:
    answer, aws = capacity_(*arguments)
    lines = answer.stderr.splitlines()
    assert answer.returncode == 1
    assert len(lines) == len(told)
    assert all(line.startswith(part) for line, part in zip(lines, told, strict=True))
    assert aws.calls == []


def test_an_offer_that_no_cluster_can_use_is_shown_with_the_reason_and_not_to_be_bought(
    capacity_: Capacity,
) -> None:
    search = ("--region", "us-west-2", "--type", "trn2u.48xlarge", "--count", "4", "--days", "7")
    blocks = {
        "CapacityBlockOfferings": [BLOCK | {"InstanceType": "trn2u.48xlarge", "InstanceCount": 4}]
    }
    only = ("--option", "capacity-block")

    shown, _ = capacity_(*search, *only, blocks=blocks)
    asked, aws = capacity_("buy", ID, *search, *only, "--confirm", ID, blocks=blocks)

    assert f"{ID}: CANNOT BE USED: " in shown.stdout
    assert "capacity buy" not in shown.stdout
    assert shown.returncode == capacity.NOTHING_FOUND
    assert f"{ID}: not bought: it cannot be used: " in asked.stderr
    assert asked.returncode == 1
    assert BLOCK_ACTION not in aws.actions


def test_an_offer_for_a_pool_is_held_against_its_file_when_it_is_bought(
    capacity_: Capacity, tmp_path: Path
) -> None:
    file = tmp_path / "cluster.yaml"
    document = make_document(pools=[SYSTEM_POOL, pool_document()])
    file.write_text(as_text(document))
    elsewhere = {"CapacityBlockOfferings": [BLOCK | {"AvailabilityZone": "us-west-2d"}]}
    of_pool = ("--file", str(file), "--pool", "train", "--confirm", ID)

    found, _ = capacity_(file, "train", "--days", "7")
    bought, aws = capacity_(*BUY, *of_pool, blocks=elsewhere)
    other, _ = capacity_(*BUY, "--file", str(file), "--pool", "nobody")
    half, _ = capacity_(*BUY, "--pool", "train")

    assert f"--file {file} --pool train" in found.stdout
    assert "pool train: " in bought.stderr
    assert BLOCK_ACTION not in aws.actions
    assert "--pool: no such pool, got 'nobody'" in other.stderr
    assert "--pool: means a pool of a cluster file; add --file" in half.stderr


# --- buy ----------------------------------------------------------------------------------------


def test_without_confirm_the_terms_are_shown_and_nothing_is_bought(capacity_: Capacity) -> None:
    answer, aws = capacity_(*BUY)
    assert answer.returncode == 1
    assert "fee      88,000.00 USD up front" in answer.stderr
    assert "Concurrent P5 Capacity Blocks per account (L-DA6814F2): 4 in all" in answer.stderr
    assert f"--fee 88000.00 --confirm {ID}" in answer.stderr
    assert BLOCK_ACTION not in aws.actions


def test_each_printed_command_names_the_profile_whose_account_pays(capacity_: Capacity) -> None:
    """Without it, what was seen in one account is bought in another."""
    find, _ = capacity_(*SEARCH, "--profile", "our prod")
    terms, _ = capacity_(*BUY, "--profile", "our prod", "--name", "train")
    assert "--fee 88000.00 --profile 'our prod'\n" in find.stdout
    assert f"--fee 88000.00 --profile 'our prod' --name train --confirm {ID}\n" in terms.stderr


def test_a_block_is_bought_behind_its_own_id_and_prints_the_keys_of_its_pool(
    capacity_: Capacity,
) -> None:
    answer, aws = capacity_(*BUY, "--fee", "88000", "--confirm", ID)

    actions = [action for action, *_ in aws.calls]
    assert answer.returncode == 0
    assert yaml.safe_load(answer.stdout)["purchase"]["option"] == "capacity-block"
    assert "fee      88,000.00 USD up front" in answer.stderr
    assert "asking AWS once; should no word of it follow, look at: aws ec2" in answer.stderr
    assert f"--filters Name=tag:ultrascale.dev/offering,Values={ID}" in answer.stderr
    assert actions.count(BLOCK_ACTION) == 1
    # The offer was asked for before it was bought.
    assert actions.index(BLOCKS) < actions.index(BLOCK_ACTION)


@rows(
    "arguments, changes, told",
    {
        "other id": (["--confirm", "cb-2"], {}, "--confirm: not the id of the offering, got"),
        "no fee": (["--confirm", ID, "--fee", "8.8e4x"], {}, "--fee: not a number"),
        "bad name": (["--confirm", ID, "--name", "a_b"], {}, "--name: got 'a_b'"),
        "spot": (["--confirm", ID, "--option", "spot"], {}, "--option: spot is not bought"),
        "other fee": (["--confirm", ID, "--fee", "87000"], {}, "not bought: its fee is 88,000.00"),
        "gone": (["--confirm", ID], EMPTY, "not bought: AWS does not offer it"),
        "denied": (["--confirm", ID], {"blocks": denied(BLOCKS)}, "not found without them"),
    },
)
def test_what_is_not_exactly_what_was_seen_is_not_bought(
    capacity_: Capacity, arguments: list[str], changes: dict[str, Told], told: str
) -> None:
    answer, aws = capacity_(*BUY, *arguments, **changes)
    assert answer.returncode == 1
    assert told in answer.stderr
    assert not {BLOCK_ACTION, PLAN_ACTION} & aws.actions


def test_a_purchase_without_an_answer_has_a_status_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capacity_: Capacity
) -> None:
    """A script that takes it for a failure and tries again pays twice."""
    monkeypatch.setattr(
        "ultrascale.offers.purchase.buy", Mock(side_effect=UnsureError("not known"))
    )
    answer, _ = capacity_(*BUY, "--confirm", ID)
    assert (answer.returncode, answer.stdout) == (capacity.NOT_KNOWN, "")
    assert answer.stderr.endswith("not known\n")


def test_offers_are_held_against_the_users_price_and_a_missing_one_names_its_command(
    capacity_: Capacity, tmp_path: Path
) -> None:
    file = tmp_path / "prices.csv"
    row = "us-west-2,ec2,p5.48xlarge,hour,32.87,USD,2026-11-01,contract"
    file.write_text(f"{HEADER}\n{row}\n")

    own, _ = capacity_(*SEARCH, "--prices", file)
    missing, _ = capacity_(*SEARCH, "--region", "eu-west-1")

    assert "On-Demand: p5.48xlarge in us-west-2: $32.87 an hour on 2026-11-01" in own.stdout
    (block,) = (row for row in own.stdout.splitlines() if row.split()[:1] == ["capacity-block"])
    assert "1.00" in block
    assert "get it with: ultrascale prices eu-west-1 -o prices.csv" in missing.stdout
