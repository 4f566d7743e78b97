"""Own keys: a policy that lets a principal out fails a deploy, or ends each node at its launch."""

import json
from typing import Any

import pytest

from tests.support.cases import for_each
from tests.support.fake_aws import ID, Refusal, Told, denied
from tests.support.pools import LUSTRE, pool_document
from tests.support.preflight_context import found, pools_plan
from ultrascale.findings import Finding
from ultrascale.parts.keys.accesses import key_policies
from ultrascale.parts.keys.model import KeyPolicyPlan
from ultrascale.parts.keys.preflight import KEYS, VOLUME_KEY
from ultrascale.plan.model import ClusterPlan

OTHER = "999988887777"
USES = ("volumes", "secrets", "storage", "registry", "logs")
Statement = dict[str, Any]
ROOT: Statement = {
    "Effect": "Allow",
    "Principal": {"AWS": f"arn:aws:iam::{ID}:root"},
    "Action": "kms:*",
    "Resource": "*",
}


def arn(use: str, account: str = ID) -> str:
    return (
        f"arn:aws:kms:us-west-2:{account}:key/11111111-2222-4333-8444-55555555550{USES.index(use)}"
    )


def cluster(*uses: str, account: str = ID) -> ClusterPlan:
    """A cluster in which everything that uses a key is there."""
    return pools_plan(
        pool_document(),
        pool_document(name="burst", provisioner="karpenter"),
        keys={use: arn(use, account) for use in uses},
        storage={
            "lustre": [LUSTRE | {"s3": {"bucket": "datasets"}}],
            "buckets": ["datasets", "checkpoints"],
        },
        images={"repositories": ["trainer"], "builds": {"trainer": "nvidia"}},
        observability={"alarms": {"email": "ana@example.com"}},
    )


def policy_of(use: str, *, account: str = ID) -> KeyPolicyPlan:
    (policy,) = key_policies(cluster(use, account=account), ID)
    return policy


def answers(*statements: Any, **changes: Any) -> dict[str, Told]:
    key = {"KeyId": "1234", "AWSAccountId": ID, "KeyManager": "CUSTOMER", "KeyState": "Enabled"}
    return {
        "kms:DescribeKey": {"KeyMetadata": key | changes},
        "kms:GetKeyPolicy": {"Policy": json.dumps({"Statement": list(statements)})},
        "kms:ListGrants": {"Grants": []},
    }


@pytest.mark.parametrize("use", USES)
def test_the_statements_that_plan_tells_are_enough_and_none_is_too_many(use: str) -> None:
    policy = policy_of(use)
    (finding,) = found(KEYS, cluster(use), answers(*policy.statements))
    assert (finding.state, finding.fix) == ("pass", None)
    for access in policy.accesses:
        left = [each for each in policy.statements if not str(each["Sid"]).startswith(access.sid)]
        (finding,) = found(KEYS, cluster(use), answers(*left))
        assert finding.state == ("fail" if access.certain else "warn"), access.sid
        assert access.who in finding.evidence
        assert access.does in finding.evidence
        assert access.sid in (finding.fix or "")


@pytest.mark.parametrize("use", USES)
def test_a_policy_that_leaves_the_account_to_iam_lets_roles_in_and_no_service(use: str) -> None:
    """Roles of the stacks have policies for the keys of the file; a service can have none."""
    shut_out = [each for each in policy_of(use).accesses if each.kind != "role"]

    (finding,) = found(KEYS, cluster(use), answers(ROOT))

    assert finding.state == ("fail" if shut_out else "pass")
    assert all(each.who in finding.evidence for each in shut_out)
    assert "Karpenter's controller may not" not in finding.evidence


def statement(use: str, sid: str) -> Statement:
    (found,) = (each for each in policy_of(use).statements if each["Sid"] == sid)
    return dict(found)


def with_condition(use: str, sid: str, **condition: Any) -> tuple[str, list[Statement]]:
    others = [dict(each) for each in policy_of(use).statements if each["Sid"] != sid]
    return use, [*others, statement(use, sid) | {"Condition": condition}]


def of_logs(arn: str) -> tuple[str, list[Statement]]:
    return with_condition("logs", "LogGroups", ArnLike={"kms:EncryptionContext:aws:logs:arn": arn})


def without(key: str) -> Statement:
    return {name: value for name, value in ROOT.items() if name != key}


