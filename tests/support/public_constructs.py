"""Constructs of the library in apps of other people, and what becomes of them."""

from collections.abc import Callable, Mapping
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk.assertions import Template

from tests.support.foreign_apps import (
    BLOCK,
    existing_cluster,
    make_app,
    make_stack,
)
from ultrascale_constructs.public import (
    ArgumentError,
    CapacityBlockCalendar,
    CapacityReservation,
    Cluster,
    HyperPodCluster,
    InstanceGroup,
    KarpenterNodePool,
    LaunchTemplate,
    LustreFileSystem,
    NodePool,
    Nodes,
    WriteLatencyCanary,
)

Resources = Mapping[str, Any]
EMPTY = eks.CfnNodegroup.ScalingConfigProperty(min_size=0, desired_size=0, max_size=64)


def every_construct(stack: cdk.Stack) -> None:
    """Define each construct of the library in ``stack``, against an imported VPC."""
    cluster = existing_cluster(stack)
    private = cluster.vpc.private_subnets
    template = LaunchTemplate(
        stack, "Template", cluster=cluster, instance_type="p5.48xlarge", capacity_block=BLOCK
    )
    group = eks.CfnNodegroup(
        stack,
        "Group",
        cluster_name=cluster.name,
        node_role="arn:aws:iam::111122223333:role/Nodes",
        subnets=[private[0].subnet_id],
        capacity_type=template.capacity_type,
        ami_type=template.ami_type,
        launch_template=eks.CfnNodegroup.LaunchTemplateSpecificationProperty(
            id=template.launch_template_id, version=template.latest_version
        ),
        scaling_config=EMPTY,
    )
    CapacityBlockCalendar(
        stack,
        "Calendar",
        cluster=cluster,
        node_group=group,
        instance_type="p5.48xlarge",
        nodes=4,
        capacity_block=BLOCK,
    )
    NodePool(
        stack,
        "Spilling",
        cluster=cluster,
        subnets=private[:1],
        instance_types=["p5.48xlarge"],
        nodes=4,
        capacity_reservation=CapacityReservation(
            reservation="cr-0123456789abcdef1", spill="on-demand"
        ),
    )
    NodePool(
        stack,
        "Self",
        cluster=cluster,
        provisioner="self-managed",
        subnets=private,
        instance_types=["g6.48xlarge"],
        nodes=Nodes(min=1, max=4),
        efa="none",
    )
    KarpenterNodePool(
        stack,
        "Elastic",
        cluster=cluster,
        subnets=private[:1],
        instance_types=["p5.48xlarge"],
        max_nodes=8,
        node_role="KarpenterNodes",
        karpenter_version="1.15.2",
    )
    LustreFileSystem(stack, "Data", cluster=cluster, subnet=private[0], capacity_gib=2400)
    WriteLatencyCanary(stack, "Canary", cluster=cluster, subnets=private)
    HyperPodCluster(
        stack,
        "HyperPod",
        name="theirs",
        cluster=cluster,
        subnets=private,
        instance_groups=[
            InstanceGroup(name="p5", instance_type="p5.48xlarge", nodes=4, subnets=private[:1])
        ],
    )
    own = Cluster(stack, "Own", name="own", vpc=cluster.vpc, subnets=private)
    system = NodePool(
        stack,
        "system",
        cluster=own,
        subnets=private,
        instance_types=["m7g.2xlarge"],
        nodes=Nodes(min=2, max=4),
    )
    own.add_workload_addons(system)


def make_net() -> cdk.Stack:
    """Return a stack with nothing but the VPC `Net`."""
    stack = make_stack()
    ec2.Vpc(stack, "Net", max_azs=2)
    return stack


def resources(flags: Mapping[str, Any] | None = None) -> Resources:
    """Return the resources of every construct in an app with these feature flags."""
    stack = make_stack(make_app(flags))
    every_construct(stack)
    found: Resources = Template.from_stack(stack).to_json()["Resources"]
    return found


def of(found: Resources, kind: str, within: str = "") -> list[Mapping[str, Any]]:
    """Return the properties of the resources of a type, of those whose ids begin with a text."""
    return [
        each.get("Properties", {})
        for id, each in found.items()
        if each["Type"] == kind and id.startswith(within)
    ]


def refused(define: Callable[[], object]) -> tuple[str, ...]:
    """Return the lines of the error that ``define`` raises."""
    with pytest.raises(ArgumentError) as caught:
        define()
    return caught.value.mistakes
