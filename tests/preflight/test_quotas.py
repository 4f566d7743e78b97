"""Quotas of an account, beside what is in use there and what a cluster needs."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.account import fake_account, make_context
from tests.support.cases import rows
from tests.support.fake_aws import THROTTLED, Refusal, Told, denied
from tests.support.pools import (
    CAPACITY_BLOCK,
    HYPERPOD_POOL,
    ODCR,
    ON_DEMAND,
    SYSTEM_POOL,
    pool_document,
)
from ultrascale.findings import Finding
from ultrascale.preflight.model import Context
from ultrascale.preflight.quota_usage import GET, GET_DEFAULT, LIST, LIST_DEFAULTS, METRICS
from ultrascale.preflight.quotas import (
    FILE,
    HISTORY,
    QUOTAS,
    Increase,
    Left,
    file_request,
    increases,
)
from ultrascale.preflight.run import run_checks

ON_DEMAND_P, INTERFACES, NAU = "L-417A185B", "L-DF5E4CA3", "L-BB24F6E5"
ALBS = "L-53DA6B97"
# Four p5.48xlarge.
NEEDED = 4 * 192
TRAIN = pool_document(purchase=ON_DEMAND, nodes={"max": 4})
CLUSTER = "eks:DescribeCluster"
COUNTED = "ec2:DescribeNetworkInterfaces"
NO_CLUSTER = Refusal("ResourceNotFoundException")


def quota(code: str, value: float | None, **more: object) -> dict[str, Any]:
    found = {"ServiceCode": "ec2", "QuotaCode": code, "QuotaName": code, "Adjustable": True}
    return {"Quota": found | ({} if value is None else {"Value": value}) | more}


def metric(code: str) -> dict[str, Any]:
    dimensions = {"Service": "EC2", "Resource": code}
    named = {"MetricNamespace": "AWS/Usage", "MetricName": "ResourceCount"}
    return {"UsageMetric": named | {"MetricDimensions": dimensions}}


def answers(
    value: float = 10_000,
    *,
    used: float | None = None,
    told: Mapping[str, Told] | None = None,
    **more: object,
) -> Mapping[str, Told]:
    """Return what an account answers.

    Args:
        value: Its quota of On-Demand P instances, the other quotas being large.
        used: What is in use of it.
        told: What else it answers, or instead.
        more: Changes of its quotas.
    """

    def get(asked: dict[str, Any]) -> Mapping[str, Any]:
        code = asked["QuotaCode"]
        if code == ON_DEMAND_P:
            return quota(code, value, **(metric(code) | more))
        return quota(code, 10**9)

    def measure(asked: dict[str, Any]) -> Mapping[str, Any]:
        values = [] if used is None else [used, 99_999.0]
        found = [
            {"Id": each["Id"], "StatusCode": "Complete", "Values": values}
            for each in asked["MetricDataQueries"]
        ]
        return {"MetricDataResults": found}

    everything: dict[str, Told] = {
        GET: get,
        METRICS: measure,
        COUNTED: {"NetworkInterfaces": [{"NetworkInterfaceId": "eni-1"}]},
        "ec2:DescribeVolumes": {"Volumes": [{"Size": 2048}, {"Size": 512}]},
        CLUSTER: NO_CLUSTER,
        LIST: {"Quotas": []},
        LIST_DEFAULTS: {"Quotas": []},
        "ec2:DescribeVpcs": {"Vpcs": []},
        "ec2:DescribeAddresses": {"Addresses": []},
        "eks:ListClusters": {"clusters": []},
        "fsx:DescribeFileSystems": {"FileSystems": []},
        "sagemaker:ListClusters": {"ClusterSummaries": []},
    }
    return {**everything, **(told or {})}


def context(told: Mapping[str, Told], *pools: dict[str, Any], **changes: object) -> Context:
    return make_context(told, pools=[SYSTEM_POOL, *(pools or (TRAIN,))], **changes)


def finding(told: Mapping[str, Told], name: str = ON_DEMAND_P, *pools: dict[str, Any]) -> Finding:
    (found,) = [
        each for each in run_checks((QUOTAS,), context(told, *pools)) if name in each.subject
    ]
    return found


@pytest.mark.parametrize(
    ("value", "used", "state"),
    [
        (NEEDED, 0, "pass"),
        (NEEDED, None, "pass"),
        (NEEDED - 1, 0, "fail"),
        (NEEDED, 1, "fail"),
        (NEEDED + 1, 1, "pass"),
        (0, None, "fail"),
    ],
)
def test_what_is_in_use_and_what_is_needed_have_to_fit(
    value: float, used: float | None, state: str
) -> None:
    assert finding(answers(value, used=used)).state == state


def test_a_short_quota_says_what_it_is_and_the_request_that_raises_it() -> None:
    found = finding(answers(192, used=96))
    assert found.evidence == "the account has 192; 768 vCPUs needed; 96 in use"
    assert found.fix == (
        "--request-quotas, or: aws service-quotas request-service-quota-increase --service-code "
        "ec2 --quota-code L-417A185B --desired-value 864 --region us-west-2"
    )


UNLISTED = Refusal("NoSuchResourceException")
PARTIAL = {"MetricDataResults": [{"Id": "m0", "StatusCode": "PartialData", "Values": [1.0]}]}
THREE = {"NetworkInterfaces": [{"NetworkInterfaceId": "eni-1"}] * 3}


def nothing(asked: dict[str, Any]) -> dict[str, Any]:
    return quota(asked["QuotaCode"], 0)


# Older accounts have a quota of P5 alone, and this one without it.
OLD_NAME: dict[str, Any] = {"QuotaName": "Running On-Demand P4 and P3 instances"}


@rows(
    "name, told, state, words",
    {
        "denied": (ON_DEMAND_P, answers(told={GET: denied(GET)}), "unknown", "no identity-based"),
        "throttled": (ON_DEMAND_P, answers(told={GET: THROTTLED}), "unknown", "throttled"),
        "no value": (
            *(ON_DEMAND_P, answers(told={GET: quota(ON_DEMAND_P, None)})),
            *("unknown", "without a value"),
        ),
        "usage denied": (
            *(ON_DEMAND_P, answers(told={METRICS: denied(METRICS)})),
            *("unknown", "no identity-based"),
        ),
        "no default": (
            *(ON_DEMAND_P, answers(told={GET: UNLISTED, GET_DEFAULT: THROTTLED})),
            *("unknown", "throttled"),
        ),
        "nobody raised it": (
            ON_DEMAND_P,
            {**answers(), GET: UNLISTED, GET_DEFAULT: nothing},
            *("fail", "the account has 0"),
        ),
        "too small, whatever is in use": (
            *(ON_DEMAND_P, answers(10, told={METRICS: THROTTLED})),
            *("fail", "the account has 10"),
        ),
        "a part of the usage is no number": (
            *(ON_DEMAND_P, answers(told={METRICS: PARTIAL})),
            *("warn", "CloudWatch cannot say"),
        ),
        "usage that no metric tells": ("gp3", answers(), "pass", "2.50 in use"),
        "all pages of it": (
            *(INTERFACES, answers(told={COUNTED: [THREE | {"NextToken": "more"}, THREE]})),
            *("pass", "6 in use"),
        ),
        "not in Service Quotas": ("Pod Identity", answers(), "pass", "AWS publishes 5,000"),
        "not in this Region": (
            *(INTERFACES, answers(told={GET: UNLISTED, GET_DEFAULT: UNLISTED})),
            *("warn", "AWS publishes 5,000"),
        ),
        "of a VPC, which is a new one": (NAU, answers(), "pass", "the account has"),
        "another meaning": (
            *(ON_DEMAND_P, answers(**OLD_NAME), "pass"),
            "AWS calls it 'Running On-Demand P4 and P3 instances' here",
        ),
        # A cluster that is there is not asked for twice.
        "used by this cluster": (
            ON_DEMAND_P,
            answers(NEEDED, used=NEEDED, told={CLUSTER: {"cluster": {"name": "research"}}}),
            *("warn", "768 in use, this cluster among it"),
        ),
        "used by nobody knows whom": (
            *(ON_DEMAND_P, answers(NEEDED, used=NEEDED, told={CLUSTER: denied(CLUSTER)})),
            *("unknown", CLUSTER),
        ),
    },
)
def test_a_quota_that_aws_does_not_tell_is_no_pass(
    name: str, told: Mapping[str, Told], state: str, words: str
) -> None:
    found = finding(told, name)
    assert found.state == state, found
    assert words in f"{found.evidence} {found.fix}"
    assert (name, "in use" in found.evidence) != (NAU, True)


def test_load_balancers_and_target_groups_of_others_count() -> None:
    """A Network Load Balancer counts elsewhere; target groups of both kinds count together."""
    balancers = [{"Type": "application"}, {"Type": "network"}, {"Type": "application"}]
    told: dict[str, Told] = {
        "elasticloadbalancing:DescribeLoadBalancers": {"LoadBalancers": balancers},
        "elasticloadbalancing:DescribeTargetGroups": [
            {"TargetGroups": [{"TargetGroupName": "a"}], "NextMarker": "more"},
            {"TargetGroups": [{"TargetGroupName": "b"}, {"TargetGroupName": "c"}]},
        ],
        GET: lambda asked: quota(asked["QuotaCode"], 2 if asked["QuotaCode"] == ALBS else 10**9),
    }
    asked = context(answers(told=told), serving={"front": {}})

    found = {each.subject: each for each in run_checks((QUOTAS,), asked)}

    balanced = found[f"{ALBS} Application Load Balancers per Region"]
    assert (balanced.state, "has 2; 1 load balancers needed; 2 in use" in balanced.evidence) == (
        "fail",
        True,
    )
    assert "--desired-value 3" in (balanced.fix or "")
    assert "3 in use" in found["L-B22855CB Target Groups per Region"].evidence
    rules = found["L-0EA8095F Inbound or outbound rules per security group"]
    assert (rules.state, "in use" in rules.evidence) == ("pass", False)


def test_a_code_that_aws_does_not_know_is_looked_up_by_its_name() -> None:
    def get(asked: dict[str, Any]) -> Mapping[str, Any]:
        if asked["QuotaCode"] == ON_DEMAND_P:
            raise Refusal("NoSuchResourceException")
        return quota(asked["QuotaCode"], 10**9)

    listed = quota("L-NEW", 17, QuotaName="Running On-Demand P instances")["Quota"]
    told: dict[str, Told] = {GET: get, GET_DEFAULT: get, LIST: {"Quotas": [listed]}}

    found = finding(answers(told=told), "Running On-Demand P")

    assert (found.state, "the account has 17" in found.evidence) == ("fail", True)


def test_a_reservation_is_in_use_before_the_cluster_is() -> None:
    """Its instances count in the quota whether they run or not."""
    pool = pool_document(purchase=ODCR, nodes={"max": 4})
    found = finding(answers(NEEDED, used=NEEDED), ON_DEMAND_P, pool)
    assert found.state == "warn"
    assert "reservations of the file among it" in found.evidence


def test_a_block_that_is_bought_is_not_asked_for_twice() -> None:
    def get(asked: dict[str, Any]) -> Mapping[str, Any]:
        return quota(asked["QuotaCode"], 1, **metric(asked["QuotaCode"]))

    pool = pool_document(purchase=CAPACITY_BLOCK)

    found = finding(answers(used=1, told={GET: get}), "Concurrent P5 Capacity Blocks", pool)

    assert found.state == "warn"
    assert "1 in use, reservations of the file among it" in found.evidence


def hyperpod(*names: str) -> dict[str, Told]:
    """Return an account in which SageMaker's quotas of ``names`` are 8, on its second page."""
    own = {"ServiceCode": "sagemaker", "Value": 8.0, "Adjustable": True}
    listed = [
        own | {"QuotaCode": f"L-{number}", "QuotaName": name} for number, name in enumerate(names)
    ]

    def pages(asked: dict[str, Any]) -> Mapping[str, Any]:
        if asked["ServiceCode"] != "sagemaker":
            return {"Quotas": []}
        return {"Quotas": listed} if "NextToken" in asked else {"Quotas": [], "NextToken": "more"}

    return {LIST: pages}


