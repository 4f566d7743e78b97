"""The nodes of a Capacity Block, in a managed node group of this app."""

from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct
from k8s.labels import TAINTS, node_labels

from ultrascale_constructs.public import CapacityBlock, CapacityBlockCalendar, LaunchTemplate

NODES = 16
# As `aws ec2 describe-capacity-reservations` shows it after the purchase.
BLOCK = CapacityBlock(
    reservation="cr-0123456789abcdef0",
    starts="2027-03-01T11:30:00Z",
    ends="2027-03-08T11:30:00Z",
)
ZONE = "us-west-2b"


class TrainingStack(cdk.Stack):
    """Defines the launch template, the node group on it and the calendar of its block."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster: eks.Cluster,
        vpc: ec2.Vpc,
        node_role: iam.IRole,
        **properties: Any,
    ) -> None:
        super().__init__(scope, id, **properties)
        template = LaunchTemplate(
            self,
            "P5",
            cluster=cluster,
            instance_type="p5.48xlarge",
            capacity_block=BLOCK,
            tags={"cost-center": "research"},
        )
        (subnet,) = (subnet for subnet in vpc.private_subnets if subnet.availability_zone == ZONE)
        group = eks.CfnNodegroup(
            self,
            "Nodes",
            cluster_name=cluster.cluster_name,
            node_role=node_role.role_arn,
            subnets=[subnet.subnet_id],
            ami_type=template.ami_type,
            capacity_type=template.capacity_type,
            launch_template=eks.CfnNodegroup.LaunchTemplateSpecificationProperty(
                id=template.launch_template_id, version=template.latest_version
            ),
            # The calendar sets the size. CloudFormation sends this one with each change of the
            # group: change the group outside of the block's window.
            scaling_config=eks.CfnNodegroup.ScalingConfigProperty(
                min_size=0, desired_size=0, max_size=NODES
            ),
            labels=node_labels(template.labels),
            taints=TAINTS,
        )
        CapacityBlockCalendar(
            self,
            "Calendar",
            cluster=cluster,
            node_group=group,
            instance_type="p5.48xlarge",
            nodes=NODES,
            capacity_block=BLOCK,
        )
