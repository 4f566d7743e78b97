"""Roles of administrators: EKS refuses those that are not there, once the cluster is made."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.account import make_context
from tests.support.fake_aws import ID, Refusal, Told, denied
from ultrascale.preflight.iam import ADMINS
from ultrascale.preflight.model import Finding
from ultrascale.preflight.run import run_checks

GET = "iam:GetRole"
ADMIN = f"arn:aws:iam::{ID}:role/Admin"
PATH = f"arn:aws:iam::{ID}:role/aws-reserved/sso.amazonaws.com/us-west-2/Admin"


def role(arn: str) -> Mapping[str, Any]:
    own = {"Path": "/", "RoleName": "Admin", "RoleId": "A" * 16, "Arn": arn, "CreateDate": 0}
    return {"Role": own}


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


def test_a_role_of_another_account_is_neither_passed_nor_asked_for() -> None:
    arn = "arn:aws:iam::304871926650:role/Admin"

    mine, other = found(role(ADMIN), ADMIN, arn)

    assert (mine.state, other.subject, other.state) == ("pass", arn, "warn")


def test_one_role_that_is_denied_hides_no_other() -> None:
    first, second = found([denied(GET), role(ADMIN)], ADMIN.replace("Admin", "Other"), ADMIN)

    assert (first.state, second.state) == ("unknown", "pass")
