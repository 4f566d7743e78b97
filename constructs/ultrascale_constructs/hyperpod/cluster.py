"""SageMaker HyperPod clusters that run on an EKS cluster."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from aws_cdk import CfnResource, CfnTag, RemovalPolicy, Stack
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_deployment as deployment
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from ultrascale.parts.hyperpod.model import HyperPodPlan, InstanceGroupPlan
from ultrascale_constructs.acknowledgment import (
    acknowledge,
    acknowledge_managed_policies,
    acknowledge_wildcards,
    shown_account,
)
from ultrascale_constructs.cdk_types import (
    answer_in_time,
    as_bucket,
    as_construct,
    as_log_group,
    aws_policy,
    child,
    logical_id,
    service,
)
from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_constructs.nodes import EfaSecurityGroup

# --- The bucket of the lifecycle scripts that HyperPod runs on each new instance ------------------


ON_CREATE = "on_create.sh"
_SCRIPTS = Path(__file__).parent / "lifecycle"
_FOLDER = "lifecycle"
_DIGITS = 12
# Actions that the CDK grants the deployment with wildcards for their variants.
_ACTIONS = ("Abort", "DeleteObject", "GetBucket", "GetObject", "List")


class HyperPodLifecycleBucket(Construct):
    """Defines the bucket, and uploads changed scripts at a deployment.

    The bucket's name must begin with ``sagemaker-``. It is deleted with its stack, and so are the
    scripts in it: they are part of this project.

    Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ClusterLifeCycleConfig.html
    """

    def __init__(self, scope: Construct, id: str, *, cluster_name: str, region: str) -> None:
        super().__init__(scope, id)
        # A bucket's name is unique in the world, and too short to contain a cluster's name.
        digest = sha256(f"{cluster_name}/{region}".encode()).hexdigest()[:_DIGITS]
        bucket = s3.Bucket(
            self,
            "Resource",
            bucket_name=f"sagemaker-lifecycle-{digest}-{Stack.of(self).account}",
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            versioned=True,
            # A retained bucket of that name would block the next stack of the same cluster.
            removal_policy=RemovalPolicy.DESTROY,
            auto_delete_objects=True,
        )
        self.bucket = bucket  # The bucket
        self.uri = f"s3://{bucket.bucket_name}/{_FOLDER}"  # S3 URI of the folder with the scripts
        group = logs.LogGroup(
            self,
            "Logs",
            retention=logs.RetentionDays.ONE_MONTH,
            removal_policy=RemovalPolicy.DESTROY,
        )
        scripts = deployment.BucketDeployment(
            self,
            "Scripts",
            destination_bucket=as_bucket(bucket),
            destination_key_prefix=_FOLDER,
            sources=[deployment.Source.asset(str(_SCRIPTS))],
            retain_on_delete=False,
            log_group=as_log_group(group),
        )
        for parent, name in (
            (bucket, "AutoDeleteObjectsCustomResource"),
            (scripts, "CustomResource"),
        ):
            answer_in_time(child(parent.node.find_child(name), CfnResource))
        acknowledge(
            bucket,
            {
                "AwsSolutions::AwsSolutions-S1": (
                    "one script of this project, which instances read when they are made"
                ),
                "ultrascale::Retained": "the script is part of this project, not a user's data",
            },
        )
        _acknowledge(scripts, bucket)


def _acknowledge(scripts: deployment.BucketDeployment, bucket: s3.Bucket) -> None:
    """Accept findings in the CDK's own construct for the upload of files."""
    stack = Stack.of(scripts)
    scope = scripts.handler_role.node.scope
    assert scope is not None
    function = as_construct(scope)
    account = shown_account(stack)
    assets = f"cdk-hnb659fds-assets-{account}-{stack.region}"
    shown = f"arn:{stack.partition}:s3:::{assets}/*"
    reason = "part of the CDK's deployment of files, which copies from assets to this one bucket"
    acknowledge_managed_policies(function, {"service-role/AWSLambdaBasicExecutionRole": reason})
    acknowledge(
        function,
        {
            "AwsSolutions::AwsSolutions-L1": "the CDK chooses its function's runtime",
            **{
                f"AwsSolutions::AwsSolutions-IAM5[{finding}]": reason
                for finding in (
                    f"Resource::<{logical_id(bucket)}.Arn>/*",
                    f"Resource::{shown}",
                    *(f"Action::s3:{action}*" for action in _ACTIONS),
                )
            },
        },
    )


