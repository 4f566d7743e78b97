"""An upgrade that EKS would refuse is found before the deployment that begins it."""

from typing import Any

import pytest

from tests.support.fake_aws import Refusal, Told
from tests.support.preflight_context import found, pools_plan
from ultrascale.findings import Finding
from ultrascale.preflight.cluster import UPGRADE

CLUSTER = {"version": "1.34", "resourcesVpcConfig": {"subnetIds": ["subnet-1", "subnet-2"]}}


def insight(status: str) -> dict[str, Any]:
    state = {"status": status, "reason": "seen within 30 days"}
    return {"id": "i-1", "name": "Deprecated APIs", "insightStatus": state}


def answers(
    *insights: dict[str, Any], groups: dict[str, str] | None = None, free: int = 200
) -> dict[str, Told]:
    versions = {"system": "1.34"} if groups is None else groups
    return {
        "eks:DescribeCluster": {"cluster": CLUSTER},
        "eks:ListInsights": {"insights": [*insights]},
        "eks:ListNodegroups": {"nodegroups": [*versions]},
        "eks:DescribeNodegroup": lambda asked: {
            "nodegroup": {"version": versions[asked["nodegroupName"]]}
        },
        "ec2:DescribeSubnets": {"Subnets": [{"AvailableIpAddressCount": free}]},
    }


def by_subject(told: dict[str, Told]) -> dict[str, Finding]:
    return {each.subject: each for each in found(UPGRADE, pools_plan(), told)}


def test_an_upgrade_that_nothing_stands_in_the_way_of_passes() -> None:
    findings = by_subject(answers(insight("PASSING")))
    assert {each.state for each in findings.values()} == {"pass"}
    assert {*findings} == {"insights", "node groups", "addresses"}


@pytest.mark.parametrize(
    ("status", "state"), [("ERROR", "fail"), ("WARNING", "warn"), ("UNKNOWN", "warn")]
)
def test_what_eks_has_against_an_upgrade_is_told(status: str, state: str) -> None:
    finding = by_subject(answers(insight("PASSING"), insight(status)))["insights"]
    assert finding.state == state
    assert f"Deprecated APIs: {status}, seen within 30 days" in finding.evidence
    assert "describe-insight --cluster-name research --id i-1" in (finding.fix or "")


def test_insights_that_eks_has_none_of_are_no_pass() -> None:
    assert by_subject(answers())["insights"].state == "warn"


@pytest.mark.parametrize(("version", "state"), [("1.33", "warn"), ("1.31", "fail")])
def test_a_group_that_an_earlier_upgrade_left_behind_is_named(version: str, state: str) -> None:
    told = answers(insight("PASSING"), groups={"system": "1.34", "train": version})
    finding = by_subject(told)["node groups"]
    assert (finding.state, finding.evidence) == (state, f"train has {version}, the cluster 1.34")


def test_a_control_plane_without_room_for_its_successor_is_found() -> None:
    finding = by_subject(answers(insight("PASSING"), free=4))["addresses"]
    assert (finding.state, finding.evidence[:6]) == ("fail", "4 free")


@pytest.mark.parametrize(
    "told",
    [
        {"eks:DescribeCluster": Refusal("ResourceNotFoundException")},
        {"eks:DescribeCluster": {"cluster": CLUSTER | {"version": "1.35"}}},
        {"eks:DescribeCluster": {"cluster": CLUSTER | {"version": "1.33"}}},
    ],
    ids=["not made", "no upgrade", "two minors"],
)
def test_nothing_more_is_asked_where_eks_upgrades_nothing(told: dict[str, Told]) -> None:
    (finding,) = found(UPGRADE, pools_plan(), told)
    assert (finding.subject, finding.state) == ("research", "pass")
