"""`ultrascale preflight`, as its user sees it."""

import json
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from tests.support.account import connects
from tests.support.command_line import Terminal, Ultrascale
from tests.support.fake_aws import ID, THROTTLED, FakeAws, Told, denied
from tests.support.folders import ROOT
from tests.support.needs import FLEET_BEYOND_LIMITS
from tests.support.pools import (
    CAPACITY_BLOCK,
    ON_DEMAND,
    SYSTEM_POOL,
    as_text,
    make_document,
    pool_document,
)
from ultrascale.findings import Finding, State
from ultrascale.preflight import checks
from ultrascale.preflight.model import Check, Context
from ultrascale.preflight.quota_usage import GET
from ultrascale.preflight.quotas import FILE, HISTORY

VPCS, REGIONS = "ec2:DescribeVpcs", "ec2:DescribeRegions"


ADMINS = {"admins": [f"arn:aws:iam::{ID}:role/Admin"]}
OWN_BLOCK = CAPACITY_BLOCK | {"reservation": "cr-0f3c9a7be41d28650"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A cluster file without a word of documentation."""
    return written(tmp_path)


def written(folder: Path, **changes: object) -> Path:
    path = folder / "cluster.yaml"
    train = pool_document(purchase=ON_DEMAND, nodes={"max": 4})
    document = make_document(**{"kubernetes": ADMINS, "pools": [SYSTEM_POOL, train], **changes})
    path.write_text(as_text(document))
    return path


def has(monkeypatch: pytest.MonkeyPatch, told: dict[str, Told], *found: Check) -> FakeAws:
    monkeypatch.setattr(checks, "all_checks", lambda: found)
    return connects(monkeypatch, told)


def finds(*states: State, subject: str = "it") -> Check:
    def look(_: Context) -> Iterator[Finding]:
        for state in states:
            fix = None if state == "pass" else f"mend {state}"
            yield Finding(check="c", subject=subject, state=state, evidence="seen", fix=fix)

    return Check(name="c", title="c", actions=(), run=look)


def asks(context: Context) -> Iterator[Finding]:
    context.account.ask(context.account.client("ec2").describe_vpcs)
    yield Finding(check="a", subject="it", state="pass", evidence="answered")


ASKS = Check(name="a", title="VPCs", actions=(VPCS,), run=asks)


# --- what stops it before it asks ---------------------------------------------------------------


def test_an_example_is_refused_with_every_key_before_anything_is_asked(
    ultrascale: Ultrascale, monkeypatch: pytest.MonkeyPatch
) -> None:
    aws = has(monkeypatch, {}, ASKS)
    answer = ultrascale("preflight", ROOT / "clusters" / "trainium-bert.yaml")
    first, second, *_ = answer.stderr.splitlines()
    assert (answer.returncode, aws.calls) == (1, [])
    assert "public_cidrs[0]: 203.0.113.0" in first
    assert "admins[0]: 111122223333" in second


def test_a_window_that_is_over_is_refused(
    ultrascale: Ultrascale, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = written(tmp_path, pools=[SYSTEM_POOL, pool_document(purchase=OWN_BLOCK)])
    has(monkeypatch, {}, finds("pass"))
    before, after = (
        ultrascale("preflight", file, "--at", f"2026-12-{day}T00:00Z") for day in ("02", "20")
    )
    assert (before.returncode, after.returncode) == (0, 1)
    assert "pools[train].purchase" in after.stderr


def test_options_that_go_not_together_are_refused(ultrascale: Ultrascale, file: Path) -> None:
    answer = ultrascale("preflight", file, "--json", "--policy")
    assert (answer.returncode, "leave it out" in answer.stderr) == (64, True)


# --- what it says -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("states", "options", "status"),
    [
        (("pass", "warn"), (), 0),
        (("pass", "unknown"), (), 3),
        (("pass", "unknown"), ("--allow-unknown",), 0),
        (("unknown", "fail"), ("--allow-unknown",), 3),
    ],
)
def test_what_is_not_known_is_no_pass(
    ultrascale: Ultrascale,
    monkeypatch: pytest.MonkeyPatch,
    file: Path,
    states: tuple[State, ...],
    options: tuple[str, ...],
    status: int,
) -> None:
    has(monkeypatch, {}, finds(*states))
    assert ultrascale("preflight", file, *options).returncode == status


def test_the_worst_stands_first_and_what_to_do_below(
    ultrascale: Ultrascale, monkeypatch: pytest.MonkeyPatch, file: Path
) -> None:
    has(monkeypatch, {}, finds("pass", "warn", "fail"))

    lines = ultrascale("preflight", file).stdout.splitlines()

    states = [line.split()[0] for line in lines if "seen" in line]
    assert states == ["fail", "warn", "pass"]
    assert lines[-4:] == [
        "What to do:",
        "  it: mend fail",
        "  it: mend warn",
        "1 fail, 0 unknown, 1 warn, 1 pass",
    ]


def test_denied_calls_are_one_statement_to_add(
    ultrascale: Ultrascale, monkeypatch: pytest.MonkeyPatch, file: Path
) -> None:
    has(monkeypatch, {VPCS: denied(VPCS)}, ASKS)
    document = json.loads(ultrascale("preflight", file, "--json").stdout)
    told = ultrascale("preflight", file).stdout
    assert told.count('"Action": ["ec2:DescribeVpcs"]') == 1
    assert document["missing_permissions"]["Action"] == [VPCS]
    assert (document["status"], document["counts"]["unknown"]) == (3, 1)
    assert document["account"] == ID


@pytest.mark.parametrize(("state", "status"), [("fail", 2), ("pass", 0)])
def test_what_aws_publishes_for_nobody_is_a_status_of_its_own(
    ultrascale: Ultrascale, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, state: Any, status: int
) -> None:
    has(monkeypatch, {}, finds(state, subject="L-BB24F6E5 Network Address Usage"))
    answer = ultrascale("preflight", written(tmp_path, **FLEET_BEYOND_LIMITS))
    assert answer.returncode == status


def test_the_policy_is_printed_without_an_account(ultrascale: Ultrascale) -> None:
    file = ROOT / "clusters" / "hybrid-hyperpod.yaml"
    read, write = (
        json.loads(ultrascale("preflight", file, "--policy", *more).stdout)
        for more in ((), ("--request-quotas",))
    )
    assert GET in json.dumps(read)
    assert (FILE in json.dumps(read), FILE in json.dumps(write)) == (False, True)


# --- requests -----------------------------------------------------------------------------------


def short(filed: Told) -> dict[str, Told]:
    """Return an account that is short of two quotas, and answers ``filed`` to requests."""

    def get(asked: dict[str, Any]) -> dict[str, Any]:
        code = asked["QuotaCode"]
        value = 0 if code in ("L-417A185B", "L-7A658B76") else 10**9
        own = {"ServiceCode": asked["ServiceCode"], "QuotaCode": code, "QuotaName": code}
        return {"Quota": own | {"Value": value, "Adjustable": True}}

    asked = (
        *("ec2:DescribeNetworkInterfaces", "ec2:DescribeVolumes", "ec2:DescribeVpcs"),
        *("ec2:DescribeAddresses", "eks:ListClusters", "fsx:DescribeFileSystems"),
        *("servicequotas:ListServiceQuotas", "servicequotas:ListAWSDefaultServiceQuotas", HISTORY),
    )
    nothing: dict[str, Told] = {action: {} for action in asked}
    return nothing | {GET: get, FILE: filed}


CASE = {"RequestedQuota": {"Id": "r", "CaseId": "17", "Status": "CASE_OPENED"}}


def test_one_that_is_refused_keeps_none_of_the_others(
    ultrascale: Ultrascale, monkeypatch: pytest.MonkeyPatch, file: Path
) -> None:
    has(monkeypatch, short([THROTTLED, CASE]))
    answer = ultrascale("preflight", file, "--request-quotas", "--yes")
    assert answer.returncode == 3
    assert "L-417A185B L-417A185B: not filed" in answer.stderr
    assert "L-7A658B76 L-7A658B76: filed: case 17" in answer.stdout


@pytest.mark.parametrize(
    ("stdin", "options", "status", "filed"),
    [
        (Terminal("y\n"), (), 0, 2),
        (Terminal("n\n"), (), 1, 0),
        (StringIO(), (), 64, 0),
        (StringIO(), ("--yes",), 0, 2),
    ],
    ids=["yes", "no", "nobody to ask", "--yes"],
)
def test_requests_are_shown_and_nothing_is_filed_unless_the_user_agrees(
    ultrascale: Ultrascale,
    monkeypatch: pytest.MonkeyPatch,
    file: Path,
    stdin: StringIO,
    options: tuple[str, ...],
    status: int,
    filed: int,
) -> None:
    aws = has(monkeypatch, short(CASE))
    monkeypatch.setattr(sys, "stdin", stdin)

    answer = ultrascale("preflight", file, "--request-quotas", *options)

    assert (answer.returncode, len(aws.parameters(FILE))) == (status, filed)
    assert ("add --yes" in answer.stderr) == (status == 64)
    if status != 64:
        assert "L-417A185B L-417A185B: 0 now, 768 asked for" in answer.stdout.splitlines()
    if filed:
        assert answer.stdout.splitlines()[-1] == "L-7A658B76 L-7A658B76: filed: case 17"
