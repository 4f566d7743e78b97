"""The template of a pool's node group, by itself."""

from typing import Any

import aws_cdk as cdk
from aws_cdk.assertions import Template

from tests.support.assembly import CONTEXT
from tests.support.construct_stacks import context_in
from ultrascale.plan import ClusterPlan, PoolPlan
from ultrascale_stacks.network import NetworkStack
from ultrascale_stacks.node_group import NodeGroupStack


def node_group_template(plan: ClusterPlan, pool: PoolPlan) -> dict[str, Any]:
    """Return the template of the stack of ``pool``."""
    app = cdk.App(context=dict(CONTEXT), builtin_cloud_formation_validation=False)
    network = NetworkStack(app, "Network", plan=plan).network
    stack = NodeGroupStack(
        app,
        "Pool",
        plan=plan,
        pool=pool,
        network=network,
        cluster=context_in(network, name=plan.name),
        service_token="arn:aws:lambda:us-west-2:111122223333:function:node-groups",
    )
    return dict(Template.from_stack(stack).to_json())
