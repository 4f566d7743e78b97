"""SageMaker HyperPod clusters that run on an EKS cluster."""

from collections.abc import Mapping, Sequence

from aws_cdk import CfnTag, Stack
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from ultrascale.parts.hyperpod.model import HyperPodPlan, InstanceGroupPlan
from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_constructs.efa_security_group import EfaSecurityGroup
from ultrascale_constructs.hyperpod.lifecycle_bucket import ON_CREATE, HyperPodLifecycleBucket
from ultrascale_constructs.hyperpod.role import HyperPodRole

_Group = sagemaker.CfnCluster.ClusterInstanceGroupProperty
FileSystems = Mapping[str, tuple[str, str]]


class HyperPodCluster(Construct):
    """Defines the HyperPod cluster with an instance group for each pool.

    The EKS cluster must have HyperPod's Helm chart before, whose agents report the health of the
    first instance.

    Source: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-operate-console-ui-create-cluster.html

    Attributes:
        arn: ARN of the HyperPod cluster.
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
            subnet_ids: Subnets of each group, by its name; the first ones, if the group takes
                fewer.
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
        )
        efa = EfaSecurityGroup(self, "EfaSecurityGroup", vpc=cluster.vpc, pool="hyperpod", tags={})
        groups = [cluster.security_group_id, efa.security_group_id]

        def instance_group(group: InstanceGroupPlan) -> _Group:
            vpc = sagemaker.CfnCluster.VpcConfigProperty(
                security_group_ids=groups, subnets=list(subnet_ids[group.name])
            )
            return _instance_group(group, role, lifecycle, vpc, file_systems)

        resource = sagemaker.CfnCluster(
            self,
            "Resource",
            cluster_name=plan.name,
            orchestrator=self._orchestrator(cluster.name),
            node_recovery=plan.node_recovery,
            # Capacity may come in parts: each is used at once, and a missing part fails no
            # deployment.
            node_provisioning_mode="Continuous",
            # The default subnet of groups; all of ours name their own. Another subnet replaces the
            # HyperPod cluster, so it must not depend on the pools.
            vpc_config=sagemaker.CfnCluster.VpcConfigProperty(
                security_group_ids=groups,
                subnets=[cluster.private_subnet_ids[0]],
            ),
            instance_groups=[instance_group(group) for group in plan.groups],
            tags=[CfnTag(key=key, value=value) for key, value in plan.tags.items()] or None,
        )
        resource.node.add_dependency(role, lifecycle, efa)
        self.arn = resource.attr_cluster_arn

    def _orchestrator(self, cluster_name: str) -> sagemaker.CfnCluster.OrchestratorProperty:
        arn = Stack.of(self).format_arn(
            service="eks", resource="cluster", resource_name=cluster_name
        )
        return sagemaker.CfnCluster.OrchestratorProperty(
            eks=sagemaker.CfnCluster.ClusterOrchestratorEksConfigProperty(cluster_arn=arn)
        )


def _instance_group(
    group: InstanceGroupPlan,
    role: HyperPodRole,
    lifecycle: HyperPodLifecycleBucket,
    vpc: sagemaker.CfnCluster.VpcConfigProperty,
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
        # SageMaker chooses its size.
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
