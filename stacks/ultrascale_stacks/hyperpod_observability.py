"""HyperPod's observability add-on, which needs a HyperPod node."""

from aws_cdk import Stack
from constructs import Construct

from ultrascale.plan.model import ClusterPlan
from ultrascale_constructs.hyperpod_observability import HyperPodObservability
from ultrascale_stacks.deployment import stack_properties


class HyperPodObservabilityStack(Stack):
    """Defines the add-on and its workspace, apart from other metrics and alarms.

    Before a training plan starts there is no node, and this stack fails: the alarms must not.
    """

    def __init__(self, scope: Construct, id: str, *, plan: ClusterPlan) -> None:
        super().__init__(scope, id, **stack_properties(plan))
        assert plan.observability is not None, "a cluster without metrics has no such stack"
        addon = plan.observability.hyperpod_addon
        assert addon is not None, "a cluster without HyperPod has no such stack"
        HyperPodObservability(
            self, "HyperPod", plan=addon, cluster_name=plan.name, key_arn=plan.keys.logs
        )
