"""The page for a network team: what it forgets fails weeks later, at the first deployment."""

from typing import Any

import pytest

from tests.support.assembly import Assembly
from tests.support.existing_vpc import OWNER, VPC, existing_document, subnets
from tests.support.pools import POOL, SYSTEM_POOL, as_json, loads_own, make_cluster
from ultrascale.plan import assemble, plan_cluster
from ultrascale.plan.model import NetworkNeed, NetworkNeeds
from ultrascale.plan.needs.network import plan_network_needs

RANGES = ["10.20.0.0/16", "100.64.0.0/16"]
SHARED = {"id": VPC, "cidrs": RANGES, "owner": OWNER}


def needs_of(*pools: dict[str, Any], **network: Any) -> NetworkNeeds:
    return plan_network_needs(assemble(loads_own(as_json(existing_document(*pools, **network)))))


def about(needs: NetworkNeeds, topic: str) -> dict[str, NetworkNeed]:
    """Return the needs of a topic by the first word of their subject."""
    return {need.subject: need for need in needs.needs if need.topic == topic}


CLOSED = needs_of(vpc=SHARED, egress="none", endpoints={"present": ["ec2", "s3"]})


def test_each_need_has_its_reason() -> None:
    assert all(need.why and need.need for need in CLOSED.needs)
    assert all(need.formula for need in CLOSED.needs if need.topic in {"subnets", "quotas"})
    assert about(CLOSED, "tags")["subnets and VPC"].need == "none"
    s3 = about(CLOSED, "endpoints")["com.amazonaws.us-east-1.s3"]
    assert "network ACLs let TCP 443 out to the service's public addresses" in s3.need


def test_each_subnet_is_told_with_the_addresses_that_it_has_to_give() -> None:
    subnets = about(CLOSED, "subnets")

    assert [*subnets] == [
        "control-plane in us-east-1a: subnet-0a1b2c3d4e5f60011",
        "control-plane in us-east-1b: subnet-0a1b2c3d4e5f60012",
        "nodes in us-east-1a: subnet-0a1b2c3d4e5f60021",
        "nodes in us-east-1b: subnet-0a1b2c3d4e5f60022",
        "accelerated in us-east-1a: subnet-0a1b2c3d4e5f60031",
    ]
    assert "16 free addresses, at least 6" in subnets[next(iter(subnets))].need


@pytest.mark.parametrize(
    ("nodes", "size"), [(16, "an empty /21"), (200, "an empty /18"), (1500, "2 empty /16")]
)
def test_a_larger_fleet_asks_for_a_larger_subnet(nodes: int, size: str) -> None:
    network = {"vpc_cidr": "10.0.0.0/16", "zones": ["us-west-2a", "us-west-2b"]}
    network |= {"pod_cidrs": {"count": 12, "from": "100.64.0.0/10"}}
    pools = [SYSTEM_POOL, POOL | {"nodes": {"max": nodes}, "provisioner": "karpenter"}]
    cluster = make_cluster(network=network, pools=pools, karpenter={"version": "1.15.2"})
    subnets = about(plan_network_needs(plan_cluster(cluster)), "subnets")
    assert subnets["accelerated in us-west-2b"].need.endswith(size)


def test_endpoints_that_are_there_are_told_from_those_that_are_missing() -> None:
    states = {
        name.removeprefix("com.amazonaws."): need.state
        for name, need in about(CLOSED, "endpoints").items()
    }

    assert states["us-east-1.ec2"] == states["us-east-1.s3"] == "stated"
    assert states["us-east-1.lambda"] == states["us-east-1.ecr.dkr"] == "missing"
    assert "policy of the S3 endpoint: al2023-repos-us-east-1-de612dc2" in states


def test_a_policy_of_the_s3_endpoint_lets_the_clusters_own_buckets_through() -> None:
    document = existing_document(egress="none", endpoints={"present": ["s3"]})
    document["storage"] = {
        "buckets": ["checkpoints", {"name": "data", "existing": "corp-datasets"}]
    }

    needs = about(plan_network_needs(assemble(loads_own(as_json(document)))), "endpoints")

    told = {name.partition("S3 endpoint: ")[2] for name in needs}
    assert {"corp-datasets", "research-storage-*"} <= told


