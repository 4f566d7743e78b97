"""The SageMaker HyperPod cluster behind the pools of provisioner `hyperpod`."""

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from ultrascale.plan import ClusterPlan
from ultrascale.plan.model import InstanceGroupPlan
from ultrascale.plan.network.vpc import subnet_kind
from ultrascale.plan.pools.hyperpod import group_subnets
from ultrascale_constructs.hyperpod import FileSystems, HyperPodCluster
from ultrascale_constructs.network import Network
from ultrascale_stacks._environment import environment


class HyperPodStack(Stack):
    """Defines the HyperPod cluster with all its instance groups: SageMaker has one for a cluster.

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
        cluster_security_group_id: str,
        file_systems: FileSystems,
    ) -> None:
        super().__init__(scope, id, env=environment(plan))
        hyperpod = plan.hyperpod
        assert hyperpod is not None, "a cluster without HyperPod has no such stack"
        (default_subnet_id, *_) = network.subnet_ids("private")
        cluster = HyperPodCluster(
            self,
            "HyperPod",
            plan=hyperpod,
            region=plan.region,
            eks_cluster_arn=self.format_arn(
                service="eks", resource="cluster", resource_name=plan.name
            ),
            cluster_security_group_id=cluster_security_group_id,
            vpc=network.vpc,
            default_subnet_id=default_subnet_id,
            subnet_ids={group.name: _subnet_ids(plan, group, network) for group in hyperpod.groups},
            file_systems=file_systems,
        )
        self.hyperpod_cluster_arn = cluster.arn
        self.export_value(cluster.arn)
        CfnOutput(self, "HyperPodClusterArn", value=cluster.arn, description="HyperPod cluster")


def _subnet_ids(plan: ClusterPlan, group: InstanceGroupPlan, network: Network) -> list[str]:
    kind = subnet_kind(plan.network, accelerated=group.accelerated)
    ids = dict(zip(plan.network.of_kind(kind), network.subnet_ids(kind), strict=True))
    return [ids[subnet] for subnet in group_subnets(group, plan.network.of_kind(kind))]
