"""Node groups: managed by EKS, or Auto Scaling groups whose instances join by themselves."""

from collections.abc import Mapping, Sequence

from aws_cdk import Token
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from ultrascale.plan import names
from ultrascale.plan.model import NodeGroupPlan, PoolPlan
from ultrascale_constructs.acknowledgment import acknowledge
from ultrascale_constructs.cdk_types import as_role
from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_constructs.launch_template import NodeLaunchTemplate, SelfManaged
from ultrascale_constructs.node_group_functions import ask, digest, pool_labels
from ultrascale_constructs.nodes import (
    keep_in_zones,
    node_role,
    placement_group_name,
    reservation_group_arn,
    security_group_ids,
)

# EKS's names of the purchase options.
_CAPACITY_TYPE = {
    "on-demand": "ON_DEMAND",
    "odcr": "ON_DEMAND",
    "spot": "SPOT",
    "capacity-block": "CAPACITY_BLOCK",
}
_TAINT_EFFECT = {
    "NoSchedule": "NO_SCHEDULE",
    "NoExecute": "NO_EXECUTE",
    "PreferNoSchedule": "PREFER_NO_SCHEDULE",
}


class NodeGroup(Construct):
    """Defines the managed node group of one pool with its role, groups and launch template.

    The L2 construct does not know P5 or Trn2 and refuses their AMI types (aws-cdk-lib 2.275), hence
    `CfnNodegroup` with all properties. CloudFormation chooses the group's name: a change of a
    create-only property must be able to create the new group beside the old group.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: NodeGroupPlan,
        cluster: ClusterContext,
        subnet_ids: Sequence[str],
        service_token: str,
    ) -> None:
        """Define the group.

        Args:
            scope: Parent.
            id: Construct id.
            plan: The node group.
            cluster: The cluster.
            subnet_ids: Subnets of the nodes; a single one for a Capacity Block.
            service_token: ARN of the function of `NodeGroupFunctions`.
        """
        super().__init__(scope, id)
        pool = plan.pool
        self._service_token = service_token
        groups = security_group_ids(self, plan=pool, cluster=cluster)
        placement = placement_group_name(self, pool)
        reservation = reservation_group_arn(self, plan=pool, cluster_name=cluster.name)
        role_arn = node_role(self, carries_cni_rights=plan.carries_cni_rights).role_arn
        template = NodeLaunchTemplate(
            self,
            "LaunchTemplate",
            plan=pool,
            cluster_name=cluster.name,
            security_group_ids=groups,
            placement_group_name=placement,
            reservation_group_arn=reservation,
        )
        group = self._group(plan, cluster, role_arn, subnet_ids, template)
        self.group_name = group.attr_nodegroup_name  # Its name, by CloudFormation
        self.group_arn = group.attr_arn  # Its ARN
        if pool.sized_by != "file":
            group.scaling_config = _scaling_config(
                pool, desired_size=self._deployed_size(group, pool)
            )
        # Resources that must not change before the guard has checked the nodes
        self.guarded = (template.template, group)
        # Values whose change makes EKS replace the nodes, for `guard`
        self.rolled_for: Mapping[str, object] = {
            "KubernetesVersion": pool.kubernetes_version,
            "Release": pool.ami_release,
            "LaunchTemplateData": digest(self, template.data),
            "CreateOnly": digest(self, _create_only(group)),
            # Ids of resources: a replaced resource has another id.
            "Parts": [part for part in (*groups, placement, reservation, role_arn) if part],
        }
        if plan.autoscaler_tags:
            self._tag_scaling_group(group, plan.autoscaler_tags)
        if plan.kept_in_zones:
            keep_in_zones(self, service_token=service_token, properties=_name_properties(group))

    def _group(
        self,
        plan: NodeGroupPlan,
        cluster: ClusterContext,
        role_arn: str,
        subnet_ids: Sequence[str],
        template: NodeLaunchTemplate,
    ) -> eks.CfnNodegroup:
        pool = plan.pool
        return eks.CfnNodegroup(
            self,
            "Resource",
            cluster_name=cluster.name,
            node_role=role_arn,
            subnets=list(subnet_ids),
            ami_type=pool.ami_type,
            # Without the version EKS keeps the old version, which does not fit the new release.
            version=pool.kubernetes_version,
            release_version=pool.ami_release,
            capacity_type=_CAPACITY_TYPE[pool.purchase],
            instance_types=_instance_types(pool),
            launch_template=_newest(template.template),
            scaling_config=_scaling_config(pool, desired_size=pool.initial_nodes),
            update_config=_update(pool),
            node_repair_config=_repair(plan),
            labels=dict(pool.labels),
            taints=_taints(pool) or None,
        )

    def _deployed_size(self, group: eks.CfnNodegroup, plan: PoolPlan) -> float:
        """Return the number of nodes that a deployment sets: the current size, or a first size.

        CloudFormation sends the desired size with every change of the configuration; a number from
        the file would undo the work of a scaler or the calendar. The size is looked up again only
        when the configuration changes: an update to a new version or launch template leaves the
        size alone, and CloudFormation refuses to change anything else beside it.

        Source: https://github.com/aws/containers-roadmap/issues/1258
        """
        lookup = ask(
            self,
            "Size",
            kind="NodeGroupSize",
            service_token=self._service_token,
            properties={
                "ClusterName": group.cluster_name,
                "Labels": pool_labels(plan),
                "MinSize": plan.min_nodes,
                "MaxSize": plan.max_nodes,
                "InitialSize": plan.initial_nodes,
                "Configuration": digest(self, _sent_with_size(group)),
            },
        )
        return Token.as_number(lookup.get_att("DesiredSize"))

    def _tag_scaling_group(
        self, group: eks.CfnNodegroup, autoscaler_tags: Mapping[str, str]
    ) -> None:
        """Tag the Auto Scaling group: EKS does not pass the node group's tags on to it."""
        ask(
            self,
            "AutoscalerTags",
            kind="AutoScalingGroupTags",
            service_token=self._service_token,
            properties={**_name_properties(group), "Tags": dict(autoscaler_tags)},
        )


