"""HyperPod task governance, which needs a HyperPod node."""

from aws_cdk import Stack
from constructs import Construct

from ultrascale.plan.model import ClusterPlan
from ultrascale_constructs.addon import Addon
from ultrascale_constructs.task_governance import TaskGovernance
from ultrascale_stacks.deployment import stack_properties


class GovernanceStack(Stack):
    """Defines the add-on that brings the queues, then their configuration."""

    def __init__(
        self, scope: Construct, id: str, *, plan: ClusterPlan, hyperpod_cluster_arn: str
    ) -> None:
        super().__init__(scope, id, **stack_properties(plan))
        assert plan.hyperpod is not None, "a cluster without HyperPod has no such stack"
        governance = plan.hyperpod.governance
        assert governance is not None, "a cluster without task governance has no such stack"
        addon = Addon(self, governance.addon.name, plan=governance.addon, cluster_name=plan.name)
        queues = TaskGovernance(
            self, "TaskGovernance", plan=governance, hyperpod_cluster_arn=hyperpod_cluster_arn
        )
        queues.node.add_dependency(addon)
