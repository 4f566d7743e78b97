"""The front: Envoy Gateway, the Gateway of all models, and the load balancer before it."""

from collections.abc import Mapping, Sequence

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from ultrascale.parts.front.model import LoadBalancerPlan, Plan
from ultrascale.plan import names
from ultrascale.plan.model import ClusterPlan
from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_constructs.front.gateway import gateway_values
from ultrascale_constructs.front.load_balancer import (
    FrontLoadBalancer,
    controller_role,
    controller_values,
    target_group_binding,
)
from ultrascale_constructs.network import Network
from ultrascale_constructs.platform import ManifestApplier
from ultrascale_k8s import PlatformChart
from ultrascale_stacks.builders import Builder, ClusterStacks
from ultrascale_stacks.deployment import stack_properties


class FrontStack(Stack):
    """Installs the controller, then applies the Gateway.

    The CRDs stay when the stack is deleted, as Helm leaves those of a folder `crds`, and with them
    the routes of services.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: ClusterPlan,
        network: Network,
        cluster: ClusterContext,
        charts: Sequence[PlatformChart],
    ) -> None:
        """Define the stack.

        Args:
            scope: Parent.
            id: Name of the stack.
            plan: The cluster.
            network: Its VPC.
            cluster: The cluster's context for constructs.
            charts: The Gateway and its policies.
        """
        super().__init__(scope, id, **stack_properties(plan))
        front = plan.part(Plan)
        assert front is not None, "a cluster without a front has no such stack"
        manifests = ManifestApplier(self, "Manifests", cluster=cluster)
        manifests.install_chart(
            "Controller",
            repository=front.chart,
            version=front.version,
            namespace=names.FRONT_NAMESPACE,
            values=gateway_values(front),
            retain=False,
            # When the stack is deleted, the controller must delete the proxies before it goes
            # itself.
            wait=True,
        )
        for chart in charts:
            manifests.apply(chart.name, chart.manifests, retain=chart.retained)
        if front.load_balancer is not None:
            self._bind(front, front.load_balancer, network, cluster, manifests)

    def _bind(
        self,
        front: Plan,
        plan: LoadBalancerPlan,
        network: Network,
        cluster: ClusterContext,
        manifests: ManifestApplier,
    ) -> None:
        balancer = FrontLoadBalancer(
            self,
            "LoadBalancer",
            front=front,
            plan=plan,
            cluster=cluster,
            subnet_ids=network.ids_of(plan.subnets),
        )
        vpc_id, targets = cluster.vpc.vpc_id, balancer.target_group_arn
        if plan.controller is not None:
            role = controller_role(
                self, "ControllerRole", plan=plan.controller, cluster_name=cluster.name
            )
            # A pod that was created before its association has no credentials.
            manifests.before_next(role)
            manifests.install_chart(
                "LoadBalancerController",
                repository=plan.controller.chart,
                version=plan.controller.version,
                namespace=names.SYSTEM_NAMESPACE,
                values=controller_values(
                    plan.controller,
                    cluster_name=cluster.name,
                    region=Stack.of(self).region,
                    vpc_id=vpc_id,
                ),
                retain=False,
                # Its webhook checks the binding, and when the stack is deleted it removes the
                # targets.
                wait=True,
            )
        manifests.apply(
            f"Targets-{plan.scheme}",
            [target_group_binding(plan, target_group_arn=targets, vpc_id=vpc_id)],
            retain=False,
        )
        CfnOutput(
            self, "Url", value=balancer.url, description="Base URL of clients of OpenAI's API"
        )


def _front(cluster: ClusterStacks, name: str) -> Stack:
    return FrontStack(
        cluster.app,
        name,
        plan=cluster.plan,
        network=cluster.network,
        cluster=cluster.context,
        charts=cluster.charts.of_layers["serving-front"],
    )


STACKS: Mapping[str, Builder] = {"serving-front": _front}
