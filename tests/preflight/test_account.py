"""Facts of an account beside quotas: caller, Region, CDK's bootstrap, roles of services."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.account import make_context
from tests.support.fake_aws import ARN, ID, THROTTLED, Refusal, Told, denied
from tests.support.folders import ROOT
from tests.support.pools import SPOT, SYSTEM_POOL, pool_document
from ultrascale import plan
from ultrascale.findings import Finding
from ultrascale.parts.pipeline.preflight import PACKAGE
from ultrascale.preflight.access import ROLES
from ultrascale.preflight.account import BOOTSTRAP, IDENTITY
from ultrascale.preflight.checks import all_checks
from ultrascale.preflight.existing_buckets import EXISTING_BUCKETS
from ultrascale.preflight.model import Check
from ultrascale.preflight.policy import policy
from ultrascale.preflight.reservations import RESERVATIONS
from ultrascale.preflight.run import run_checks
from ultrascale.preflight.stacks import STACKS, names_check

OTHER = "304871926650"
GROUPS = (
    "AWSServiceRoleForAmazonEKS",
    "AWSServiceRoleForAmazonEKSNodegroup",
    "AWSServiceRoleForAutoScaling",
)
G_TYPES = ["g6.12xlarge", "g6.24xlarge", "g6.48xlarge"]
GROUP = pool_document(purchase=SPOT, instance_types=G_TYPES, efa="none")
BURST = GROUP | {"provisioner": "karpenter"}


def run(check: Check, told: dict[str, Told], **changes: object) -> tuple[Finding, ...]:
    return run_checks((check,), make_context(told, **changes))


def region(status: str) -> dict[str, Told]:
    return {
        "ec2:DescribeRegions": {"Regions": [{"RegionName": "us-west-2", "OptInStatus": status}]}
    }


# --- identity -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("account", "state"), [(None, "pass"), (ID, "pass"), (OTHER, "fail")])
def test_the_account_is_the_one_that_the_file_names(account: str | None, state: str) -> None:
    found, _ = run(IDENTITY, region("opt-in-not-required"), account=account)
    assert found.state == state
    assert ARN in found.evidence


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("opt-in-not-required", "pass"),
        ("opted-in", "pass"),
        ("not-opted-in", "fail"),
        ("another", "unknown"),
    ],
)
def test_a_region_has_to_be_enabled(status: str, state: str) -> None:
    _, found = run(IDENTITY, region(status))
    assert found.state == state
    if state == "fail":
        assert found.fix == "aws account enable-region --region-name us-west-2"


# --- bootstrap ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "state"),
    [("33", "pass"), ("21", "pass"), ("20", "warn"), ("6", "warn"), ("5", "fail")],
)
def test_the_bootstrap_stack_is_recent_enough(version: str, state: str) -> None:
    (found,) = run(BOOTSTRAP, {"ssm:GetParameter": {"Parameter": {"Value": version}}})
    assert found.state == state
    assert (found.fix is None) == (state == "pass")


def test_an_account_without_a_bootstrap_stack_says_how_it_gets_one() -> None:
    (found,) = run(BOOTSTRAP, {"ssm:GetParameter": Refusal("ParameterNotFound")})
    assert (found.state, found.fix) == ("fail", f"ultrascale cdk bootstrap aws://{ID}/us-west-2")


@pytest.mark.parametrize("answer", [denied("ssm:GetParameter"), THROTTLED])
def test_a_bootstrap_version_that_nobody_told_is_no_pass(answer: Told) -> None:
    (found,) = run(BOOTSTRAP, {"ssm:GetParameter": answer})
    assert found.state == "unknown"


# --- service-linked roles -----------------------------------------------------------------------


def with_roles(*names: str) -> dict[str, Told]:
    def get(asked: dict[str, Any]) -> dict[str, Any]:
        name = asked["RoleName"]
        if name not in names:
            raise Refusal("NoSuchEntity")
        own = {"Path": "/", "RoleName": name, "RoleId": "A" * 16, "Arn": "arn:aws:iam::1:role/x"}
        return {"Role": own | {"CreateDate": 0}}

    return {"iam:GetRole": get}


def test_a_role_that_a_service_makes_is_a_warning_with_the_command() -> None:
    found = run(ROLES, with_roles(*GROUPS[1:]))
    assert [each.state for each in found] == ["warn", "pass", "pass"]
    assert found[0].fix == (
        "aws iam create-service-linked-role --aws-service-name eks.amazonaws.com"
    )


@pytest.mark.parametrize(("pool", "state"), [(BURST, "fail"), (GROUP, "warn")])
def test_karpenter_needs_the_role_of_spot_before_it_launches(
    pool: dict[str, Any], state: str
) -> None:
    own = {"karpenter": {"version": "1.15.2"}} if pool is BURST else {}
    found = run(ROLES, with_roles(*GROUPS), pools=[SYSTEM_POOL, pool], **own)
    assert [(each.subject, each.state) for each in found[3:]] == [
        ("AWSServiceRoleForEC2Spot", state)
    ]


@pytest.mark.parametrize(
    ("name", "needed"),
    [
        ("hybrid-hyperpod", {"SageMakerHyperPod", "AmazonFSx", "EC2Spot", "RDS"}),
        ("serving", {"AmazonFSx", "EC2Spot", "ElasticLoadBalancing"}),
        ("ultra-100k", {"CloudWatchApplicationSignals", "EC2Spot", "ECRPullThroughCache"}),
    ],
)
def test_every_role_is_asked_for_where_a_file_needs_it(name: str, needed: set[str]) -> None:
    planned = plan.load(ROOT / "clusters" / f"{name}.yaml")
    found = run_checks((ROLES,), replace(make_context(with_roles()), plan=planned))
    subjects = {each.subject for each in found}
    assert subjects - {*GROUPS} == {f"AWSServiceRoleFor{each}" for each in needed}


# --- policy -------------------------------------------------------------------------------------


def test_the_policy_allows_every_check_and_reads_alone() -> None:
    document = policy(all_checks(), make_context({}).plan, ID)
    statements: list[dict[str, Any]] = json.loads(json.dumps(document))["Statement"]
    allowed = [action for each in statements for action in each["Action"]]
    # The pipeline of this file installs no object, and the file names no bucket that exists.
    checks = [check for check in all_checks() if check not in (PACKAGE, EXISTING_BUCKETS)]
    assert {*allowed} == {action for check in checks for action in check.actions}
    assert {action.split(":")[1][:3] for action in allowed} <= {"Des", "Get", "Lis", "Sea"}


@pytest.mark.parametrize(
    ("check", "besides"),
    [
        (STACKS, {"cloudformation:ListStacks"}),
        (names_check(), {"cloudformation:ListStacks"}),
        (RESERVATIONS, {"cloudformation:ListStackResources", "tag:GetResources"}),
    ],
    ids=lambda each: each.name if isinstance(each, Check) else None,
)
def test_what_a_request_takes_beside_its_own_permission_is_allowed(
    check: Check, besides: set[str]
) -> None:
    assert besides <= {*check.actions}


def test_what_can_be_narrowed_is_allowed_for_the_cluster_alone() -> None:
    statements: Any = policy(all_checks(), make_context({}).plan, ID)["Statement"]
    (narrow,) = [each for each in statements if "ssm:GetParameter" in each["Action"]]
    assert narrow["Resource"] == f"arn:aws:ssm:us-west-2:{ID}:parameter/cdk-bootstrap/*"
    (roles,) = [each for each in statements if "iam:GetRole" in each["Action"]]
    assert roles["Resource"] == f"arn:aws:iam::{ID}:role/*"
