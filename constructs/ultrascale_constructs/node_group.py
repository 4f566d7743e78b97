"""EKS managed node groups."""

from collections.abc import Sequence
from typing import cast

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from ultrascale.plan.model import PoolPlan
from ultrascale_constructs.acknowledgment import acknowledge_managed_policies
from ultrascale_constructs.launch_template import NodeLaunchTemplate

_CAPACITY_TYPE = {"on-demand": "ON_DEMAND"}
_TAINT_EFFECT = {
    "NoSchedule": "NO_SCHEDULE",
    "NoExecute": "NO_EXECUTE",
    "PreferNoSchedule": "PREFER_NO_SCHEDULE",
}
_NODE_POLICIES = {
    "AmazonEKSWorkerNodePolicy": "what EKS documents for nodes, the CNI's rights excepted",
    "AmazonEC2ContainerRegistryPullOnly": "pull and nothing else",
    "AmazonSSMManagedInstanceCore": "the way onto a node, as there is no SSH",
}


class NodeGroup(Construct):
    """Defines the managed node group of one pool, and what its nodes need around them.

    The L2 construct knows no P5 or Trn2 and refuses their AMI types (aws-cdk-lib 2.275), hence
    `CfnNodegroup` with everything explicit. It has no name of its own: a change of a create-only
    property must be able to make the new group beside the old one.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: PoolPlan,
        cluster_name: str,
        cluster_security_group_id: str,
        vpc: ec2.IVpc,
        subnet_ids: Sequence[str],
    ) -> None:
        super().__init__(scope, id)
        template = NodeLaunchTemplate(
            self,
            "LaunchTemplate",
            plan=plan,
            cluster_name=cluster_name,
            # Groups named in a template take the place of the cluster security group.
            security_group_ids=[cluster_security_group_id, *self._efa_group(plan, vpc)],
            placement_group_name=self._placement_group(plan),
        ).template
        eks.CfnNodegroup(
            self,
            "Resource",
            cluster_name=cluster_name,
            node_role=self._role().role_arn,
            subnets=list(subnet_ids),
            ami_type=plan.ami_type,
            # Without the version EKS keeps the old one, for which the new release is not valid.
            version=plan.kubernetes_version,
            release_version=plan.ami_release,
            capacity_type=_CAPACITY_TYPE[plan.purchase],
            instance_types=_instance_types(plan),
            launch_template=_newest(template),
            scaling_config=_scaling(plan),
            update_config=_update(plan),
            node_repair_config=eks.CfnNodegroup.NodeRepairConfigProperty(enabled=True),
            labels=dict(plan.labels),
            taints=_taints(plan) or None,
        )

    def _role(self) -> iam.Role:
        role = iam.Role(
            self,
            "Role",
            assumed_by=cast("iam.IPrincipal", iam.ServicePrincipal("ec2.amazonaws.com")),
            managed_policies=[
                iam.ManagedPolicy.from_aws_managed_policy_name(name) for name in _NODE_POLICIES
            ],
        )
        acknowledge_managed_policies(role, _NODE_POLICIES)
        return role

    def _efa_group(self, plan: PoolPlan, vpc: ec2.IVpc) -> list[str]:
        """Let EFA traffic pass: it must be allowed to and from the very group, both ways.

        Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start.html
        """
        if plan.efa_interfaces == 0:
            return []
        group = ec2.SecurityGroup(
            self,
            "EfaSecurityGroup",
            vpc=vpc,
            description=f"EFA traffic between the nodes of pool {plan.name}",
            allow_all_outbound=False,
        )
        every = ec2.Port.all_traffic()
        group.add_ingress_rule(group, every, "EFA traffic from the pool's nodes")
        group.add_egress_rule(group, every, "EFA traffic to the pool's nodes")
        return [group.security_group_id]

    def _placement_group(self, plan: PoolPlan) -> str | None:
        if not plan.placement_group:
            return None
        return ec2.CfnPlacementGroup(self, "PlacementGroup", strategy="cluster").ref


def _instance_types(plan: PoolPlan) -> list[str] | None:
    """Return several types; a single one stands in the launch template, and EKS refuses both."""
    return list(plan.instance_types) if len(plan.instance_types) > 1 else None


def _newest(
    template: ec2.CfnLaunchTemplate,
) -> eks.CfnNodegroup.LaunchTemplateSpecificationProperty:
    return eks.CfnNodegroup.LaunchTemplateSpecificationProperty(
        id=template.ref, version=template.attr_latest_version_number
    )


def _scaling(plan: PoolPlan) -> eks.CfnNodegroup.ScalingConfigProperty:
    return eks.CfnNodegroup.ScalingConfigProperty(
        min_size=plan.min_nodes, desired_size=plan.min_nodes, max_size=plan.max_nodes
    )


def _update(plan: PoolPlan) -> eks.CfnNodegroup.UpdateConfigProperty:
    return eks.CfnNodegroup.UpdateConfigProperty(
        max_unavailable=plan.max_unavailable,
        update_strategy="MINIMAL" if plan.replace_before_launch else "DEFAULT",
    )


def _taints(plan: PoolPlan) -> list[eks.CfnNodegroup.TaintProperty]:
    return [
        eks.CfnNodegroup.TaintProperty(
            key=taint.key, value=taint.value, effect=_TAINT_EFFECT[taint.effect]
        )
        for taint in plan.taints
    ]
