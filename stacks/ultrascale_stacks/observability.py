"""What is measured of the cluster, what a dashboard shows, and who is told."""

from collections.abc import Mapping

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_logs as logs
from constructs import Construct

from ultrascale.plan import ClusterPlan, names
from ultrascale.plan.model import ObservabilityPlan
from ultrascale_constructs.addon import Addon
from ultrascale_constructs.alerts import Alerts
from ultrascale_constructs.calendar_function import ClusterApi
from ultrascale_constructs.dashboard import Dashboard
from ultrascale_constructs.fleet_metrics import FleetMetrics
from ultrascale_constructs.write_latency import WriteLatency
from ultrascale_stacks._environment import environment


class ObservabilityStack(Stack):
    """Defines the add-on that measures, the functions that do, and what they feed.

    The charts with the functions' rights must be applied before.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster: ClusterPlan,
        plan: ObservabilityPlan,
        api: ClusterApi,
        placeholders: Mapping[str, str],
    ) -> None:
        """Define the stack.

        Args:
            scope: Parent.
            id: Name of the stack.
            cluster: The cluster.
            plan: What is measured, shown and told.
            api: How the functions reach the API server.
            placeholders: What placeholders in the plan stand for.
        """
        super().__init__(scope, id, env=environment(cluster))
        addon = Addon(self, plan.addon.name, plan=plan.addon, cluster_name=cluster.name)
        groups = Construct(self, "Logs")
        for name in plan.log_groups:
            # Before the add-on, which would make them without an end to their retention.
            addon.node.add_dependency(_log_group(groups, name, plan.log_retention_days))
        FleetMetrics(self, "FleetMetrics", plan=plan.fleet_metrics, cluster=api)
        if plan.write_latency is not None:
            WriteLatency(self, "WriteLatency", plan=plan.write_latency, cluster=api)
        if plan.dashboard:
            Dashboard(
                self,
                "Dashboard",
                name=names.dashboard(cluster.name, cluster.region),
                sections=plan.dashboard,
                period_seconds=plan.fleet_metrics.interval_minutes * 60,
                placeholders=placeholders,
            )
        if plan.alerts is not None:
            Alerts(
                self,
                "Alerts",
                plan=plan.alerts,
                cluster_name=cluster.name,
                placeholders=placeholders,
            )


def _log_group(scope: Construct, name: str, retention_days: int) -> logs.CfnLogGroup:
    group = logs.CfnLogGroup(
        scope,
        name.rpartition("/")[2],
        log_group_name=name,
        retention_in_days=retention_days,
    )
    group.apply_removal_policy(RemovalPolicy.DESTROY)
    return group