@pytest.mark.parametrize(
    ("names", "state"),
    [
        (("ml.p5.48xlarge for cluster usage",), "pass"),
        (("ml.p5.48xlarge for training job usage", "ml.p5e.48xlarge for cluster usage"), "unknown"),
    ],
)
def test_quotas_of_hyperpod_are_found_by_their_exact_name(
    names: tuple[str, ...], state: str
) -> None:
    found = finding(answers(told=hyperpod(*names)), "ml.p5.48xlarge", HYPERPOD_POOL)
    assert found.state == state


def test_nodes_of_other_hyperpod_clusters_count() -> None:
    name = "ml.p5.48xlarge for cluster usage"
    summary = {
        "ClusterArn": "arn:aws:sagemaker:us-west-2:918273645546:cluster/a",
        "ClusterName": "other",
        "CreationTime": 0,
        "ClusterStatus": "InService",
    }
    details = [
        {"InstanceType": "ml.p5.48xlarge", "CurrentCount": 2},
        {"InstanceType": "ml.p5e.48xlarge", "CurrentCount": 1},
    ]
    groups = [
        {"InstanceType": "ml.p5.48xlarge", "CurrentCount": 3},
        {"InstanceType": "ml.c5.large", "CurrentCount": 9},
        {"CurrentCount": 3, "InstanceTypeDetails": details},
    ]
    told = hyperpod(name) | {
        "sagemaker:ListClusters": {"ClusterSummaries": [summary]},
        "sagemaker:DescribeCluster": {
            "ClusterArn": summary["ClusterArn"],
            "ClusterStatus": "InService",
            "InstanceGroups": groups,
            "RestrictedInstanceGroups": groups[:1],
        },
    }

    found = finding(answers(told=told), name, HYPERPOD_POOL)

    assert (found.state, "8 in use" in found.evidence) == ("fail", True)