@pytest.mark.parametrize("name", ["estate", "hybrid"])
def test_functions_and_builds_outside_the_vpc_are_on_the_page(
    name: str, request: pytest.FixtureRequest
) -> None:
    """A policy that demands the VPC of all calls refuses them, in the middle of a deployment."""
    assembly: Assembly = request.getfixturevalue(name)
    functions, builds = (
        [each for _, each in assembly.resources(kind) if "VpcConfig" not in each["Properties"]]
        for kind in ("AWS::Lambda::Function", "AWS::CodeBuild::Project")
    )
    routes = about(plan_network_needs(assembly.plan), "routes")
    told = {
        owner: [each for each in routes if owner in each and each.endswith("own network")]
        for owner in ("AWS Lambda", "AWS CodeBuild")
    }

    assert bool(functions) == bool(told["AWS Lambda"])
    assert bool(builds) == bool(told["AWS CodeBuild"])
    assert len(told["AWS CodeBuild"]) == len(assembly.plan.images.builds)


def test_a_network_with_a_way_out_is_asked_for_no_endpoint() -> None:
    assert not about(needs_of(), "endpoints")
    assert "0.0.0.0/0 to a NAT gateway" in str(needs_of().needs)
    # Those that we make are nobody's work.
    made = needs_of(egress="none", endpoints={"present": ["s3"], "create": "missing"})
    states = {need.state for name, need in about(made, "endpoints").items() if "policy" not in name}
    assert states == {"ours", "stated"}


def test_groups_of_endpoints_let_every_subnet_of_nodes_in() -> None:
    need = about(CLOSED, "security-groups")["group of each interface endpoint"]

    assert need.need == "TCP 443 from 10.20.16.0/20, 10.20.32.0/20, 100.64.0.0/18"


def test_the_owner_of_shared_subnets_is_told_what_to_share_and_to_make() -> None:
    shares = about(CLOSED, "sharing")

    assert f"work of the owner, {OWNER}" in shares
    assert any("subnet-0a1b2c3d4e5f60031" in need.need for need in shares.values())
    assert not about(needs_of(), "sharing")


def test_quotas_of_the_vpc_are_those_that_neighbours_share() -> None:
    shared = {name for name, need in about(CLOSED, "quotas").items() if "neighbours" in need.why}
    codes = {name.rpartition("(")[2] for name in shared}
    assert codes == {"L-BB24F6E5)", "L-29B6F2EB)", "L-83CA0A9D)"}


def test_a_file_that_makes_its_own_vpc_tells_what_another_one_would_have_to_give() -> None:
    own = plan_network_needs(plan_cluster(make_cluster(pools=[SYSTEM_POOL, POOL])))

    assert own.vpc is None
    assert {need.state for need in own.needs if need.topic in {"subnets", "endpoints"}} <= {
        "missing",
        "to-check",
    }


def test_nodes_with_single_addresses_are_told_without_prefixes() -> None:
    crowded = [
        each | ({"free_addresses": 900, "free_prefixes": 0} if "nodes" in each["use"] else {})
        for each in subnets()
    ]

    needs = about(needs_of(subnets=crowded), "subnets")

    assert (
        " free addresses, such as an empty /"
        in needs["nodes in us-east-1a: subnet-0a1b2c3d4e5f60021"].need
    )


@pytest.mark.parametrize(
    ("mirror", "told"),
    [
        ("111122223333.dkr.ecr.us-east-1.amazonaws.com/mirror", False),
        ("111122223333.dkr.ecr.eu-west-1.amazonaws.com/mirror", True),
        ("registry.corp.example/mirror", True),
    ],
)
def test_a_mirror_that_no_endpoint_leads_to_needs_a_route(mirror: str, told: bool) -> None:
    document = existing_document(egress="none") | {"images": {"mirror": mirror}}

    routes = about(plan_network_needs(assemble(loads_own(as_json(document)))), "routes")

    assert (mirror.partition("/")[0] in routes) is told
    layers = "prod-eu-west-1-starport-layer-bucket.s3.eu-west-1.amazonaws.com"
    assert (layers in routes) is ("eu-west-1" in mirror)
