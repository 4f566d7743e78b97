"""The SageMaker HyperPod cluster of the pools of provisioner `hyperpod`."""

from collections.abc import Mapping

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from ultrascale.plan.model import ClusterPlan
from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_constructs.hyperpod import HyperPodCluster
from ultrascale_constructs.network import Network
from ultrascale_stacks.deployment import stack_properties


class HyperPodStack(Stack):
    """Defines the HyperPod cluster with all its instance groups: an EKS cluster can have one.

    Attributes:
        hyperpod_cluster_arn: ARN of the HyperPod cluster.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: ClusterPlan,
        network: Network,
        cluster: ClusterContext,
        placeholders: Mapping[str, str],
    ) -> None:
        super().__init__(scope, id, **stack_properties(plan))
        hyperpod = plan.hyperpod
        assert hyperpod is not None, "a cluster without HyperPod has no such stack"
        resource = HyperPodCluster(
            self,
            "HyperPod",
            plan=hyperpod,
            region=plan.region,
            cluster=cluster,
            subnet_ids={group.name: network.ids_of(group.subnets) for group in hyperpod.groups},
            file_systems={
                lustre.name: (placeholders[lustre.dns_name], placeholders[lustre.mount_name])
                for lustre in plan.lustre
            }
            | {each.name: (each.dns_name, each.mount_name) for each in plan.existing_lustre},
        )
        self.hyperpod_cluster_arn = resource.arn
        self.export_value(resource.arn)
        CfnOutput(self, "HyperPodClusterArn", value=resource.arn, description="HyperPod cluster")