@for_each(
    {
        "logs of another account": (
            *of_logs(f"arn:aws:logs:us-west-2:{OTHER}:log-group:*"),
            "fail",
        ),
        "every log group of every account": (*of_logs("arn:aws:logs:*:*:*"), "pass"),
        "EC2 of another Region": (
            *with_condition(
                "volumes",
                "VolumesByKarpenter",
                StringEquals={"kms:ViaService": "ec2.eu-west-1.amazonaws.com"},
            ),
            "fail",
        ),
        "the organization": (
            *with_condition(
                "volumes", "VolumesByKarpenter", StringEquals={"aws:PrincipalOrgID": "o-1"}
            ),
            "warn",
        ),
        "grants alone, in a statement for every use": (
            *with_condition(
                "volumes", "VolumesByAutoScaling", Bool={"kms:GrantIsForAWSResource": "true"}
            ),
            "fail",
        ),
        "every principal but another": (
            *with_condition(
                "volumes", "VolumesByAutoScaling", StringNotEquals={"kms:CallerAccount": OTHER}
            ),
            "pass",
        ),
        "every action but the deletion": (
            "secrets",
            [without("Action") | {"NotAction": "kms:ScheduleKeyDeletion"}],
            "pass",
        ),
        "everybody but another": (
            "logs",
            [without("Principal") | {"NotPrincipal": {"AWS": f"arn:aws:iam::{OTHER}:root"}}],
            "warn",
        ),
        "a denial of the account": (
            "secrets",
            [*policy_of("secrets").statements, ROOT | {"Effect": "Deny"}],
            "fail",
        ),
    }
)
def test_conditions_are_judged_as_the_request_will_have_them(
    use: str, statements: list[Statement], state: str
) -> None:
    (finding,) = found(KEYS, cluster(use), answers(*statements))
    assert finding.state == state


@for_each(
    {
        "disabled": ({"KeyState": "Disabled"}, "KeyState is Disabled", "aws kms enable-key"),
        "to be deleted": (
            {"KeyState": "PendingDeletion"},
            "KeyState is PendingDeletion",
            "aws kms cancel-key-deletion --key-id 1234` and `aws kms enable-key",
        ),
        "without its material": (
            {"KeyState": "PendingImport"},
            "KeyState is PendingImport",
            "have its owner make it usable, or use another key",
        ),
        "asymmetric": ({"KeySpec": "RSA_2048"}, "KeySpec is RSA_2048", "use a "),
        "for signatures": (
            {"KeyUsage": "GENERATE_VERIFY_MAC"},
            "KeyUsage is GENERATE_VERIFY_MAC",
            "use a ",
        ),
        "of AWS": ({"KeyManager": "AWS"}, "AWS manages it", "name another key in keys.secrets"),
    }
)
def test_a_key_that_encrypts_nothing_fails(changes: dict[str, str], told: str, fix: str) -> None:
    statements = policy_of("secrets").statements

    (finding,) = found(KEYS, cluster("secrets"), answers(*statements, **changes))

    assert (finding.state, told in finding.evidence) == ("fail", True)
    assert fix in (finding.fix or ""), finding.fix


def test_a_key_that_is_not_there_fails() -> None:
    gone = answers() | {"kms:DescribeKey": Refusal("NotFoundException")}
    (finding,) = found(KEYS, cluster("secrets"), gone)
    assert finding.state == "fail"
    assert "name another key in keys.secrets" in (finding.fix or "")


def test_the_policy_of_another_accounts_key_reaches_no_service_linked_role() -> None:
    """Nor can it be read: a grant is to stand in for it."""
    plan, owned = cluster("volumes", account=OTHER), answers(AWSAccountId=OTHER)
    (grant,) = policy_of("volumes", account=OTHER).grants

    def judged(grants: Told) -> Finding:
        (finding,) = found(KEYS, plan, owned | {"kms:ListGrants": grants})
        return finding

    def made(*operations: str) -> Told:
        return {"Grants": [{"GranteePrincipal": grant.grantee, "Operations": operations}]}

    none = judged({"Grants": []})
    assert none.state == "fail"
    assert "there is no grant for AWSServiceRoleForAutoScaling" in none.evidence
    command = f"aws kms create-grant --region us-west-2 --key-id {arn('volumes', OTHER)}"
    assert command in (none.fix or "")
    whole = judged(made(*grant.operations))
    assert whole.state == "warn"
    assert "cannot be read from here" in whole.evidence
    assert "grant" not in whole.evidence
    assert judged(made("Decrypt")).state == "fail"
    hidden = judged(denied("kms:ListGrants"))
    assert hidden.state == "warn"
    assert "grants cannot be listed" in hidden.evidence
    # Its owner is told to let the account make grants.
    statements = policy_of("volumes", account=OTHER).statements
    for_grants = [each for each in statements if "AutoScaling" in str(each["Sid"])]
    root = {"AWS": f"arn:aws:iam::{ID}:root"}
    assert [each["Principal"] for each in for_grants] == [root] * 2


def test_no_key_no_question() -> None:
    """The account's default key is nobody's matter where the file names one of volumes."""
    assert found(KEYS, cluster(), {}) == found(VOLUME_KEY, cluster("volumes"), {}) == []
