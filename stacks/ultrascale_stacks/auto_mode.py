"""The IAM role of EKS Auto Mode's nodes."""

from aws_cdk import Stack
from constructs import Construct

from ultrascale.plan.model import ClusterPlan
from ultrascale_constructs.auto_mode import AutoModeNodeRole
from ultrascale_stacks.deployment import stack_properties


class AutoModeStack(Stack):
    """Defines the role of the nodes: without it they start, are paid for, and never join."""

    def __init__(self, scope: Construct, id: str, *, plan: ClusterPlan) -> None:
        super().__init__(scope, id, **stack_properties(plan))
        assert plan.node_role is not None, "a cluster without Auto Mode has no such stack"
        AutoModeNodeRole(self, "NodeRole", cluster_name=plan.name, role_name=plan.node_role)
