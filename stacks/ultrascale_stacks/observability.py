"""Metrics, dashboard and alerts of a cluster."""

from collections.abc import Mapping

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_logs as logs
from constructs import Construct

from ultrascale.parts.observability.model import Plan
from ultrascale.plan import names
from ultrascale.plan.model import ClusterPlan
from ultrascale.plan.stacks import LayerId, StackName
from ultrascale_constructs.addon import Addon
from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_constructs.observability.alerts import Alerts
from ultrascale_constructs.observability.dashboard import Dashboard
from ultrascale_constructs.observability.write_latency import WriteLatency
from ultrascale_constructs.scheduled_function import ScheduledFunction
from ultrascale_stacks.builders import Builder, ClusterStacks
from ultrascale_stacks.deployment import stack_properties


class ObservabilityStack(Stack):
    """Defines the CloudWatch add-on, the functions that measure, the dashboard and the alerts.

    The charts with the functions' permissions must be applied before.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: ClusterPlan,
        cluster: ClusterContext,
        placeholders: Mapping[str, str],
    ) -> None:
        """Define the stack.

        Args:
            scope: Parent.
            id: Name of the stack.
            plan: The cluster.
            cluster: The cluster's context for constructs.
            placeholders: Values of placeholders in the plan.
        """
        super().__init__(scope, id, **stack_properties(plan))
        observability = plan.part(Plan)
        assert observability is not None, "a cluster without metrics has no such stack"
        addon = Addon(
            self, observability.addon.name, plan=observability.addon, cluster_name=plan.name
        )
        groups = Construct(self, "Logs")
        for name in observability.written_logs:
            # Before the add-on, which would make them with endless retention.
            addon.node.add_dependency(_log_group(groups, name, observability.log_retention_days))
        # The agent also scrapes the GPU exporters at their pods' addresses.
        ScheduledFunction(
            self,
            "FleetMetrics",
            plan=observability.fleet_metrics,
            cluster=cluster,
            handler="lambdas.fleet_metrics.handler.on_event",
            description=f"Metrics of the fleet of {plan.name}",
            purpose="Measures the fleet",
        )
        if observability.write_latency is not None:
            WriteLatency(self, "WriteLatency", plan=observability.write_latency, cluster=cluster)
        if observability.dashboard:
            Dashboard(
                self,
                "Dashboard",
                name=names.dashboard(plan.name, plan.region),
                sections=observability.dashboard,
                period_seconds=observability.fleet_metrics.interval_minutes * 60,
                placeholders=placeholders,
            )
        if observability.alerts is not None:
            Alerts(
                self,
                "Alerts",
                plan=observability.alerts,
                cluster_name=plan.name,
                placeholders=placeholders,
                key_arn=plan.key("logs"),
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


def _observability(cluster: ClusterStacks, name: StackName) -> Stack:
    return ObservabilityStack(
        cluster.app,
        name,
        plan=cluster.plan,
        cluster=cluster.context,
        placeholders=cluster.placeholders("storage"),
    )


STACKS: Mapping[LayerId, Builder] = {
    "observability": _observability,
}
