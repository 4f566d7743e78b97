"""The template of a pool's node group, by itself."""

from itertools import takewhile
from typing import Any

import aws_cdk as cdk
from aws_cdk.assertions import Template

from tests.support.construct_stacks import context_in
from ultrascale.plan import ClusterPlan, PoolPlan
from ultrascale.plan.pools.node_groups import plan_node_groups
from ultrascale_stacks.cluster import NetworkStack
from ultrascale_stacks.feature_flags import FLAGS
from ultrascale_stacks.node_group import NodeGroupStack


def node_group_template(plan: ClusterPlan, pool: PoolPlan) -> dict[str, Any]:
    """Return the template of the stack of ``pool``."""
    app = cdk.App(context=dict(FLAGS), builtin_cloud_formation_validation=False)
    network = NetworkStack(app, "Network", plan=plan).network
    before = takewhile(lambda other: other.name != pool.name, plan.all_pools)
    *_, group = plan_node_groups(plan.network, [*before, pool], plan.nodes.autoscaler, repaired=())
    stack = NodeGroupStack(
        app,
        "Pool",
        plan=plan,
        group=group,
        network=network,
        cluster=context_in(network, name=plan.name),
        service_token="arn:aws:lambda:us-west-2:111122223333:function:node-groups",
    )
    return dict(Template.from_stack(stack).to_json())