# --- requests -----------------------------------------------------------------------------------


def asked(told: Mapping[str, Told]) -> list[Increase | Left]:
    return list(increases(context({HISTORY: {"RequestedQuotas": []}, **told})))


def test_a_request_asks_for_what_is_needed_beside_what_is_in_use() -> None:
    (increase,) = asked(answers(192, used=96))
    assert isinstance(increase, Increase)
    assert (increase.quota.code, increase.quota.value, increase.asked) == (ON_DEMAND_P, 192, 864)
    assert asked(answers(NEEDED)) == []


CASE = {"Id": "r", "CaseId": "17", "Status": "CASE_OPENED", "DesiredValue": 1000.0}
PENDING = {"Id": "r", "Status": "PENDING", "DesiredValue": 1.0}


@rows(
    "told, words",
    {
        "case": ({HISTORY: {"RequestedQuotas": [CASE]}}, "17 asks for 1,000 already"),
        "pending": (
            {HISTORY: {"RequestedQuotas": [PENDING]}},
            "r asks for 1 already; have it changed to 768",
        ),
        "denied": ({HISTORY: denied(HISTORY)}, "denied because no identity-based policy allows"),
        "not told": (
            {METRICS: THROTTLED, GET: quota(ON_DEMAND_P, 10_000, **metric(ON_DEMAND_P))},
            "throttled",
        ),
        "not adjustable": ({GET: quota(ON_DEMAND_P, 0, Adjustable=False)}, "ask your account team"),
    },
)
def test_a_request_that_would_be_filed_twice_or_cannot_be_is_left(
    told: dict[str, Told], words: str
) -> None:
    (left, *_) = (each for each in asked(answers(0, told=told)) if isinstance(each, Left))
    assert words in left.why