# --- The execution role of a HyperPod cluster's instances -----------------------------------------


_MANAGED = "AmazonSageMakerClusterInstanceRolePolicy"
# Actions of the VPC CNI on the instances, and of SageMaker for their interfaces. The instances are
# of AWS's own account.
# Sources:
#     https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-prerequisites-iam.html
#     https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html
_CREATE, _MODIFY = "ec2:CreateNetworkInterface", "ec2:ModifyNetworkInterfaceAttribute"
_OF_INSTANCES = ("ec2:AttachNetworkInterface", "ec2:DetachNetworkInterface")
_OTHERS = ("subnet/*", "security-group/*", "instance/*")
_INTERFACES = (
    "ec2:AssignPrivateIpAddresses",
    "ec2:AttachNetworkInterface",
    "ec2:CreateNetworkInterface",
    "ec2:CreateNetworkInterfacePermission",
    "ec2:DeleteNetworkInterface",
    "ec2:DeleteNetworkInterfacePermission",
    "ec2:DetachNetworkInterface",
    "ec2:ModifyNetworkInterfaceAttribute",
    "ec2:UnassignPrivateIpAddresses",
)
_LOOK = (
    "cloudwatch:DescribeAlarms",
    "ec2:DescribeDhcpOptions",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstances",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeTags",
    "ec2:DescribeVpcs",
    "fsx:DescribeFileSystems",
)
_PULL = (
    "ecr:BatchCheckLayerAvailability",
    "ecr:BatchGetImage",
    "ecr:GetAuthorizationToken",
    "ecr:GetDownloadUrlForLayer",
)


def _of_any_account(scope: Construct, *names: str) -> list[str]:
    stack = Stack.of(scope)
    return [f"arn:{stack.partition}:ec2:{stack.region}:*:{name}" for name in names]


