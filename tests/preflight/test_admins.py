"""Roles of people: EKS refuses those that are not there, or have an entry, once it is too late."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.account import make_context
from tests.support.fake_aws import ID, Refusal, Told, denied
from ultrascale.findings import Finding
from ultrascale.preflight.access import ACCESS_ENTRIES, ADMINS
from ultrascale.preflight.model import Check
from ultrascale.preflight.run import run_checks

GET = "iam:GetRole"
ADMIN = f"arn:aws:iam::{ID}:role/Admin"
PATH = f"arn:aws:iam::{ID}:role/aws-reserved/sso.amazonaws.com/us-west-2/Admin"


def role(arn: str) -> Mapping[str, Any]:
    own = {"Path": "/", "RoleName": "Admin", "RoleId": "A" * 16, "Arn": arn, "CreateDate": 0}
    return {"Role": own}


SET = f"arn:aws:iam::{ID}:role/aws-reserved/sso.amazonaws.com/AWSReservedSSO_Dev_0123456789abcdef"


def found(answer: Told, *admins: str) -> tuple[Finding, ...]:
    kubernetes = {"version": "1.35", "admins": [*admins]}
    return run_checks((ADMINS,), make_context({GET: answer}, kubernetes=kubernetes))


@pytest.mark.parametrize(
    ("arn", "answer", "state", "told"),
    [
        (ADMIN, role(ADMIN), "pass", "it is there"),
        (PATH, role(PATH), "pass", "it is there"),
        (ADMIN, role(PATH), "fail", f"its ARN is {PATH} in the account"),
        (ADMIN, Refusal("NoSuchEntity"), "fail", "there is no such role"),
        (ADMIN, denied(GET), "unknown", "denied"),
    ],
)
def test_a_role_that_eks_would_refuse_is_found(
    arn: str, answer: Told, state: str, told: str
) -> None:
    (finding,) = found(answer, arn)
    assert (finding.subject, finding.state) == (arn, state)
    assert told in finding.evidence
    assert (finding.fix is None) == (state == "pass")


def test_one_role_that_is_denied_or_of_another_account_hides_no_other() -> None:
    foreign = "arn:aws:iam::304871926650:role/Admin"
    other = ADMIN.replace("Admin", "Other")
    first, second, third = found([denied(GET), role(ADMIN)], other, ADMIN, foreign)
    assert (first.state, second.state) == ("unknown", "pass")
    assert (third.subject, third.state) == (foreign, "warn")


def with_access(check: Check, answers: Mapping[str, Told], *roles: str) -> tuple[Finding, ...]:
    access = [{"role": role, "policy": "view"} for role in roles]
    return run_checks((check,), make_context(answers, kubernetes={"access": access}))


def test_a_role_with_a_level_of_access_is_looked_for_too() -> None:
    (finding,) = with_access(ADMINS, {GET: role(PATH)}, ADMIN)
    assert finding.state == "fail"
    assert finding.fix == f"write {PATH} in kubernetes.access"


def test_a_permission_set_that_was_assigned_again_is_told_with_its_new_role() -> None:
    new, other = SET.replace("abcdef", "000000"), SET.replace("_Dev_", "_Dev_Ops_")
    listed = {"Roles": [role(arn)["Role"] | {"RoleName": name_of(arn)} for arn in (other, new)]}
    answers: dict[str, Told] = {GET: Refusal("NoSuchEntity"), "iam:ListRoles": listed}
    (finding,) = with_access(ADMINS, answers, SET)
    assert finding.state == "fail"
    assert finding.fix == f"write {new} in kubernetes.access"


LIST, ENTRY = "eks:ListAccessEntries", "eks:DescribeAccessEntry"
HELD = "cloudformation:ListStackResources"
MADE, LATER = datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 2, tzinfo=UTC)


def name_of(arn: str) -> str:
    return arn.rpartition("/")[2]


def entries(
    *listed: str, held: Sequence[str] | None = (), role_made: datetime = MADE
) -> dict[str, Told]:
    """Return the answers about a cluster with entries, those ``held`` from the stack."""
    resources = [
        {
            "PhysicalResourceId": f"{arn}|research",
            "LogicalResourceId": "Entry",
            "ResourceType": "AWS::EKS::AccessEntry",
            "LastUpdatedTimestamp": 0,
            "ResourceStatus": "CREATE_COMPLETE",
        }
        for arn in held or ()
    ]
    gone = Refusal("ValidationError", "Stack with id research-access does not exist")
    return {
        LIST: {"accessEntries": [*listed]},
        HELD: gone if held is None else {"StackResourceSummaries": resources},
        ENTRY: {"accessEntry": {"createdAt": MADE}},
        GET: {"Role": role(ADMIN)["Role"] | {"CreateDate": role_made}},
    }


@pytest.mark.parametrize("held", [(), None], ids=["other entries", "no stack yet"])
def test_an_entry_that_somebody_else_made_is_told_before_eks_refuses_ours(
    held: Sequence[str] | None,
) -> None:
    finding, _ = with_access(ACCESS_ENTRIES, entries(ADMIN, held=held), ADMIN)
    own = with_access(ACCESS_ENTRIES, entries(ADMIN, held=[ADMIN]), ADMIN)
    early = with_access(ACCESS_ENTRIES, {LIST: Refusal("ResourceNotFoundException")}, ADMIN)

    assert (finding.subject, finding.state) == (ADMIN, "fail")
    assert "ResourceInUseException" in finding.evidence
    assert finding.fix is not None
    assert f"delete-access-entry --cluster-name research --principal-arn {ADMIN}" in finding.fix
    # Entries of the stack pass, and before the cluster is made there are none.
    assert [each.state for each in (*own, *early)] == ["pass"] * 3


def test_a_role_that_is_newer_than_its_entry_is_locked_out() -> None:
    answers = entries(ADMIN, held=[ADMIN], role_made=LATER)
    finding, _ = with_access(ACCESS_ENTRIES, answers, ADMIN)
    assert finding.state == "fail"
    assert "made anew at 2026-11-02 00:00 UTC" in finding.evidence


def test_entries_that_the_file_does_not_state_are_told() -> None:
    stranger = f"arn:aws:iam::{ID}:role/Stranger"
    services = (
        f"arn:aws:iam::{ID}:role/aws-service-role/eks.amazonaws.com/AWSServiceRoleForAmazonEKS"
    )
    own = f"arn:aws:iam::{ID}:role/research-platform-ManifestsRole1A2B-3c4d"
    (finding,) = with_access(ACCESS_ENTRIES, entries(stranger, services, own), ADMIN)
    assert finding.state == "warn"
    assert finding.evidence.endswith(f"have access entries: {stranger}")
