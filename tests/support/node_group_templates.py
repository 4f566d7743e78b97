"""The template of a pool's node group, by itself."""

from itertools import takewhile
from typing import Any

from aws_cdk.assertions import Template
from msgspec.structs import replace

from tests.support.construct_stacks import cluster_of
from ultrascale.plan import ClusterPlan, PoolPlan, names
from ultrascale.plan.model import NodeGroupPlan
from ultrascale.plan.pools.node_groups import plan_node_groups
from ultrascale_stacks.cluster import ClusterStacks, LayerStack
from ultrascale_stacks.nodes import NodeGroupStack, ScalingStack


class _Scaling(ScalingStack):
    """Has the function of node groups, whose resources no test of a group reads."""

    def __init__(self, cluster: ClusterStacks, name: str) -> None:
        LayerStack.__init__(self, cluster, name)
        self.service_token = "arn:aws:lambda:us-west-2:111122223333:function:node-groups"


def node_group_template(plan: ClusterPlan, pool: PoolPlan) -> dict[str, Any]:
    """Return the template of the stack of ``pool``."""
    before = takewhile(lambda other: other.name != pool.name, plan.all_pools)
    *_, group = plan_node_groups(plan.network, [*before, pool], plan.nodes.autoscaler, repaired=())
    return dict(group_template(plan, group).to_json())


def group_template(plan: ClusterPlan, group: NodeGroupPlan) -> Template:
    """Return the template of the stack of ``group``."""
    cluster = cluster_of(replace(plan, nodes=replace(plan.nodes, groups=(group,))))
    cluster.stacks["scaling"] = [_Scaling(cluster, "scaling")]
    return Template.from_stack(NodeGroupStack(cluster, names.stack(plan.name, group.pool.name)))
