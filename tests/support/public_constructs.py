"""Constructs of the library in apps of other people, and what becomes of them."""

from collections.abc import Callable, Mapping
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks

from tests.support.foreign_apps import (
    BLOCK,
    Resources,
    define_calendar,
    define_canary,
    define_file_system,
    define_pool,
    define_template,
    existing_cluster,
    made,
    make_app,
    make_stack,
)
from ultrascale_constructs.public import (
    ArgumentError,
    CapacityReservation,
    Cluster,
    HyperPodCluster,
    InstanceGroup,
    KarpenterNodePool,
    Nodes,
)

EMPTY = eks.CfnNodegroup.ScalingConfigProperty(min_size=0, desired_size=0, max_size=64)


def every_construct(stack: cdk.Stack) -> None:
    """Define each construct of the library in ``stack``, against an imported VPC."""
    cluster = existing_cluster(stack)
    private = cluster.vpc.private_subnets
    template = define_template(stack, "Template", cluster=cluster, capacity_block=BLOCK)
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
    define_calendar(stack, cluster, group, 4)
    spilling = CapacityReservation(reservation="cr-0123456789abcdef1", spill="on-demand")
    define_pool(stack, "Spilling", cluster=cluster, nodes=4, capacity_reservation=spilling)
    define_pool(
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
    define_file_system(stack, cluster, capacity_gib=2400)
    define_canary(stack, cluster=cluster)
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
    nodes, types = Nodes(min=2, max=4), ["m7g.2xlarge"]
    system = define_pool(
        stack, "system", cluster=own, subnets=private, instance_types=types, nodes=nodes
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
    return made(stack)


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
