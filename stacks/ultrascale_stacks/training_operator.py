"""HyperPod's training operator, which needs a HyperPod node."""

from aws_cdk import Stack
from constructs import Construct

from ultrascale.plan.model import ClusterPlan
from ultrascale_constructs.addon import Addon
from ultrascale_stacks.deployment import stack_properties


class TrainingOperatorStack(Stack):
    """Defines the add-on, apart from the nodes that it runs on.

    Before a training plan starts there is no node, and this stack fails.
    """

    def __init__(self, scope: Construct, id: str, *, plan: ClusterPlan) -> None:
        super().__init__(scope, id, **stack_properties(plan))
        assert plan.hyperpod is not None, "a cluster without HyperPod has no such stack"
        addon = plan.hyperpod.training_operator
        assert addon is not None, "a cluster without the operator has no such stack"
        Addon(self, addon.name, plan=addon, cluster_name=plan.name)
