"""AWS's HyperPod chart, which the HyperPod cluster needs."""

from aws_cdk import Stack
from constructs import Construct

from ultrascale.plan.model import ClusterPlan
from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_constructs.hyperpod_chart import HyperPodChart
from ultrascale_stacks.deployment import stack_properties


class HyperPodChartStack(Stack):
    """Installs the chart of ``plan.hyperpod_chart``, which must not be None."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: ClusterPlan,
        cluster: ClusterContext,
    ) -> None:
        super().__init__(scope, id, **stack_properties(plan))
        assert plan.hyperpod_chart is not None, "a cluster without HyperPod has no such stack"
        HyperPodChart(
            self,
            "Chart",
            plan=plan.hyperpod_chart,
            cluster=cluster,
        )
