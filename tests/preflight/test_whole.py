"""Every check against an account that answers nothing: nothing of it may pass."""

from dataclasses import replace
from functools import cache

import pytest
from botocore.exceptions import ReadTimeoutError
from msgspec import structs

from tests.support.account import AT, fake_account
from tests.support.fake_aws import THROTTLED, Told, denied
from tests.support.folders import ROOT
from ultrascale import plan
from ultrascale.findings import Finding
from ultrascale.plan.needs.report import plan_needs
from ultrascale.preflight.checks import all_checks
from ultrascale.preflight.model import Check, Context
from ultrascale.preflight.run import run_checks

# What is told by the credentials alone.
OFFLINE = [("identity", "account", "pass")]
# The account of the roles in our own files: of another one nothing is asked.
FILES = "111122223333"


class Everything(dict[str, Told]):
    """One answer to whatever is asked."""

    def __init__(self, answer: Told | None) -> None:
        super().__init__()
        self._answer = answer

    def __contains__(self, action: object) -> bool:
        return True

    def __missing__(self, action: str) -> Told:
        return denied(action) if self._answer is None else self._answer


@cache
def context(name: str) -> Context:
    planned = plan.load(ROOT / "clusters" / f"{name}.yaml")
    account, _ = fake_account(Everything(None), region=planned.region)
    return Context(plan=planned, needs=plan_needs(planned), account=account, at=AT)


def found(name: str, answer: Told | None = None) -> tuple[tuple[Finding, ...], set[str]]:
    own = context(name)
    account, aws = fake_account(Everything(answer), region=own.plan.region)
    asking = structs.replace(own, account=replace(account, id=FILES))
    return run_checks(all_checks(), asking), aws.actions


@pytest.mark.parametrize("name", ["hybrid-hyperpod", "mixed-capacity", "ultra-100k"])
def test_nothing_passes_where_everything_is_denied(name: str) -> None:
    findings, asked = found(name)
    known = [(each.check, each.subject, each.state) for each in findings if each.state != "unknown"]
    assert known == OFFLINE
    unknown = [each for each in findings if each.state == "unknown"]
    assert {each.denied for each in unknown} <= asked
    assert all(each.fix for each in unknown if each.denied)


@pytest.mark.parametrize("answer", [THROTTLED, ReadTimeoutError(endpoint_url="https://aws.test")])
def test_nothing_passes_where_nothing_answers(answer: Exception) -> None:
    findings, _ = found("mixed-capacity", answer)
    assert [each for each in findings if each.state in ("warn", "fail")] == []
    assert [each.check for each in findings if each.state == "pass"] == ["identity"]


@pytest.mark.parametrize("check", all_checks(), ids=[check.name for check in all_checks()])
def test_a_check_asks_for_no_more_than_its_policy_allows(check: Check) -> None:
    own = context("hybrid-hyperpod")
    account, aws = fake_account(Everything(None), region=own.plan.region)
    run_checks((check,), Context(plan=own.plan, needs=own.needs, account=account, at=own.at))
    assert aws.actions <= set(check.actions)