class HyperPodRole(Construct):
    """Defines the role of HyperPod's instances, and lets them join the cluster.

    HyperPod would create a missing access entry. The entry is defined here so that it is deleted
    with the stack, and so that a deployment needs no permission to create other entries.

    Sources:
        https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-prerequisites-iam.html
        https://docs.aws.amazon.com/eks/latest/userguide/creating-access-entries.html
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster_name: str,
        lifecycle_bucket: s3.Bucket,
        volume_keys: Sequence[str],
        vpc_id: str | None,
    ) -> None:
        """Define the role.

        Args:
            scope: Parent.
            id: Construct id.
            cluster_name: Name of the EKS cluster.
            lifecycle_bucket: Bucket with the script of new instances.
            volume_keys: ARNs of the user's own keys of the instances' volumes.
            vpc_id: VPC of the interfaces that it may change, for this cluster alone; None: any.
        """
        super().__init__(scope, id)
        stack = Stack.of(self)
        # The role
        self.role = iam.Role(
            self,
            "Resource",
            assumed_by=service("sagemaker.amazonaws.com"),
            managed_policies=[aws_policy(_MANAGED)],
        )
        interfaces = stack.format_arn(
            service="ec2", resource="network-interface", resource_name="*"
        )
        join = "eks-auth:AssumeRoleForPodIdentity"
        if vpc_id is not None:
            self._allow_in_vpc(vpc_id, interfaces)
        eks_cluster = stack.format_arn(
            service="eks", resource="cluster", resource_name=cluster_name
        )
        own = [((*_LOOK, *_PULL), ["*"]), ((join,), [eks_cluster])]
        for actions, resources in (
            *(own if vpc_id is not None else [((*_INTERFACES, *_LOOK, *_PULL, join), ["*"])]),
            (("ec2:CreateTags",), [interfaces]),
            (("s3:ListBucket",), [lifecycle_bucket.bucket_arn]),
            (("s3:GetObject",), [lifecycle_bucket.arn_for_objects("*")]),
        ):
            self.role.add_to_policy(iam.PolicyStatement(actions=list(actions), resources=resources))
        if volume_keys:
            # Source: https://docs.aws.amazon.com/sagemaker/latest/dg/smcluster-cmk.html
            self.role.add_to_policy(
                iam.PolicyStatement(
                    actions=["kms:CreateGrant", "kms:DescribeKey"], resources=list(volume_keys)
                )
            )
        eks.CfnAccessEntry(
            self,
            "Access",
            cluster_name=cluster_name,
            principal_arn=self.role.role_arn,
            # An entry of this type takes no access policies.
            type="HYPERPOD_LINUX",
        )
        self._acknowledge(lifecycle_bucket, _OTHERS if vpc_id is not None else ())

    def _allow_in_vpc(self, vpc_id: str, interfaces: str) -> None:
        """Allow the actions on interfaces of a VPC, which may be shared by another account."""
        subnets, groups, instances, vpc = _of_any_account(self, *_OTHERS, f"vpc/{vpc_id}")
        there = {"ArnLike": {"ec2:Vpc": vpc}}
        for actions, resources, conditions in (
            ([each for each in _INTERFACES if each != _CREATE], [interfaces], there),
            ([_CREATE, _MODIFY], [subnets, groups], there),
            # A new interface has no VPC yet.
            ([_CREATE], [interfaces], None),
            ([*_OF_INSTANCES, _MODIFY], [instances], None),
        ):
            self.role.add_to_policy(
                iam.PolicyStatement(actions=actions, resources=resources, conditions=conditions)
            )

    def _acknowledge(self, lifecycle_bucket: s3.Bucket, others: Sequence[str]) -> None:
        documented = "what AWS documents for the instances of HyperPod"
        stack = Stack.of(self)
        bucket = logical_id(lifecycle_bucket)
        account = shown_account(stack)
        interfaces = f"arn:{stack.partition}:ec2:{stack.region}:{account}:network-interface/*"
        acknowledge_managed_policies(self.role, {_MANAGED: documented})
        wildcards = ("*", interfaces, f"<{bucket}.Arn>/*", *_of_any_account(self, *others))
        acknowledge_wildcards(self.role, dict.fromkeys(wildcards, documented))


_Group = sagemaker.CfnCluster.ClusterInstanceGroupProperty
_Vpc = sagemaker.CfnCluster.VpcConfigProperty
FileSystems = Mapping[str, tuple[str, str]]


class HyperPodCluster(Construct):
    """Defines the HyperPod cluster with an instance group for each pool.

    HyperPod's Helm chart must be installed in the EKS cluster before: its agents report the health
    of the first instance.

    Source:
    https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-operate-console-ui-create-cluster.html
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: HyperPodPlan,
        region: str,
        cluster: ClusterContext,
        subnet_ids: Mapping[str, Sequence[str]],
        file_systems: FileSystems,
    ) -> None:
        """Define the cluster.

        Args:
            scope: Parent.
            id: Construct id.
            plan: The HyperPod cluster.
            region: Region of the cluster.
            cluster: The EKS cluster. Another EKS cluster replaces the HyperPod cluster.
            subnet_ids: Subnets of each group, by the group's name; a group that takes fewer uses
                    the first ones.
            file_systems: DNS name and mount name of each file system, by its name.
        """
        super().__init__(scope, id)
        lifecycle = HyperPodLifecycleBucket(
            self, "Lifecycle", cluster_name=plan.name, region=region
        )
        role = HyperPodRole(
            self,
            "Role",
            cluster_name=cluster.name,
            lifecycle_bucket=lifecycle.bucket,
            volume_keys=sorted({group.volume_key for group in plan.groups if group.volume_key}),
            vpc_id=cluster.vpc.vpc_id if plan.least_privilege else None,
        )
        efa = EfaSecurityGroup(self, "EfaSecurityGroup", vpc=cluster.vpc, pool="hyperpod", tags={})
        groups = [cluster.security_group_id, efa.security_group_id]

        resource = sagemaker.CfnCluster(
            self,
            "Resource",
            cluster_name=plan.name,
            orchestrator=self._orchestrator(cluster.name),
            node_recovery=plan.node_recovery,
            # Capacity may come in parts: each part is used at once, and a missing part fails no
            # deployment.
            node_provisioning_mode="Continuous",
            # Default subnet of instance groups, though our groups all name their own. A changed
            # subnet replaces the HyperPod cluster, so this subnet must not depend on the pools.
            vpc_config=_vpc(groups, cluster.private_subnet_ids[:1]),
            instance_groups=[
                _instance_group(
                    group, role, lifecycle, _vpc(groups, subnet_ids[group.name]), file_systems
                )
                for group in plan.groups
            ],
            tags=[CfnTag(key=key, value=value) for key, value in plan.tags.items()] or None,
        )
        resource.node.add_dependency(role, lifecycle, efa)
        self.arn = resource.attr_cluster_arn  # ARN of the HyperPod cluster

    def _orchestrator(self, cluster_name: str) -> sagemaker.CfnCluster.OrchestratorProperty:
        arn = Stack.of(self).format_arn(
            service="eks", resource="cluster", resource_name=cluster_name
        )
        return sagemaker.CfnCluster.OrchestratorProperty(
            eks=sagemaker.CfnCluster.ClusterOrchestratorEksConfigProperty(cluster_arn=arn)
        )


