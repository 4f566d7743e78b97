"""The front: Envoy Gateway, the Gateway for all models, and the load balancer before it."""

from collections.abc import Mapping

from aws_cdk import CfnOutput

from ultrascale.parts.front.model import LoadBalancerPlan, Plan
from ultrascale.plan import names
from ultrascale.plan.stacks import LayerId, StackName
from ultrascale_constructs.front import (
    FrontLoadBalancer,
    controller_role,
    controller_values,
    gateway_values,
    target_group_binding,
)
from ultrascale_constructs.platform import ManifestApplier
from ultrascale_stacks.cluster import Builder, ClusterStacks, LayerStack


class FrontStack(LayerStack):
    """Stack that installs the front's controller, then applies the Gateway.

    The CRDs stay when the stack is deleted, as Helm leaves CRDs of a folder `crds`; with them the
    routes of services stay.
    """

    def __init__(self, cluster: ClusterStacks, name: StackName) -> None:
        super().__init__(cluster, name)
        front = cluster.part(Plan)
        manifests = ManifestApplier(self, "Manifests", cluster=cluster.context)
        manifests.install_chart(
            "Controller",
            repository=front.chart,
            version=front.version,
            namespace=names.FRONT_NAMESPACE,
            values=gateway_values(front),
            retain=False,
            # Deletion order: the controller must delete the proxies before it is deleted itself.
            wait=True,
        )
        for chart in cluster.charts.of_layers["serving-front"]:
            manifests.apply(chart.name, chart.manifests, retain=chart.retained)
        if front.load_balancer is not None:
            self._bind_targets(front, front.load_balancer, cluster, manifests)

    def _bind_targets(
        self,
        front: Plan,
        plan: LoadBalancerPlan,
        cluster: ClusterStacks,
        manifests: ManifestApplier,
    ) -> None:
        balancer = FrontLoadBalancer(
            self,
            "LoadBalancer",
            front=front,
            plan=plan,
            cluster=cluster.context,
            subnet_ids=cluster.network.ids_of(plan.subnets),
        )
        vpc_id, targets = cluster.network.vpc.vpc_id, balancer.target_group_arn
        if plan.controller is not None:
            role = controller_role(
                self, "ControllerRole", plan=plan.controller, cluster_name=cluster.plan.name
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
                    cluster_name=cluster.plan.name,
                    region=self.region,
                    vpc_id=vpc_id,
                ),
                retain=False,
                # The load balancer controller's webhook checks the binding; the controller removes
                # the targets when the stack is deleted.
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


STACKS: Mapping[LayerId, Builder] = {"serving-front": FrontStack}
