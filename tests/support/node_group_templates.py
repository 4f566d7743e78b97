"""The template of a pool's node group, by itself."""

from typing import Any

import aws_cdk as cdk
from aws_cdk.assertions import Template

from tests.support.assembly import CONTEXT
from ultrascale.plan import ClusterPlan, PoolPlan
from ultrascale_constructs.node_config import ClusterAddress
from ultrascale_stacks.network import NetworkStack
from ultrascale_stacks.node_group import NodeGroupStack


def node_group_template(plan: ClusterPlan, pool: PoolPlan) -> dict[str, Any]:
    """Return the template of the stack of ``pool``."""
    app = cdk.App(context=dict(CONTEXT), builtin_cloud_formation_validation=False)
    stack = NodeGroupStack(
        app,
        "Pool",
        plan=plan,
        pool=pool,
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
    return dict(Template.from_stack(stack).to_json())
