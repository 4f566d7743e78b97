"""The write canary of the API server, with its objective and alarms."""

from aws_cdk import aws_applicationsignals as applicationsignals
from constructs import Construct

from ultrascale.parts.observability.model import ObjectivePlan, WriteLatencyPlan
from ultrascale.plan.model import MetricPlan
from ultrascale_constructs.alarm import define_alarm
from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_constructs.scheduled_function import ScheduledFunction

_Slo = applicationsignals.CfnServiceLevelObjective
# Shortest period of a metric of standard resolution.
_PERIOD_SECONDS = 60


class WriteLatency(Construct):
    """Defines the canary that writes each second, the objective for its writes, and their alarms.

    The function has no reserved concurrency: accounts start with as few as ten executions, of which
    none can be reserved. Of two simultaneous runs only one writes.
    """

    def __init__(
        self, scope: Construct, id: str, *, plan: WriteLatencyPlan, cluster: ClusterContext
    ) -> None:
        super().__init__(scope, id)
        name = cluster.name
        canary = ScheduledFunction(
            self,
            "Canary",
            plan=plan.function,
            cluster=cluster,
            handler="lambdas.write_canary.handler.on_event",
            description=f"Writes to the API server of {name} each second",
            purpose="Keeps the write canary going",
        )
        objective = _objective(self, plan.objective)
        alarms = Construct(self, "Alarms")
        for alarm in plan.alarms:
            # Defined last: an alarm before the function and its schedule would take its silence for
            # a fault.
            define_alarm(alarms, alarm, name, {}).node.add_dependency(canary, objective)


def _objective(scope: Construct, plan: ObjectivePlan) -> _Slo:
    """Define the service level objective.

    Application Signals creates its service-linked role with the first objective of an account.
    Source:
    https://docs.aws.amazon.com/applicationsignals/latest/APIReference/API_CreateServiceLevelObjective.html
    """
    metric = _Slo.RequestBasedSliMetricProperty(
        monitored_request_count_metric=_Slo.MonitoredRequestCountMetricProperty(
            good_count_metric=[_query("good", plan.good)]
        ),
        total_request_count_metric=[_query("total", plan.total)],
    )
    return _Slo(
        scope,
        "Objective",
        name=plan.name,
        description=plan.description,
        request_based_sli=_Slo.RequestBasedSliProperty(request_based_sli_metric=metric),
        goal=_Slo.GoalProperty(
            attainment_goal=plan.goal_percent,
            interval=_Slo.IntervalProperty(
                rolling_interval=_Slo.RollingIntervalProperty(
                    duration=plan.interval_days, duration_unit="DAY"
                )
            ),
        ),
        burn_rate_configurations=[
            _Slo.BurnRateConfigurationProperty(look_back_window_minutes=minutes)
            for minutes in plan.burn_rate_minutes
        ],
    )


def _query(id: str, metric: MetricPlan) -> _Slo.MetricDataQueryProperty:
    return _Slo.MetricDataQueryProperty(
        id=id,
        return_data=True,
        metric_stat=_Slo.MetricStatProperty(
            metric=_Slo.MetricProperty(
                namespace=metric.namespace,
                metric_name=metric.name,
                dimensions=[
                    _Slo.DimensionProperty(name=key, value=value)
                    for key, value in metric.dimensions.items()
                ],
            ),
            period=_PERIOD_SECONDS,
            stat=metric.statistic,
        ),
    )
