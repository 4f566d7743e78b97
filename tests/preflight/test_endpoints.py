"""An endpoint whose service lacks one of the file's zones fails the network's stack, the first."""

from collections.abc import Mapping
from typing import Any

from tests.support.existing_vpc import existing_network, subnet
from tests.support.pools import POOL
from tests.support.preflight_context import found, make_context, pools_plan, states
from ultrascale.plan.model import ClusterPlan
from ultrascale.preflight.network import ENDPOINTS

ACTION = "ec2:DescribeVpcEndpointServices"
ZONES = "ec2:DescribeAvailabilityZones"
ALL = ("us-east-1a", "us-east-1b", "us-east-1e")


def in_zones(*zones: str) -> ClusterPlan:
    network = {"vpc_cidr": "10.0.0.0/16", "zones": [*zones]}
    return pools_plan(region="us-east-1", network=network)


def services(plan: ClusterPlan, **zones: tuple[str, ...] | None) -> Mapping[str, Any]:
    """Return what EC2 answers: each service in all zones, but those that are named."""
    offered = {name: zones.get(name, ALL) for name in plan.network.interface_endpoints}
    details = [
        {"ServiceName": f"com.amazonaws.us-east-1.{name}", "AvailabilityZones": [*known]}
        for name, known in offered.items()
        if known is not None
    ]
    return {"ServiceDetails": details}


def test_a_zone_that_a_service_lacks_is_told_before_the_vpc_is_made() -> None:
    plan = in_zones("us-east-1a", "us-east-1e")
    answer = services(plan, kms=("us-east-1a",), sts=("us-east-1a", "us-east-1b"))
    passed, failed = found(ENDPOINTS, plan, {ACTION: answer})
    assert states([passed, failed]) == {"us-east-1a": "pass", "us-east-1e": "fail"}
    assert failed.evidence == "no endpoint there of sts, kms"
    assert "network.zones" in (failed.fix or "")


def test_a_zone_of_accelerated_nodes_alone_gets_no_endpoint() -> None:
    """Their nodes reach those of other zones, so that its lack of a service is no trouble."""
    nodes = [
        subnet(11, "us-east-1a", "10.20.0.0/20", "control-plane", "nodes"),
        subnet(12, "us-east-1b", "10.20.32.0/20", "control-plane", "nodes"),
        subnet(31, "us-east-1e", "10.20.16.0/20", "accelerated"),
    ]
    network = existing_network(subnets=nodes, endpoints={"create": ["sts"]})
    pool = POOL | {"zones": ["us-east-1e"], "nodes": {"max": 4}}
    plan = pools_plan(pool, region="us-east-1", network=network)

    findings = found(ENDPOINTS, plan, {ACTION: services(plan, sts=("us-east-1a",))})

    assert states(findings) == {"us-east-1a": "pass", "us-east-1b": "fail"}
    assert "network.endpoints.present" in (findings[1].fix or "")


def test_a_service_that_the_region_lacks_is_told_by_its_name() -> None:
    plan = in_zones("us-east-1a", "us-east-1b")
    findings = found(ENDPOINTS, plan, {ACTION: services(plan, eks=None)})
    assert states(findings) == {"eks": "fail", "us-east-1a": "pass", "us-east-1b": "pass"}


def test_zones_that_the_file_names_by_id_are_those_of_this_account() -> None:
    plan = in_zones("use1-az6", "use1-az5")
    known = {"use1-az6": "us-east-1a", "use1-az5": "us-east-1f"}
    zones = [
        {"ZoneId": id, "ZoneName": name, "ZoneType": "availability-zone", "State": "available"}
        for id, name in known.items()
    ]
    answers = {ACTION: services(plan, logs=("us-east-1a",)), ZONES: {"AvailabilityZones": zones}}
    assert states(found(ENDPOINTS, plan, answers)) == {"use1-az6": "pass", "use1-az5": "fail"}


def test_only_the_endpoints_of_the_cluster_are_asked_for() -> None:
    plan = in_zones("us-east-1a", "us-east-1b")
    context, aws = make_context(plan, {ACTION: services(plan)})
    assert all(finding.state == "pass" for finding in ENDPOINTS.run(context))
    ((asked,),) = (each["Filters"] for each in aws.parameters(ACTION))
    names = {f"com.amazonaws.us-east-1.{name}" for name in plan.network.interface_endpoints}
    assert asked["Name"] == "service-name"
    assert set(asked["Values"]) == names
