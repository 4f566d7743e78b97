"""Things that stand beside the cluster."""

from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from constructs import Construct
from k8s.volumes import volume_and_claim

from ultrascale_constructs.public import ExistingCluster, LustreFileSystem, WriteLatencyCanary

CAPACITY_GIB = 4800


class DataStack(cdk.Stack):
    """Defines the file system, the objects that mount it, and the canary."""

    def __init__(self, scope: Construct, id: str, **properties: Any) -> None:
        super().__init__(scope, id, **properties)
        vpc = ec2.Vpc.from_vpc_attributes(
            self,
            "Vpc",
            vpc_id="vpc-0123456789abcdef0",
            availability_zones=["us-west-2a", "us-west-2b"],
            private_subnet_ids=["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
        )
        # As `aws eks describe-cluster --name platform` prints them.
        cluster = ExistingCluster(
            name="platform",
            vpc=vpc,
            security_group_id="sg-0123456789abcdef0",
            kubernetes_version="1.35",
        )
        data = LustreFileSystem(
            self,
            "Datasets",
            cluster=cluster,
            subnet=vpc.private_subnets[0],
            capacity_gib=CAPACITY_GIB,
            throughput_mbps_per_tib=500,
        )
        # `aws cloudformation describe-stacks` prints it for `kubectl apply -f -`.
        cdk.CfnOutput(
            self,
            "Volume",
            value=self.to_json_string(
                volume_and_claim(
                    file_system_id=data.file_system_id,
                    dns_name=data.dns_name,
                    mount_name=data.mount_name,
                    capacity_gib=CAPACITY_GIB,
                )
            ),
        )
        WriteLatencyCanary(
            self,
            "Canary",
            cluster=cluster,
            subnets=vpc.private_subnets,
            threshold_ms=500,
            goal_percent=99.5,
        )
