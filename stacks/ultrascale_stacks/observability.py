"""Metrics, dashboard and alerts of a cluster."""

from collections.abc import Mapping

from aws_cdk import RemovalPolicy
from aws_cdk import aws_logs as logs
from constructs import Construct

from ultrascale.parts.observability.model import Plan
from ultrascale.plan import names
from ultrascale.plan.stacks import LayerId, StackName
from ultrascale_constructs.addon import Addon
from ultrascale_constructs.bucket import Bucket
from ultrascale_constructs.key import key_of
from ultrascale_constructs.lambda_function import ScheduledFunction
from ultrascale_constructs.observability import Alerts, Dashboard, WriteLatency, allow_ledger
from ultrascale_stacks.cluster import Builder, ClusterStacks, LayerStack


class ObservabilityStack(LayerStack):
    """Stack of the CloudWatch add-on, the measuring functions, the dashboard and the alerts.

    The charts with the functions' permissions must be applied before this stack.
    """

    def __init__(self, cluster: ClusterStacks, name: StackName) -> None:
        super().__init__(cluster, name)
        plan, observability = cluster.plan, cluster.part(Plan)
        placeholders = cluster.placeholders("storage")
        addon = Addon(
            self, observability.addon.name, plan=observability.addon, cluster_name=plan.name
        )
        groups = Construct(self, "Logs")
        for log_group in observability.written_logs:
            # Defined before the add-on, which would make the log groups with endless retention.
            addon.node.add_dependency(
                _log_group(groups, log_group, observability.log_retention_days)
            )
        ledger, bucket = observability.ledger, None
        if ledger is not None:
            folder = Construct(self, "Ledger")
            key = key_of(folder, description=f"Ledger of {plan.name}", arn=plan.key("storage"))
            bucket = Bucket(folder, "Bucket", plan=ledger.bucket, key=key)
        # The agent also scrapes the GPU exporters, at the addresses of their pods.
        function = ScheduledFunction(
            self,
            "FleetMetrics",
            plan=observability.fleet_metrics,
            cluster=cluster.context,
            handler="lambdas.fleet_metrics.handler.on_event",
            description=f"Metrics of the fleet of {plan.name}",
            purpose="Measures the fleet",
            placeholders={} if bucket is None else {names.LEDGER_BUCKET: bucket.bucket_name},
        )
        if bucket is not None and ledger is not None:
            allow_ledger(function.role, ledger, bucket)
        if observability.write_latency is not None:
            WriteLatency(
                self, "WriteLatency", plan=observability.write_latency, cluster=cluster.context
            )
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


STACKS: Mapping[LayerId, Builder] = {"observability": ObservabilityStack}
