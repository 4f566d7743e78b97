"""A VPC that exists is referred to and left alone; one of ours can be without a way out."""

from typing import Any

from aws_cdk.assertions import Template

from tests.support.construct_stacks import REGION, make_stack
from tests.support.existing_vpc import VPC, existing_document, subnet
from tests.support.networks import cluster_of
from tests.support.pools import as_json, loads_own
from ultrascale.plan.model import NetworkPlan
from ultrascale.plan.network.vpc import plan_network
from ultrascale_constructs.network import Network

WAY_OUT = ("InternetGateway", "VPCGatewayAttachment", "NatGateway", "EIP", "Route")


def existing_plan(**network: Any) -> NetworkPlan:
    return plan_network(loads_own(as_json(existing_document(**network))))


def template_of(plan: NetworkPlan) -> tuple[Network, dict[str, Any]]:
    stack = make_stack()
    network = Network(stack, "Network", plan=plan, cluster_name="research", region=REGION)
    return network, Template.from_stack(stack).to_json().get("Resources", {})


def test_nothing_is_made_in_a_vpc_that_exists_and_its_subnets_are_found_by_use_and_zone() -> None:
    network, resources = template_of(existing_plan())

    assert resources == {}
    assert network.vpc_id == network.vpc.vpc_id == VPC
    assert [each[-2:] for each in network.subnet_ids("control-plane")] == ["11", "12"]
    assert network.subnet_ids("private", zones=["us-east-1b"]) == ["subnet-0a1b2c3d4e5f60022"]
    assert network.subnet_ids("accelerated") == ["subnet-0a1b2c3d4e5f60031"]


def test_a_subnet_with_several_uses_is_the_same_subnet_in_each() -> None:
    both = [
        subnet(1, "us-east-1a", "10.20.0.0/20", "control-plane", "nodes", "accelerated"),
        subnet(2, "us-east-1b", "10.20.16.0/20", "control-plane", "nodes"),
    ]
    plan = existing_plan(subnets=both)
    network, _ = template_of(plan)

    assert [each.kind for each in plan.subnets if each.id == both[0]["id"]] == [
        "control-plane",
        "private",
        "accelerated",
    ]
    assert network.ids_of(plan.of_kind("accelerated")) == [both[0]["id"]]
    assert network.ids_of(plan.of_kind("private")) == [both[0]["id"], both[1]["id"]]


def test_our_vpc_without_a_way_out_has_no_gateway_and_no_public_subnet() -> None:
    plan = plan_network(cluster_of(pod_cidrs=["100.64.0.0/16"], egress="none"))
    network, resources = template_of(plan)
    types = [body["Type"].removeprefix("AWS::EC2::") for body in resources.values()]

    assert not {*types} & {*WAY_OUT}
    assert network.subnet_ids("public") == []
    # The endpoint of S3 is reached by routes.
    assert types.count("RouteTable") == 2
    tables = {
        body["Properties"]["SubnetId"]["Ref"]
        for body in resources.values()
        if body["Type"].endswith("SubnetRouteTableAssociation")
    }
    assert len(tables) == len(network.subnet_ids("private") + network.subnet_ids("accelerated"))


def test_a_way_out_moves_no_subnet_of_ours() -> None:
    open_plan, closed = (
        plan_network(cluster_of(pod_cidrs=["100.64.0.0/16"], egress=egress))
        for egress in ("nat", "none")
    )
    assert [each for each in open_plan.subnets if each.kind != "public"] == [*closed.subnets]
