"""A cluster in a VPC that exists: every part of it is told its subnets by their ids."""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.existing_vpc import OWNER, VPC, existing_document
from tests.support.hyperpod import hyperpod_of
from tests.support.pools import GOVERNED_POOL, POOL, SYSTEM_POOL, as_json, loads_own
from ultrascale.documents import mapping
from ultrascale.plan import plan_cluster
from ultrascale.plan.model import ClusterPlan
from ultrascale.plan.needs.report import plan_needs
from ultrascale.plan.network.policies import plan_network_policies
from ultrascale.plan.scale import plan_scale
from ultrascale.plan.stacks import planned_layers
from ultrascale.report import render_markdown, render_picture

NODES = ("subnet-0a1b2c3d4e5f60021", "subnet-0a1b2c3d4e5f60022")
ACCELERATED = ("subnet-0a1b2c3d4e5f60031",)
HYPERPOD = {**GOVERNED_POOL, "zones": ["us-east-1a"]}
FREE = {key: value for key, value in POOL.items() if key != "zones"}


def planned(*pools: dict[str, Any], **changes: Any) -> ClusterPlan:
    return plan_cluster(loads_own(as_json(existing_document(*pools) | changes)))


@pytest.mark.parametrize("provisioner", ["karpenter", "auto-mode"])
def test_node_classes_name_subnets_by_id(provisioner: str) -> None:
    plain = {**FREE, "name": "plain", "instance_types": ["m7i.2xlarge"]}
    pools = [{**each, "provisioner": provisioner} for each in (FREE, plain)]
    karpenter = {"karpenter": {"version": "1.15.2"}} if provisioner == "karpenter" else {}
    plan = planned(SYSTEM_POOL, *pools, **karpenter)

    classes = {each.name: each.subnet_ids for each in plan.nodes.classes}
    assert classes == {"train": ACCELERATED, "plain": NODES}


def test_groups_get_their_subnets_by_id_and_pods_none_of_a_neighbours() -> None:
    plan = planned(SYSTEM_POOL, FREE)
    ids = {each.pool.name: [*(s.id for s in each.subnets)] for each in plan.nodes.groups}
    (group,) = hyperpod_of(planned(SYSTEM_POOL, HYPERPOD)).cluster.groups
    (cni,) = (each for each in plan.control_plane.node_addons if each.name == "vpc-cni")
    assert ids == {"system": [*NODES], "train": [*ACCELERATED]}
    assert tuple(subnet.id for subnet in group.subnets) == ACCELERATED
    assert mapping(cni.configuration, "env")["ENABLE_SUBNET_DISCOVERY"] == "false"
    # No stack makes a network.
    assert "network" not in planned_layers(plan)


@pytest.mark.parametrize("account", ["111122223333", None])
def test_a_vpc_with_another_owner_is_shared(account: str | None) -> None:
    vpc = {"id": VPC, "cidrs": ["10.20.0.0/16", "100.64.0.0/16"]}
    document = existing_document(vpc=vpc | {"owner": OWNER}) | {"account": account}
    plan = plan_cluster(loads_own(as_json({k: v for k, v in document.items() if v is not None})))

    assert plan.network.existing is not None
    assert plan.network.existing.shared
    assert planned().network.existing == replace(plan.network.existing, owner=None, shared=False)


def test_neither_a_vpc_nor_its_gateways_are_asked_of_the_account() -> None:
    needs = plan_needs(planned())
    quotas = {need.name: need.needed for need in needs.quotas}

    assert not {"VPCs per Region", "EC2-VPC Elastic IPs", "IPv4 CIDR blocks per VPC"} & {*quotas}
    assert "what others use" in quotas["Network Address Usage"].formula
    assert "NAT gateways" not in {item.name for item in needs.money.items}


def test_the_picture_says_whose_the_vpc_is() -> None:
    vpc = {"id": VPC, "cidrs": ["10.20.0.0/16", "100.64.0.0/16"], "owner": OWNER}
    document = existing_document(vpc=vpc, egress="transit-gateway")
    needs = plan_needs(plan_cluster(loads_own(as_json(document))))
    drawn = render_picture(needs)

    assert VPC in drawn
    assert f"of account {OWNER}: nothing in it is changed" in drawn
    assert "a transit gateway that is there" in drawn
    assert VPC in render_markdown(needs, file="cluster.yaml", version="1.2.3")


def test_a_policy_that_names_ranges_lets_no_neighbour_of_the_vpc_in() -> None:
    cluster = loads_own(as_json(existing_document()))
    large = replace(plan_scale(cluster), policies_of_jobs=False)

    ranges = plan_network_policies(cluster, large).ranges
    assert ranges == ("10.20.16.0/20", "10.20.32.0/20", "100.64.0.0/18")
