"""The IAM role of the Cluster Autoscaler."""

from collections.abc import Sequence

from aws_cdk import Stack
from constructs import Construct

from ultrascale.plan.model import ClusterAutoscalerPlan
from ultrascale.plan.names import CLUSTER_AUTOSCALER_ACCOUNT
from ultrascale_constructs.pod_identity import Permission, PodIdentityRole


class ClusterAutoscaler(Construct):
    """Defines the role of the Cluster Autoscaler's pod."""

    def __init__(
        self, scope: Construct, id: str, *, plan: ClusterAutoscalerPlan, cluster_name: str
    ) -> None:
        super().__init__(scope, id)
        PodIdentityRole(
            self,
            "Identity",
            cluster_name=cluster_name,
            service_account=CLUSTER_AUTOSCALER_ACCOUNT,
            permissions=_permissions(Stack.of(self), plan, cluster_name),
        )


def _permissions(
    stack: Stack, plan: ClusterAutoscalerPlan, cluster_name: str
) -> Sequence[Permission]:
    """Return upstream's policy, limited to the groups that the Cluster Autoscaler scales.

    Our groups have launch templates with instance types, so permissions for launch configurations
    and for attributes of instance types are left out.

    Source: https://github.com/kubernetes/autoscaler/blob/cluster-autoscaler-1.36.1/cluster-autoscaler/cloudprovider/aws/README.md
    """
    where = f"{stack.region}:{stack.account}"
    groups = f"arn:{stack.partition}:autoscaling:{where}:autoScalingGroup:*:autoScalingGroupName/*"
    node_groups = f"arn:{stack.partition}:eks:{where}:nodegroup/{cluster_name}/*/*"
    return (
        Permission(
            actions=(
                "autoscaling:DescribeAutoScalingGroups",
                "autoscaling:DescribeAutoScalingInstances",
                "autoscaling:DescribeScalingActivities",
                "autoscaling:DescribeTags",
                "ec2:DescribeInstanceTypes",
                "ec2:DescribeLaunchTemplateVersions",
            ),
            resources=("*",),
            why_wildcards="these can be described all or none",
        ),
        Permission(
            actions=("eks:DescribeNodegroup",),
            resources=(node_groups,),
            why_wildcards="names of node groups are CloudFormation's; the cluster is named",
        ),
        Permission(
            actions=(
                "autoscaling:SetDesiredCapacity",
                "autoscaling:TerminateInstanceInAutoScalingGroup",
            ),
            resources=(groups,),
            conditions={
                "StringEquals": {
                    f"aws:ResourceTag/{key}": value for key, value in plan.discovery_tags.items()
                }
            },
            why_wildcards="names of the groups are made up; the condition names the cluster",
        ),
    )