def _repair(plan: NodeGroupPlan) -> eks.CfnNodegroup.NodeRepairConfigProperty:
    if plan.spared is None:
        return eks.CfnNodegroup.NodeRepairConfigProperty(enabled=plan.repaired)
    left = eks.CfnNodegroup.NodeRepairConfigOverridesProperty(
        node_monitoring_condition=plan.spared.condition,
        node_unhealthy_reason=plan.spared.reason,
        min_repair_wait_time_mins=plan.spared.minutes,
        repair_action="NoAction",
    )
    return eks.CfnNodegroup.NodeRepairConfigProperty(
        enabled=plan.repaired,
        max_parallel_nodes_repaired_count=1,
        node_repair_config_overrides=[left],
    )


def _name_properties(group: eks.CfnNodegroup) -> Mapping[str, object]:
    return {"ClusterName": group.cluster_name, "NodegroupName": group.attr_nodegroup_name}


def _create_only(group: eks.CfnNodegroup) -> Sequence[object]:
    """Return the create-only properties of the group, without its role.

    Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-eks-nodegroup.html
    """
    return [group.ami_type, group.capacity_type, group.instance_types, group.subnets]


def _sent_with_size(group: eks.CfnNodegroup) -> Sequence[object]:
    """Return the properties: if one changes, CloudFormation sends the size or replaces the group.

    These are all but the version, the release and the launch template.
    """
    return [
        group.ami_type,
        group.capacity_type,
        group.instance_types,
        group.labels,
        group.node_repair_config,
        group.scaling_config,
        group.subnets,
        group.taints,
        group.update_config,
    ]


def _instance_types(plan: PoolPlan) -> list[str] | None:
    """Return several instance types; a single type is in the launch template."""
    return list(plan.instance_types) if len(plan.instance_types) > 1 else None


def _newest(
    template: ec2.CfnLaunchTemplate,
) -> eks.CfnNodegroup.LaunchTemplateSpecificationProperty:
    return eks.CfnNodegroup.LaunchTemplateSpecificationProperty(
        id=template.ref, version=template.attr_latest_version_number
    )


