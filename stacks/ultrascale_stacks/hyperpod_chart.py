"""AWS's HyperPod chart, which must be there before the HyperPod cluster."""

from aws_cdk import Stack
from constructs import Construct

from ultrascale.plan import ClusterPlan
from ultrascale.plan.retention import LOG_DAYS
from ultrascale_constructs.hyperpod_chart import HyperPodChart
from ultrascale_constructs.network import Network
from ultrascale_stacks._environment import environment


class HyperPodChartStack(Stack):
    """Installs the chart of ``plan.hyperpod_chart``, which must not be None."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: ClusterPlan,
        network: Network,
        cluster_security_group_id: str,
    ) -> None:
        super().__init__(scope, id, env=environment(plan))
        assert plan.hyperpod_chart is not None
        HyperPodChart(
            self,
            "Chart",
            plan=plan.hyperpod_chart,
            cluster_name=plan.name,
            vpc_id=network.vpc_id,
            subnet_ids=network.subnet_ids("private"),
            security_group_id=cluster_security_group_id,
            log_retention_days=LOG_DAYS,
        )
