"""A boundary that is not there fails the first stack with a role, which is that of the network."""

from typing import Any

import pytest

from tests.support.account import make_context
from tests.support.fake_aws import ID, Refusal, Told, denied
from ultrascale.findings import Finding
from ultrascale.preflight.access import BOUNDARY
from ultrascale.preflight.run import run_checks

GET = "iam:GetPolicy"
ARN = f"arn:aws:iam::{ID}:policy/roles"


def policy(**changes: Any) -> dict[str, Any]:
    return {"Policy": {"PolicyName": "roles", "Arn": ARN, "IsAttachable": True} | changes}


def found(answer: Told, **file: Any) -> tuple[Finding, ...]:
    return run_checks((BOUNDARY,), make_context({GET: answer}, **file))


@pytest.mark.parametrize(
    ("answer", "state", "told"),
    [
        (policy(), "pass", "it is there"),
        (policy(IsAttachable=False), "fail", "IsAttachable is false: IAM cannot attach it"),
        (Refusal("NoSuchEntity"), "fail", "there is no such policy"),
        (denied(GET), "unknown", "denied"),
    ],
)
def test_a_boundary_that_iam_would_refuse_is_found(answer: Told, state: str, told: str) -> None:
    (finding,) = found(answer, permissions_boundary="roles")
    assert (finding.subject, finding.state) == (ARN, state)
    assert told in finding.evidence
    assert (finding.fix is None) == (state == "pass")


def test_a_file_without_a_boundary_asks_for_none() -> None:
    assert found(denied(GET)) == ()
