"""Node groups: each in a stack of its own, so that missing capacity rolls nothing else back."""

from aws_cdk import Stack
from constructs import Construct

from stacks._environment import environment
from ultrascale.plan import ClusterPlan
from ultrascale.plan.model import PoolPlan
from ultrascale.plan.network import node_subnet_kind
from ultrascale_constructs.network import Network
from ultrascale_constructs.node_group import NodeGroup


class NodeGroupStack(Stack):
    """Defines the managed node group of one pool."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: ClusterPlan,
        pool: PoolPlan,
        network: Network,
        cluster_security_group_id: str,
    ) -> None:
        super().__init__(scope, id, env=environment(plan))
        NodeGroup(
            self,
            "NodeGroup",
            plan=pool,
            cluster_name=plan.name,
            cluster_security_group_id=cluster_security_group_id,
            vpc=network.vpc,
            subnet_ids=network.subnet_ids(node_subnet_kind(plan.network, pool), zones=pool.zones),
        )
