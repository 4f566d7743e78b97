"""The EKS cluster, with the nodes of its controllers and of reserved training nodes."""

from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from ultrascale_constructs.public import CapacityReservation, Cluster, NodePool, Nodes


class ClusterStack(cdk.Stack):
    """Defines the cluster and two node pools in an existing VPC."""

    def __init__(self, scope: Construct, id: str, **properties: Any) -> None:
        super().__init__(scope, id, **properties)
        self.vpc = ec2.Vpc.from_vpc_attributes(
            self,
            "Vpc",
            vpc_id="vpc-0123456789abcdef0",
            availability_zones=["us-west-2b", "us-west-2c"],
            private_subnet_ids=["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
        )
        self.cluster = Cluster(
            self,
            "Cluster",
            name="research",
            vpc=self.vpc,
            subnets=self.vpc.private_subnets,
            admins=[f"arn:aws:iam::{self.account}:role/PlatformAdmin"],
            public_cidrs=["203.0.113.0/24"],
        )
        system = NodePool(
            self,
            "system",
            cluster=self.cluster,
            subnets=self.vpc.private_subnets,
            instance_types=["m7i.2xlarge"],
            nodes=Nodes(min=2, max=4),
        )
        self.cluster.add_workload_addons(system)
        NodePool(
            self,
            "trn1",
            cluster=self.cluster,
            subnets=self.vpc.private_subnets[:1],
            instance_types=["trn1.32xlarge"],
            nodes=4,
            role="reserved",
            capacity_reservation=CapacityReservation(reservation="cr-0123456789abcdef0"),
        )
