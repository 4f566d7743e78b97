"""Managed node groups to look into."""

from collections.abc import Mapping

from aws_cdk.assertions import Template

from tests.support.construct_stacks import make_context, make_pool_plan, make_stack
from tests.support.pools import CAPACITY_BLOCK
from ultrascale import config
from ultrascale.plan.model import PoolPlan
from ultrascale.plan.pools.node_groups import plan_node_group
from ultrascale_constructs.node_group import NodeGroup

NODE_GROUP = "AWS::EKS::Nodegroup"
SIZE = "Custom::NodeGroupSize"
TAGS = "Custom::AutoScalingGroupTags"
GUARD = "Custom::NodeGroupGuard"
ZONES = "Custom::SuspendedZoneRebalancing"
CLUSTER_GROUP = "sg-0123456789abcdef0"
FUNCTION = "arn:aws:lambda:us-west-2:111122223333:function:node-groups"
BLOCK = config.CapacityBlock.model_validate(CAPACITY_BLOCK)
ODCR = config.Odcr(reservation="cr-0123456789abcdef0")
PLAN = make_pool_plan("p5.48xlarge")


def synthesize(plan: PoolPlan, *, autoscaler_tags: Mapping[str, str] | None = None) -> Template:
    """Return a stack with the managed node group of ``plan``."""
    stack = make_stack()
    NodeGroup(
        stack,
        "Pool",
        plan=plan_node_group(
            plan,
            subnets=(),
            autoscaler_tags=autoscaler_tags or {},
            repaired=plan.reservation is None,
        ),
        cluster=make_context(stack),
        subnet_ids=["subnet-b"],
        service_token=FUNCTION,
    )
    return Template.from_stack(stack)
