"""AWS resources for sizing node groups and draining their nodes."""

from collections.abc import Mapping

from aws_cdk import Stack
from constructs import Construct

from ultrascale.plan.model import ClusterPlan
from ultrascale_constructs.cluster_autoscaler import ClusterAutoscaler
from ultrascale_constructs.node_group_functions import NodeGroupFunctions
from ultrascale_constructs.termination_handler import TerminationHandler
from ultrascale_stacks.deployment import stack_properties
from ultrascale_stacks.placeholders import show


class ScalingStack(Stack):
    """Defines the roles and the queue of the controllers, and the function of node groups.

    Attributes:
        service_token: ARN of the function that the custom resources of node groups call.
        placeholders: Values of placeholders in the manifests.
    """

    def __init__(self, scope: Construct, id: str, *, plan: ClusterPlan) -> None:
        super().__init__(scope, id, **stack_properties(plan))
        self.service_token = NodeGroupFunctions(
            self,
            "NodeGroupFunctions",
            cluster_name=plan.name,
            log_retention_days=plan.control_plane.log_retention_days,
        ).service_token
        # Exported whether used or not: see `NetworkStack`.
        self.export_value(self.service_token)
        if plan.cluster_autoscaler is not None:
            ClusterAutoscaler(
                self, "ClusterAutoscaler", plan=plan.cluster_autoscaler, cluster_name=plan.name
            )
        values: dict[str, str] = {}
        if plan.termination_handler is not None:
            handler = TerminationHandler(
                self, "TerminationHandler", plan=plan.termination_handler, cluster_name=plan.name
            )
            placeholder = plan.termination_handler.queue_url
            values[placeholder] = handler.queue_url
            show(self, "TerminationQueueUrl", placeholder, handler.queue_url)
        self.placeholders: Mapping[str, str] = values
