"""CDK apps of other people, in which constructs of the library stand."""

from collections.abc import Mapping
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk.assertions import Template

from ultrascale_constructs.public import (
    CapacityBlock,
    CapacityBlockCalendar,
    ExistingCluster,
    LaunchTemplate,
    LustreFileSystem,
    NodePool,
    WriteLatencyCanary,
)
from ultrascale_stacks.feature_flags import FLAGS

Resources = Mapping[str, Any]
ACCOUNT, REGION = "111122223333", "us-west-2"
BLOCK = CapacityBlock(
    reservation="cr-0123456789abcdef0",
    starts="2026-12-01T11:30:00Z",
    ends="2026-12-02T11:30:00Z",
)
OUR_FLAGS: Mapping[str, Any] = FLAGS
EVERY_FLAG: Mapping[str, Any] = {
    key: True if isinstance(value, bool) else value for key, value in OUR_FLAGS.items()
}


def make_app(flags: Mapping[str, Any] | None = None) -> cdk.App:
    """Return an app with the feature flags of its owner, and without CDK's slow validation."""
    return cdk.App(context=dict(flags or {}), builtin_cloud_formation_validation=False)


def make_stack(
    app: cdk.App | None = None, id: str = "Theirs", *, region: str | None = REGION
) -> cdk.Stack:
    """Return a stack of that app; None leaves its Region open."""
    env = cdk.Environment(account=ACCOUNT, region=region) if region else None
    return cdk.Stack(app or make_app(), id, env=env)


def imported_vpc(stack: cdk.Stack) -> ec2.IVpc:
    """Return a VPC with a private subnet in each of two zones."""
    region = REGION if cdk.Token.is_unresolved(stack.region) else stack.region
    return ec2.Vpc.from_vpc_attributes(
        stack,
        "Vpc",
        vpc_id="vpc-0123456789abcdef0",
        availability_zones=[f"{region}a", f"{region}b"],
        private_subnet_ids=["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
    )


def existing_cluster(stack: cdk.Stack, **changes: Any) -> ExistingCluster:
    """Return a cluster by plain values."""
    values: dict[str, Any] = {
        "name": "Theirs_1",
        "vpc": changes.get("vpc") or imported_vpc(stack),
        "security_group_id": "sg-0123456789abcdef0",
        "endpoint": "https://0123.gr7.us-west-2.eks.amazonaws.com",
        "certificate_authority": "Y2VydGlmaWNhdGU=",
        "service_cidr": "172.20.0.0/16",
        "kubernetes_version": "1.35",
    }
    return ExistingCluster(**values | changes)


def cdk_cluster(stack: cdk.Stack, vpc: ec2.IVpc, **arguments: Any) -> eks.Cluster:
    """Return a cluster that the app makes by the CDK's own construct, without nodes."""
    return eks.Cluster(
        stack,
        "Cluster",
        version=eks.KubernetesVersion.of("1.35"),
        vpc=vpc,
        vpc_subnets=[ec2.SubnetSelection(subnets=vpc.private_subnets)],
        default_capacity_type=eks.DefaultCapacityType.NODEGROUP,
        default_capacity=0,
        **arguments,
    )


def define_pool(stack: cdk.Stack, id: str = "P5", **changes: Any) -> NodePool:
    """Define a pool of p5 in the first private subnet of its cluster, with other arguments."""
    cluster = changes.get("cluster") or existing_cluster(stack)
    subnets = [] if "subnets" in changes else cluster.vpc.private_subnets[:1]
    values: dict[str, Any] = {"cluster": cluster, "subnets": subnets, "nodes": 2}
    values["instance_types"] = ["p5.48xlarge"]
    return NodePool(stack, id, **values | changes)


def define_template(stack: cdk.Stack, id: str = "P5", **changes: Any) -> LaunchTemplate:
    """Define a launch template of p5, with other arguments."""
    cluster = changes.pop("cluster", None) or existing_cluster(stack)
    values: dict[str, Any] = {"instance_type": "p5.48xlarge"}
    return LaunchTemplate(stack, id, cluster=cluster, **values | changes)


def define_calendar(
    stack: cdk.Stack, cluster: ExistingCluster, node_group: Any, nodes: Any, id: str = "Calendar"
) -> CapacityBlockCalendar:
    """Define the calendar of a group of p5 in a Capacity Block."""
    return CapacityBlockCalendar(
        stack,
        id,
        cluster=cluster,
        node_group=node_group,
        instance_type="p5.48xlarge",
        nodes=nodes,
        capacity_block=BLOCK,
    )


def define_file_system(stack: cdk.Stack, cluster: Any, **changes: Any) -> LustreFileSystem:
    """Define a file system in the first private subnet of its cluster, with other arguments."""
    subnet = changes.pop("subnet", None) or cluster.vpc.private_subnets[0]
    values: dict[str, Any] = {"subnet": subnet, "capacity_gib": 1200}
    return LustreFileSystem(stack, "Data", cluster=cluster, **values | changes)


def define_canary(stack: cdk.Stack, id: str = "Canary", **changes: Any) -> WriteLatencyCanary:
    """Define a canary in the private subnets of its cluster, with other arguments."""
    cluster = changes.pop("cluster", None) or existing_cluster(stack)
    private = cluster.vpc.private_subnets
    return WriteLatencyCanary(stack, id, cluster=cluster, subnets=private, **changes)


def made(stack: cdk.Stack) -> Resources:
    """Return the resources of a stack."""
    found: Resources = Template.from_stack(stack).to_json().get("Resources", {})
    return found