def _scaling_config(
    plan: PoolPlan, *, desired_size: float
) -> eks.CfnNodegroup.ScalingConfigProperty:
    return eks.CfnNodegroup.ScalingConfigProperty(
        min_size=plan.min_nodes, desired_size=desired_size, max_size=plan.max_nodes
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


# --- Self-managed node groups: EC2 Auto Scaling groups whose instances join the cluster -----------


_Group = autoscaling.CfnAutoScalingGroup
# Grace period: nodes with many interfaces and disks take minutes to boot, and are not broken then.
_HEALTH_CHECK_GRACE_SECONDS = 600


class SelfManagedGroup(Construct):
    """Defines the Auto Scaling group of one pool with its role, groups and launch template.

    The group has no update policy: a deployment changes the launch template for new nodes, and
    never replaces a running node.

    Attributes:
        group_name: Name that CloudFormation gave the group.
        group_arn: Its ARN.
        guarded: Resources that must not change before the guard has checked the nodes.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: NodeGroupPlan,
        cluster: ClusterContext,
        subnet_ids: Sequence[str],
        service_token: str,
    ) -> None:
        """Define the group.

        Args:
            scope: Parent.
            id: Construct id.
            plan: The node group.
            cluster: The cluster that its nodes join.
            subnet_ids: Subnets of the nodes; a single one for a Capacity Block.
            service_token: ARN of the function of `NodeGroupFunctions`.
        """
        super().__init__(scope, id)
        pool = plan.pool
        role = node_role(self, carries_cni_rights=plan.carries_cni_rights)
        profile = iam.InstanceProfile(self, "InstanceProfile", role=as_role(role))
        access = self._access(cluster.name, role)
        template = self._template(plan, cluster, profile)
        launched_from = _Group.LaunchTemplateSpecificationProperty(
            launch_template_id=template.ref, version=template.attr_latest_version_number
        )
        mixed = _mixed_instances(pool, launched_from)
        group = _Group(
            self,
            "Resource",
            min_size=str(pool.min_nodes),
            max_size=str(pool.max_nodes),
            # Without a desired size, the group begins at its minimum, and no later deployment
            # changes the size.
            # Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-autoscaling-autoscalinggroup.html
            desired_capacity=str(pool.initial_nodes) if pool.sized_by == "file" else None,
            vpc_zone_identifier=list(subnet_ids),
            launch_template=None if mixed else launched_from,
            mixed_instances_policy=mixed,
            capacity_rebalance=pool.capacity_type == "spot",
            lifecycle_hook_specification_list=_hooks(plan),
            health_check_type="EC2",
            health_check_grace_period=_HEALTH_CHECK_GRACE_SECONDS,
            tags=_group_tags(pool, cluster.name, plan.autoscaler_tags),
        )
        # A node that joins before its access entry exists is refused.
        group.add_resource_dependency(access)
        _acknowledge_findings(group)
        if plan.kept_in_zones:
            keep_in_zones(
                self, service_token=service_token, properties={"AutoScalingGroupName": group.ref}
            )
        self.guarded = (template, group)
        self.group_name = group.ref
        self.group_arn = group.attr_auto_scaling_group_arn

    def _access(self, cluster_name: str, role: iam.Role) -> eks.CfnAccessEntry:
        return eks.CfnAccessEntry(
            self,
            "Access",
            cluster_name=cluster_name,
            principal_arn=role.role_arn,
            type="EC2_LINUX",
        )

    def _template(
        self, plan: NodeGroupPlan, cluster: ClusterContext, profile: iam.InstanceProfile
    ) -> ec2.CfnLaunchTemplate:
        pool = plan.pool
        return NodeLaunchTemplate(
            self,
            "LaunchTemplate",
            plan=pool,
            cluster_name=cluster.name,
            security_group_ids=security_group_ids(self, plan=pool, cluster=cluster),
            placement_group_name=placement_group_name(self, pool),
            reservation_group_arn=reservation_group_arn(self, plan=pool, cluster_name=cluster.name),
            self_managed=SelfManaged(
                cluster=cluster, instance_profile_arn=profile.instance_profile_arn
            ),
        ).template


def _acknowledge_findings(group: autoscaling.CfnAutoScalingGroup) -> None:
    acknowledge(
        group,
        {
            "AwsSolutions::AwsSolutions-AS3": (
                "who runs the cluster sees nodes come and go in Kubernetes"
            ),
            "AwsSolutions::AwsSolutions-EC26": (
                "volumes are the launch template's, and encrypted; the rule cannot look there"
            ),
        },
    )


def _mixed_instances(
    plan: PoolPlan,
    launched_from: autoscaling.CfnAutoScalingGroup.LaunchTemplateSpecificationProperty,
) -> autoscaling.CfnAutoScalingGroup.MixedInstancesPolicyProperty | None:
    """Return the instances policy for Spot or several types; None for one On-Demand type.

    Source: https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_InstancesDistribution.html
    """
    spot = plan.capacity_type == "spot"
    if not spot and len(plan.instance_types) == 1:
        return None
    return _Group.MixedInstancesPolicyProperty(
        instances_distribution=_Group.InstancesDistributionProperty(
            on_demand_allocation_strategy="prioritized",
            on_demand_base_capacity=0,
            on_demand_percentage_above_base_capacity=0 if spot else 100,
            spot_allocation_strategy="price-capacity-optimized",
        ),
        launch_template=_Group.LaunchTemplateProperty(
            launch_template_specification=launched_from,
            overrides=[
                _Group.LaunchTemplateOverridesProperty(instance_type=name)
                for name in plan.instance_types
            ],
        ),
    )


def _hooks(
    plan: NodeGroupPlan,
) -> list[autoscaling.CfnAutoScalingGroup.LifecycleHookSpecificationProperty]:
    """Return the hook that gives the Node Termination Handler time to drain a node.

    Without a handler the hook would only delay the end of the instance.
    """
    if plan.drain_seconds == 0:
        return []
    return [
        _Group.LifecycleHookSpecificationProperty(
            lifecycle_hook_name="drain",
            lifecycle_transition="autoscaling:EC2_INSTANCE_TERMINATING",
            heartbeat_timeout=plan.drain_seconds,
            default_result="CONTINUE",
        )
    ]


def _group_tags(
    plan: PoolPlan, cluster_name: str, autoscaler_tags: Mapping[str, str]
) -> list[autoscaling.CfnAutoScalingGroup.TagPropertyProperty]:
    """Return the tags of the group, each with whether instances get it too.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/launch-workers.html
    """
    of_instances = {
        # This tag takes precedence over the launch template's tag from the file.
        "Name": plan.tags.get("Name", f"{cluster_name}-{plan.name}"),
        f"kubernetes.io/cluster/{cluster_name}": "owned",
        names.drained_tag(cluster_name): cluster_name,
    }
    # The guard of the pool finds the group by these tags.
    of_group = {key: value for key, value in pool_labels(plan).items() if value}
    return [
        _Group.TagPropertyProperty(key=key, value=value, propagate_at_launch=propagate)
        for tags, propagate in ((of_instances, True), (of_group | dict(autoscaler_tags), False))
        for key, value in tags.items()
    ]
