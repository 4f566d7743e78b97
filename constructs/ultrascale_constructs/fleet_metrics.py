"""The function that measures the fleet."""

from constructs import Construct

from ultrascale.plan.model import FleetMetricsPlan
from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_constructs.scheduled_function import ScheduledFunction


class FleetMetrics(ScheduledFunction):
    """Defines the function, which asks the GPU exporters at the addresses of their pods as well."""

    def __init__(
        self, scope: Construct, id: str, *, plan: FleetMetricsPlan, cluster: ClusterContext
    ) -> None:
        super().__init__(
            scope,
            id,
            plan=plan,
            cluster=cluster,
            handler="lambdas.fleet_metrics.handler.on_event",
            description=f"Metrics of the fleet of {cluster.name}",
            purpose="Measures the fleet",
        )
