"""A zone that the account has not, or EKS takes no subnet in, fails the first stack."""

import pytest

from tests.support.preflight_context import found, make_context, pools_plan, states, zone
from ultrascale.account.zones import ACTION, Zone, zones_of
from ultrascale.plan.model import ClusterPlan
from ultrascale.preflight.account import ZONES, zone_finding

ALL = [
    zone("us-east-1a", "use1-az6"),
    zone("us-east-1b", "use1-az1"),
    zone("us-east-1e", "use1-az3"),
    zone("us-east-1f", "use1-az5", State="impaired"),
    zone("us-east-1c", "use1-az2", OptInStatus="not-opted-in", GroupName="us-east-1-c"),
]


def in_zones(*zones: str) -> ClusterPlan:
    network = {"vpc_cidr": "10.0.0.0/16", "zones": [*zones]}
    return pools_plan(region="us-east-1", network=network)


@pytest.mark.parametrize(
    ("name", "state", "evidence"),
    [
        ("us-east-1a", "pass", "us-east-1a (use1-az6)"),
        ("us-east-1d", "fail", "the account has no zone us-east-1d in us-east-1"),
        ("us-east-1e", "fail", "us-east-1e (use1-az3), of kind availability-zone: EKS takes no"),
        ("us-east-1f", "warn", "us-east-1f (use1-az5) is impaired"),
        ("us-east-1c", "fail", "the account has not opted in to us-east-1c (use1-az2)"),
    ],
)
def test_a_zone_is_held_against_the_accounts_own(name: str, state: str, evidence: str) -> None:
    findings = found(ZONES, in_zones("us-east-1b", name), {ACTION: {"AvailabilityZones": ALL}})
    assert states(findings) == {"us-east-1b": "pass", name: state}
    assert findings[1].evidence.startswith(evidence)
    assert (findings[1].fix is None) == (state == "pass")


def test_zones_that_nobody_opted_in_to_are_asked_for() -> None:
    """Without asking, one could not be told from one that does not exist."""
    context, aws = make_context(in_zones("us-east-1a", "us-east-1b"), {ACTION: {}})
    assert zones_of(context.account) == {}
    assert aws.parameters(ACTION) == [{"AllAvailabilityZones": True}]


@pytest.mark.parametrize(("controls", "state"), [(True, "fail"), (False, "pass")])
def test_a_zone_of_nodes_alone_need_not_take_a_control_plane(controls: bool, state: str) -> None:
    name = "us-east-1e"
    there = Zone(
        name=name,
        id="use1-az3",
        kind="availability-zone",
        opted_in=True,
        state="available",
        group="us-east-1",
    )

    assert zone_finding(name, {name: there}, "us-east-1", controls=controls).state == state
