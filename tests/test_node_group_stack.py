"""The stack of a pool's node group: who manages it, where it lies, and what comes with it."""

from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Template

from stacks.network import NetworkStack
from stacks.node_group import NodeGroupStack
from tests.assembly import CONTEXT
from tests.construct_stacks import the
from tests.pools import CAPACITY_BLOCK, ON_DEMAND, POOL, SYSTEM_POOL, make_cluster
from ultrascale.plan import plan_cluster
from ultrascale_constructs.node_config import ClusterAddress

MANAGED = "AWS::EKS::Nodegroup"
SELF_MANAGED = "AWS::AutoScaling::AutoScalingGroup"
TAGS = "Custom::AutoScalingGroupTags"


def synthesize(**changes: Any) -> Template:
    """Return the stack of a pool in which ``changes`` replace keys. Its zone has two subnets."""
    pool = POOL | {"purchase": ON_DEMAND} | changes
    network = {
        "vpc_cidr": "10.0.0.0/16",
        # Of the first each zone has a part, of the others each has one.
        "pod_cidrs": ["100.64.0.0/16", "100.65.0.0/16", "100.66.0.0/16"],
        "zones": ["us-west-2a", "us-west-2b"],
    }
    plan = plan_cluster(make_cluster(network=network, pools=[SYSTEM_POOL, pool]))
    app = cdk.App(context=dict(CONTEXT), builtin_cloud_formation_validation=False)
    stack = NodeGroupStack(
        app,
        "Pool",
        plan=plan,
        pool=plan.pools[0],
        network=NetworkStack(app, "Network", plan=plan).network,
        cluster=ClusterAddress(
            name=plan.name,
            endpoint="https://api.example",
            certificate_authority="Y2VydGlmaWNhdGU=",
            service_cidr=str(plan.control_plane.service_cidr),
        ),
        cluster_security_group_id="sg-0123456789abcdef0",
        service_token="arn:aws:lambda:us-west-2:111122223333:function:node-groups",
    )
    return Template.from_stack(stack)


@pytest.mark.parametrize(
    ("provisioner", "kind", "other"),
    [("managed-node-group", MANAGED, SELF_MANAGED), ("self-managed", SELF_MANAGED, MANAGED)],
)
def test_the_file_says_who_manages_the_nodes(provisioner: str, kind: str, other: str) -> None:
    template = synthesize(provisioner=provisioner)

    template.resource_count_is(kind, 1)
    template.resource_count_is(other, 0)
    template.resource_count_is("AWS::Scheduler::Schedule", 0)


@pytest.mark.parametrize(
    ("provisioner", "kind", "subnets"),
    [
        ("managed-node-group", MANAGED, "Subnets"),
        ("self-managed", SELF_MANAGED, "VPCZoneIdentifier"),
    ],
)
def test_a_block_lies_in_the_larger_subnet_and_has_its_calendar(
    provisioner: str, kind: str, subnets: str
) -> None:
    template = synthesize(provisioner=provisioner, purchase=CAPACITY_BLOCK, role="reserved")

    (subnet,) = the(template, kind)[subnets]
    assert "AcceleratedUsWest2b1" in subnet["Fn::ImportValue"]
    assert template.find_resources("AWS::Scheduler::Schedule")


def test_other_pools_lie_in_every_subnet_of_their_zones() -> None:
    assert len(the(synthesize(), MANAGED)["Subnets"]) == 2


def test_the_autoscaler_finds_what_it_scales() -> None:
    assert the(synthesize(), TAGS)["Tags"]["ultrascale.dev/cluster-autoscaler"] == "research"


def test_it_does_not_find_a_block() -> None:
    template = synthesize(purchase=CAPACITY_BLOCK, role="reserved")

    template.resource_count_is(TAGS, 0)


def test_it_finds_self_managed_groups_by_the_same_tag() -> None:
    tags = the(synthesize(provisioner="self-managed"), SELF_MANAGED)["Tags"]

    assert {
        "Key": "ultrascale.dev/cluster-autoscaler",
        "Value": "research",
        "PropagateAtLaunch": False,
    } in tags
