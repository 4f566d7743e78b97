"""Checks against an account that keeps its state, with answers that were recorded of AWS."""

import json
from typing import Any, cast

import boto3
import pytest
from moto import mock_aws

from tests.support.pools import NEURON_POOL
from tests.support.preflight_context import NOW, pools_plan
from ultrascale.account import connect
from ultrascale.parts.keys.accesses import key_policies
from ultrascale.parts.keys.preflight import KEYS
from ultrascale.plan.needs.report import plan_needs
from ultrascale.preflight.account import OFFERINGS, ZONES
from ultrascale.preflight.model import Context
from ultrascale.preflight.network import ADDRESSES
from ultrascale.preflight.network_cards import INSTANCE_TYPES, NETWORK_CARDS
from ultrascale.preflight.run import run_checks


@mock_aws
def test_what_ec2_has_is_what_a_cluster_of_trainium_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    ec2: Any = cast("Any", boto3).client("ec2", region_name="us-west-2")
    other: str = ec2.create_vpc(CidrBlock="10.0.0.0/20")["Vpc"]["VpcId"]
    plan = pools_plan(
        NEURON_POOL | {"zones": ["us-west-2d"]},
        network={"vpc_cidr": "10.0.0.0/16", "zones": ["us-west-2a", "us-west-2d"]},
    )
    context = Context(plan=plan, needs=plan_needs(plan), account=connect("us-west-2"), at=NOW)

    findings = run_checks((ZONES, OFFERINGS, INSTANCE_TYPES, NETWORK_CARDS, ADDRESSES), context)

    wrong = {each.subject: each.evidence for each in findings if each.state != "pass"}
    assert wrong == {"ranges": f"overlapping: 10.0.0.0/16 and 10.0.0.0/20 of {other}"}
    assert len(findings) == 2 + 2 + 2 + 1 + 1


@mock_aws
def test_a_key_with_the_statements_of_plan_lets_in_who_uses_it_until_it_is_disabled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A security team's first day, and its last."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    kms: Any = cast("Any", boto3).client("kms", region_name="us-west-2")
    account = connect("us-west-2")
    arn: str = kms.create_key()["KeyMetadata"]["Arn"]
    plan = pools_plan(keys={"volumes": arn, "secrets": arn, "logs": arn})
    context = Context(plan=plan, needs=plan_needs(plan), account=account, at=NOW)

    def state() -> tuple[str, str]:
        (finding,) = run_checks((KEYS,), context)
        return finding.state, finding.evidence

    before = state()
    (policy,) = key_policies(plan, account.id)
    document = {"Version": "2012-10-17", "Statement": policy.statements}
    kms.put_key_policy(KeyId=arn, PolicyName="default", Policy=json.dumps(document))
    with_policy = state()
    kms.disable_key(KeyId=arn.rpartition("/")[2])

    # The policy that KMS makes leaves the account to IAM, which reaches no service.
    assert before[0] == "fail"
    assert "CloudWatch Logs may not use the key" in before[1]
    assert "the role of CloudFormation may not" not in before[1]
    assert with_policy[0] == "pass"
    assert "KeyState is Disabled" in state()[1]