@pytest.mark.parametrize("status", ["DENIED", "CASE_CLOSED", "APPROVED", "NOT_APPROVED"])
def test_a_request_that_is_over_is_filed_again(status: str) -> None:
    over = {"Id": "r", "Status": status, "DesiredValue": 1000.0}
    (increase,) = asked(answers(0, told={HISTORY: {"RequestedQuotas": [over]}}))
    assert isinstance(increase, Increase)


def test_a_request_is_filed_once_and_says_its_case() -> None:
    (increase,) = asked(answers(0))
    assert isinstance(increase, Increase)
    account, aws = fake_account({FILE: {"RequestedQuota": CASE}})
    assert file_request(account, increase) == "case 17"
    assert aws.attempts[FILE] == 1
    assert aws.parameters(FILE) == [
        {"ServiceCode": "ec2", "QuotaCode": ON_DEMAND_P, "DesiredValue": 768.0}
    ]


def test_every_action_that_is_asked_for_is_declared() -> None:
    told = answers(10, used=5, told=hyperpod())
    account, aws = fake_account(told)
    whole = context(told, TRAIN, HYPERPOD_POOL)
    run_checks((QUOTAS,), Context(plan=whole.plan, needs=whole.needs, account=account, at=whole.at))
    assert aws.actions <= set(QUOTAS.actions)
    assert GET in aws.actions
