"""The EKS control plane."""

from collections.abc import Mapping, Sequence
from typing import TypedDict

from aws_cdk import RemovalPolicy
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_logs as logs
from constructs import Construct

from ultrascale.plan import names
from ultrascale.plan.model import ControlPlanePlan, ScoringPlan
from ultrascale_constructs.acknowledgment import acknowledge_managed_policies
from ultrascale_constructs.auto_mode import CLUSTER_POLICIES, allow_node_tags
from ultrascale_constructs.cdk_types import child
from ultrascale_constructs.cluster_context import subnets
from ultrascale_constructs.key import allow_volume_key, key_of

_LOGGING = {
    "api": eks.ClusterLoggingTypes.API,
    "audit": eks.ClusterLoggingTypes.AUDIT,
    "authenticator": eks.ClusterLoggingTypes.AUTHENTICATOR,
    "controllerManager": eks.ClusterLoggingTypes.CONTROLLER_MANAGER,
    "scheduler": eks.ClusterLoggingTypes.SCHEDULER,
}
_CLUSTER_POLICIES: Mapping[str, str] = {
    "AmazonEKSClusterPolicy": "what EKS documents for the cluster role"
}


class _Capacity(TypedDict, total=False):
    default_capacity_type: eks.DefaultCapacityType
    default_capacity: int
    compute: eks.ComputeConfig


class ControlPlane(Construct):
    """Defines the EKS cluster without nodes, add-ons or administrators."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        name: str,
        plan: ControlPlanePlan,
        vpc: ec2.IVpc,
        subnet_ids: Sequence[str],
        tags_nodes: bool,
    ) -> None:
        """Define the cluster.

        Args:
            scope: Parent.
            id: Construct id.
            name: Name of the cluster.
            plan: The control plane.
            vpc: VPC.
            subnet_ids: Subnets of the control plane's interfaces.
            tags_nodes: Whether EKS Auto Mode puts the user's tags on its nodes.
        """
        super().__init__(scope, id)
        self.cluster = self._cluster(name, plan, vpc, subnet_ids)  # The cluster
        acknowledge_managed_policies(
            self, {**_CLUSTER_POLICIES, **(CLUSTER_POLICIES if plan.auto_mode else {})}
        )
        if tags_nodes:
            allow_node_tags(self, "NodeTags", role=self.cluster.role, cluster_name=name)
        if plan.auto_mode and plan.volume_key is not None:
            allow_volume_key(self, self.cluster.role, plan.volume_key)
        resource = child(self.cluster, eks.CfnCluster)
        resource.add_property_override("DeletionProtection", True)
        resource.add_property_override("UpgradePolicy.SupportType", plan.support_type)
        resource.add_property_override("KubeApiServerConfig.EventTtl", plan.event_ttl)
        resource.add_property_override("KubeSchedulerConfig", _scheduler(plan.scoring))
        resource.add_resource_dependency(self._logs(name, plan))
        # Cluster security group, which EKS makes: control plane and nodes reach each other through
        # it
        self.security_group_id = self.cluster.cluster_security_group_id
        self.endpoint = self.cluster.cluster_endpoint  # URL of the API server
        # Certificate authority of the API server, in Base64
        self.certificate_authority = self.cluster.cluster_certificate_authority_data

    def _cluster(
        self, name: str, plan: ControlPlanePlan, vpc: ec2.IVpc, subnet_ids: Sequence[str]
    ) -> eks.Cluster:
        key = key_of(self, description=f"Kubernetes API data of {name}", arn=plan.secrets_key)
        return eks.Cluster(
            self,
            "Resource",
            cluster_name=name,
            version=eks.KubernetesVersion.of(plan.version),
            vpc=vpc,
            vpc_subnets=[ec2.SubnetSelection(subnets=subnets(self, subnet_ids))],
            endpoint_access=_endpoint_access(plan),
            secrets_encryption_key=key,
            cluster_logging=[_LOGGING[log_type] for log_type in plan.log_types],
            service_ipv4_cidr=str(plan.service_cidr),
            control_plane_scaling_tier=eks.ControlPlaneScalingTier.of(plan.tier),
            **_capacity(plan),
            # The pinned EKS add-ons replace these.
            bootstrap_self_managed_addons=False,
            bootstrap_cluster_creator_admin_permissions=False,
            prune=False,
            output_config_command=False,
        )

    def _logs(self, name: str, plan: ControlPlanePlan) -> logs.CfnLogGroup:
        """Define the log group before the cluster: EKS would create it without retention."""
        group = logs.CfnLogGroup(
            self,
            "Logs",
            log_group_name=names.control_plane_logs(name),
            retention_in_days=plan.log_retention_days,
        )
        group.apply_removal_policy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
        return group


def _scheduler(plan: ScoringPlan) -> Mapping[str, object]:
    """Return the whole configuration: EKS keeps a value that a template no longer states.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/control-plane-configuration.html
    """
    weights = [{"Name": name, "Weight": weight} for name, weight in plan.weights.items()]
    strategy = {"Type": plan.strategy, "Resources": weights}
    return {"NodeResourcesFit": {"ScoringStrategy": strategy}}


def _capacity(plan: ControlPlanePlan) -> _Capacity:
    """Return the compute configuration: EKS Auto Mode without its own node pools, or an empty one.

    The construct switches Auto Mode's compute, storage and load balancing together, as EKS
    requires. An empty list switches off EKS's own node pools, which would launch further nodes.
    """
    if plan.auto_mode:
        return {
            "default_capacity_type": eks.DefaultCapacityType.AUTOMODE,
            "compute": eks.ComputeConfig(node_pools=[]),
        }
    return {"default_capacity_type": eks.DefaultCapacityType.NODEGROUP, "default_capacity": 0}


def _endpoint_access(plan: ControlPlanePlan) -> eks.EndpointAccess:
    if not plan.public_cidrs:
        return eks.EndpointAccess.PRIVATE
    return eks.EndpointAccess.PUBLIC_AND_PRIVATE.only_from(*plan.public_cidrs)
