"""Roles of the Cluster Autoscaler and the Node Termination Handler, and the latter's queue."""

from collections.abc import Mapping, Sequence

from aws_cdk import Aws, Stack
from constructs import Construct

from ultrascale.plan.model import ClusterAutoscalerPlan, TerminationHandlerPlan
from ultrascale.plan.names import CLUSTER_AUTOSCALER_ACCOUNT, TERMINATION_HANDLER_ACCOUNT
from ultrascale_constructs.event_queue import EventQueue
from ultrascale_constructs.pod_identity import Permission, PodIdentityRole

# --- The IAM role of the Cluster Autoscaler -------------------------------------------------------


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
            permissions=_autoscaler_permissions(Stack.of(self), plan, cluster_name),
        )


def _autoscaler_permissions(
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


# --- The queue and the IAM role of the Node Termination Handler -----------------------------------


# Retention of events as in the handler's documentation, or as long as a node may be drained.
_RETENTION_SECONDS = 300
# No rebalance recommendations: the handler would at once drain a node that EC2 may never take back.
# The groups have capacity rebalancing, which launches a successor first and then calls the hook.
# Source: https://github.com/aws/aws-node-termination-handler/tree/v1.25.6#4-create-amazon-eventbridge-rules
_PATTERNS: Mapping[str, Mapping[str, object]] = {
    "Lifecycle": {
        "source": ["aws.autoscaling"],
        "detail-type": ["EC2 Instance-terminate Lifecycle Action"],
    },
    "SpotInterruption": {
        "source": ["aws.ec2"],
        "detail-type": ["EC2 Spot Instance Interruption Warning"],
    },
    "StateChange": {
        "source": ["aws.ec2"],
        "detail-type": ["EC2 Instance State-change Notification"],
        # Events on which the handler drains: other events would only wake it, once for each launch.
        "detail": {"state": ["stopping", "stopped", "shutting-down", "terminated"]},
    },
    "ScheduledChange": {
        "source": ["aws.health"],
        "detail-type": ["AWS Health Event"],
        "detail": {"service": ["EC2"], "eventTypeCategory": ["scheduledChange"]},
    },
}


class TerminationHandler(Construct):
    """Defines the handler's queue and the role of its pods."""

    def __init__(
        self, scope: Construct, id: str, *, plan: TerminationHandlerPlan, cluster_name: str
    ) -> None:
        super().__init__(scope, id)
        queue = EventQueue(
            self,
            "Queue",
            name=plan.queue,
            retention_seconds=max(_RETENTION_SECONDS, plan.drain_seconds),
            patterns=_PATTERNS,
        )
        PodIdentityRole(
            self,
            "Identity",
            cluster_name=cluster_name,
            service_account=TERMINATION_HANDLER_ACCOUNT,
            permissions=_handler_permissions(Stack.of(self), plan, cluster_name, queue.queue_arn),
        )
        # Made only of names: a reference from another stack would be an export, which cannot go
        # with the last group before the importing stack is deployed.
        host = f"sqs.{plan.region}.{Aws.URL_SUFFIX}"
        self.queue_url = f"https://{host}/{Aws.ACCOUNT_ID}/{plan.queue}"  # URL of the queue


def _handler_permissions(
    stack: Stack, plan: TerminationHandlerPlan, cluster_name: str, queue_arn: str
) -> Sequence[Permission]:
    """Return the documented permissions, limited to the handler's queue and groups.

    Lifecycle events of other clusters' groups reach the queue as well: if this handler completed
    such an event, the instance would end before its own cluster's handler has drained it.

    Source: https://github.com/aws/aws-node-termination-handler/tree/v1.25.6#5-create-an-iam-role-for-the-pods
    """
    where = f"{stack.region}:{stack.account}"
    groups = f"arn:{stack.partition}:autoscaling:{where}:autoScalingGroup:*:autoScalingGroupName/*"
    return (
        Permission(
            actions=(
                "autoscaling:DescribeAutoScalingInstances",
                "autoscaling:DescribeTags",
                "ec2:DescribeInstances",
            ),
            resources=("*",),
            why_wildcards="these can be described all or none",
        ),
        Permission(
            actions=("autoscaling:CompleteLifecycleAction",),
            resources=(groups,),
            conditions={"StringEquals": {f"aws:ResourceTag/{plan.managed_tag}": cluster_name}},
            why_wildcards="names of the groups are made up; the condition names the cluster",
        ),
        Permission(
            actions=("sqs:ReceiveMessage", "sqs:DeleteMessage"),
            resources=(queue_arn,),
        ),
    )
