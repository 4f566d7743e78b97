"""The HyperPod cluster on the EKS cluster."""

from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from constructs import Construct
from k8s.priorities import PRIORITIES

from ultrascale_constructs.public import Cluster, HyperPodCluster, InstanceGroup, TrainingPlan


class HyperPodStack(cdk.Stack):
    """Defines the HyperPod cluster with the instances of a training plan."""

    def __init__(
        self, scope: Construct, id: str, *, cluster: Cluster, vpc: ec2.IVpc, **properties: Any
    ) -> None:
        super().__init__(scope, id, **properties)
        hyperpod = HyperPodCluster(
            self,
            "HyperPod",
            cluster=cluster,
            subnets=vpc.private_subnets,
            instance_groups=[
                InstanceGroup(
                    name="p5",
                    instance_type="p5.48xlarge",
                    nodes=8,
                    subnets=vpc.private_subnets[:1],
                    training_plan=TrainingPlan(
                        plan="arn:aws:sagemaker:us-west-2:111122223333:training-plan/spring",
                        starts="2027-03-01T11:30:00Z",
                        ends="2027-03-29T11:30:00Z",
                    ),
                    labels={"team.example.com/priority": PRIORITIES[0]},
                )
            ],
        )
        cdk.CfnOutput(self, "HyperPodArn", value=hyperpod.arn)