def _vpc(groups: Sequence[str], subnets: Sequence[str]) -> _Vpc:
    return _Vpc(security_group_ids=list(groups), subnets=list(subnets))


def _instance_group(
    group: InstanceGroupPlan,
    role: HyperPodRole,
    lifecycle: HyperPodLifecycleBucket,
    vpc: _Vpc,
    file_systems: FileSystems,
) -> _Group:
    several = len(group.instance_types) > 1
    return _Group(
        instance_group_name=group.name,
        instance_type=None if several else group.instance_types[0],
        instance_requirements=sagemaker.CfnCluster.InstanceRequirementsProperty(
            instance_types=list(group.instance_types)
        )
        if several
        else None,
        instance_count=group.nodes,
        execution_role=role.role.role_arn,
        life_cycle_config=sagemaker.CfnCluster.ClusterLifeCycleConfigProperty(
            source_s3_uri=lifecycle.uri, on_create=ON_CREATE
        ),
        training_plan_arn=group.training_plan,
        on_start_deep_health_checks=list(group.deep_health_checks) or None,
        kubernetes_config=_kubernetes(group),
        instance_storage_configs=_storage(group, file_systems),
        override_vpc_config=vpc,
    )


def _kubernetes(plan: InstanceGroupPlan) -> sagemaker.CfnCluster.ClusterKubernetesConfigProperty:
    return sagemaker.CfnCluster.ClusterKubernetesConfigProperty(
        labels=dict(plan.labels),
        taints=[
            sagemaker.CfnCluster.ClusterKubernetesTaintProperty(
                key=taint.key, value=taint.value, effect=taint.effect
            )
            for taint in plan.taints
        ]
        or None,
    )


def _storage(
    plan: InstanceGroupPlan, file_systems: FileSystems
) -> list[sagemaker.CfnCluster.ClusterInstanceStorageConfigProperty]:
    ebs = sagemaker.CfnCluster.ClusterEbsVolumeConfigProperty
    volumes = [
        ebs(
            volume_size_in_gb=plan.volume_gib,
            root_volume=False,
            volume_kms_key_id=plan.volume_key,
        )
    ]
    if plan.volume_key is not None:
        # SageMaker chooses the size of this disk.
        volumes.append(ebs(root_volume=True, volume_kms_key_id=plan.volume_key))
    mounts = [
        sagemaker.CfnCluster.ClusterFsxLustreConfigProperty(
            dns_name=file_systems[name][0], mount_name=file_systems[name][1], mount_path=path
        )
        for name, path in plan.mounts.items()
    ]
    of = sagemaker.CfnCluster.ClusterInstanceStorageConfigProperty
    return [
        *(of(ebs_volume_config=volume) for volume in volumes),
        *(of(fsx_lustre_config=mount) for mount in mounts),
    ]
