"""A type that a zone has not fails when its nodes are launched, hours after a deploy began."""

from typing import Any

import pytest

from tests.support.pools import (
    CAPACITY_BLOCK,
    HYPERPOD_POOL,
    ON_DEMAND,
    SPOT,
    TRAINING_PLAN,
    pool_document,
)
from tests.support.preflight_context import found, make_context, pools_plan
from ultrascale.findings import Finding
from ultrascale.plan.model import ClusterPlan
from ultrascale.preflight.account import OFFERINGS

ACTION = "ec2:DescribeInstanceTypeOfferings"
P5, G6, G6E, G5 = "p5.48xlarge", "g6.12xlarge", "g6e.12xlarge", "g5.12xlarge"
A, B, C = "us-west-2a", "us-west-2b", "us-west-2c"
SYSTEM = [("m7g.8xlarge", zone) for zone in (A, B, C)]
G_POOL = pool_document(
    instance_types=[G6, G6E, G5], purchase=SPOT, zones=[A, B], efa="none", nodes={"max": 4}
)


def offers(*pairs: tuple[str, str]) -> dict[str, Any]:
    return {
        "InstanceTypeOfferings": [
            {"InstanceType": name, "LocationType": "availability-zone", "Location": zone}
            for name, zone in (*SYSTEM, *pairs)
        ]
    }


def of_train(plan: ClusterPlan, *pairs: tuple[str, str]) -> Finding:
    findings = found(OFFERINGS, plan, {ACTION: offers(*pairs)})
    (one,) = [each for each in findings if each.subject == "train"]
    return one


@pytest.mark.parametrize(
    ("pool", "pairs", "state", "evidence"),
    [
        (pool_document(), [(P5, B)], "pass", "p5.48xlarge in us-west-2b"),
        (pool_document(), [], "fail", "no p5.48xlarge in us-west-2b"),
        (pool_document(), [(P5, A)], "fail", "no p5.48xlarge in us-west-2b"),
        # The block itself is in a zone that has it.
        (pool_document(purchase=CAPACITY_BLOCK), [], "warn", "no p5.48xlarge in us-west-2b"),
        (
            G_POOL,
            [(G6, A), (G6, B), (G6E, A), (G6E, B)],
            "warn",
            "no g5.12xlarge in us-west-2a; no g5.12xlarge in us-west-2b",
        ),
        # A node group waits for nodes in each of its zones, Karpenter does not.
        (G_POOL, [(G6, A), (G6E, A), (G5, A)], "fail", "no g6.12xlarge in us-west-2b; "),
        (
            G_POOL | {"provisioner": "karpenter"},
            [(G6, A), (G6E, A), (G5, A)],
            "warn",
            "no g6.12xlarge in us-west-2b; ",
        ),
        (G_POOL | {"provisioner": "karpenter"}, [], "fail", "no g6.12xlarge in us-west-2a; "),
    ],
)
def test_a_type_that_a_zone_has_not_is_named(
    pool: dict[str, Any], pairs: list[tuple[str, str]], state: str, evidence: str
) -> None:
    finding = of_train(pools_plan(pool), *pairs)
    assert finding.state == state
    assert finding.evidence.startswith(evidence)
    assert (finding.fix is None) == (state == "pass")


def test_zones_that_the_file_names_by_id_are_asked_for_by_id() -> None:
    """Names would be compared with ids, and every type would be missing."""
    network = {"vpc_cidr": "10.0.0.0/16", "zones": ["usw2-az1", "usw2-az2"]}
    plan = pools_plan(pool_document(zones=["usw2-az2"]), network=network)
    context, aws = make_context(plan, {ACTION: offers((P5, "usw2-az2"))})
    findings = [*OFFERINGS.run(context)]
    assert aws.parameters(ACTION)[0]["LocationType"] == "availability-zone-id"
    assert [each.state for each in findings if each.subject == "train"] == ["pass"]


@pytest.mark.parametrize(
    ("purchase", "state", "text"),
    [
        (TRAINING_PLAN, "pass", "its training plan says where its instances are"),
        (ON_DEMAND, "warn", "AWS lists ml.p5.48xlarge in us-west-2"),
    ],
)
def test_hyperpods_instances_are_never_asked_of_ec2(
    purchase: dict[str, Any], state: str, text: str
) -> None:
    pool = HYPERPOD_POOL | {"purchase": purchase}
    context, aws = make_context(pools_plan(pool), {ACTION: offers()})
    findings = [*OFFERINGS.run(context)]
    (own,) = [each for each in findings if each.subject == "hp"]
    assert own.state == state
    assert text in own.evidence
    assert aws.parameters(ACTION)[0]["Filters"][0]["Values"] == ["m7g.8xlarge"]


def test_a_second_page_is_read() -> None:
    first = offers() | {"NextToken": "more"}
    findings = found(OFFERINGS, pools_plan(pool_document()), {ACTION: [first, offers((P5, B))]})
    assert {each.state for each in findings} == {"pass"}
