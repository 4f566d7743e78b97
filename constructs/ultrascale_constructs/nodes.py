"""Parts that node groups and NodePools share: role, security, placement, reservation."""

from collections.abc import Mapping, Sequence

from aws_cdk import CfnOutput, Stack, Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_resourcegroups as resourcegroups
from constructs import Construct

from ultrascale.plan import names
from ultrascale.plan.model import PoolPlan
from ultrascale_constructs.acknowledgment import acknowledge_managed_policies
from ultrascale_constructs.cdk_types import as_construct, aws_policy, service
from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_constructs.node_group_functions import ask

# --- Security groups for EFA traffic --------------------------------------------------------------


class EfaSecurityGroup(Construct):
    """Defines the group that allows EFA traffic between the nodes of one pool.

    EFA traffic must be allowed from the group to itself, in both directions; rules with address
    ranges do not count. Without such rules, traffic falls back to TCP without an error.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start.html

    Attributes:
        security_group_id: Its id.
    """

    def __init__(
        self, scope: Construct, id: str, *, vpc: ec2.IVpc, pool: str, tags: Mapping[str, str]
    ) -> None:
        super().__init__(scope, id)
        group = ec2.SecurityGroup(
            self,
            # Logical ids stay as they were before this construct existed.
            "Default",
            vpc=vpc,
            description=f"EFA traffic between the nodes of pool {pool}",
            allow_all_outbound=False,
        )
        every = ec2.Port.all_traffic()
        group.add_ingress_rule(group, every, "EFA traffic from the pool's nodes")
        group.add_egress_rule(group, every, "EFA traffic to the pool's nodes")
        for key, value in tags.items():
            Tags.of(group).add(key, value)
        self.security_group_id = group.security_group_id


# --- Parts that node groups and NodePools share: role, security, placement, reservation -----------


# --- The IAM role of the nodes of a node class ----------------------------------------------------


# Source: https://docs.aws.amazon.com/eks/latest/userguide/create-node-role.html
NODE_POLICIES: Mapping[str, str] = {
    "AmazonEKSWorkerNodePolicy": "what EKS documents for nodes, the CNI's rights excepted",
    "AmazonEC2ContainerRegistryPullOnly": "pull and nothing else",
    "AmazonSSMManagedInstanceCore": "the way onto a node, as there is no SSH",
}
# Source: https://docs.aws.amazon.com/eks/latest/userguide/cni-iam-role.html
CNI_POLICY: Mapping[str, str] = {
    "AmazonEKS_CNI_Policy": "what EKS documents where the VPC CNI has no role of its own",
}


class NodeRole(Construct):
    """Defines a role with the name that node classes use, and lets its nodes join.

    Attributes:
        role_arn: ARN of the role.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster_name: str,
        role_name: str,
        managed_policies: Mapping[str, str],
        access_entry_type: str,
        access_policies: Sequence[str] = (),
        with_profile: bool = False,
    ) -> None:
        """Define the role and its access entry.

        Args:
            scope: Parent.
            id: Construct id.
            cluster_name: Cluster that the nodes join.
            role_name: Name of the role.
            managed_policies: Name of each AWS managed policy, and why it is accepted.
            access_entry_type: EKS's type of the access entry: ``EC2_LINUX`` for Karpenter's nodes,
                ``EC2`` for nodes of EKS Auto Mode, and for nodes named by their instance ids.
            access_policies: Names of EKS access policies; type ``EC2_LINUX`` takes none.
            with_profile: Whether the role has an instance profile of its name.
        """
        super().__init__(scope, id)
        role = iam.Role(
            self,
            "Resource",
            role_name=role_name,
            assumed_by=service("ec2.amazonaws.com"),
            managed_policies=[aws_policy(name) for name in managed_policies],
        )
        acknowledge_managed_policies(role, managed_policies)
        self.role_arn = role.role_arn
        if with_profile:
            iam.CfnInstanceProfile(
                self, "Profile", instance_profile_name=role_name, roles=[role.role_name]
            )
        partition = Stack.of(self).partition
        eks.CfnAccessEntry(
            self,
            "Access",
            cluster_name=cluster_name,
            principal_arn=role.role_arn,
            type=access_entry_type,
            access_policies=[
                eks.CfnAccessEntry.AccessPolicyProperty(
                    policy_arn=f"arn:{partition}:eks::aws:cluster-access-policy/{name}",
                    access_scope=eks.CfnAccessEntry.AccessScopeProperty(type="cluster"),
                )
                for name in access_policies
            ]
            or None,
        )


# --- Parts that node groups and NodePools share: role, security, placement, reservation -----------


class NodePoolNetwork(Construct):
    """Defines the EFA security group of a pool and the placement group of each of its shards.

    Node classes find the security group by its tags, and name a placement group by a placeholder.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster: ClusterContext,
        shards: Sequence[PoolPlan],
    ) -> None:
        """Define the security group and the placement groups.

        Args:
            scope: Parent.
            id: Construct id.
            cluster: Cluster of the pool.
            shards: The pool, or all of its shards.
        """
        super().__init__(scope, id)
        if any(shard.efa_interfaces for shard in shards):
            pool = shards[0].pool
            tags = {names.DISCOVERY_TAG: cluster.name, names.POOL_LABEL: pool}
            EfaSecurityGroup(self, "EfaSecurityGroup", vpc=cluster.vpc, pool=pool, tags=tags)
        placement_groups: dict[str, str] = {}
        for shard in shards:
            if shard.placement_group:
                placeholder = names.placement_group(shard.name)
                placement_groups[placeholder] = self._placement_group(shard, placeholder)
        # Names of placement groups, by placeholder
        self.placement_groups: Mapping[str, str] = placement_groups

    def _placement_group(self, shard: PoolPlan, placeholder: str) -> str:
        # EC2 chooses the name: every property is create-only, so a fixed name would collide with
        # the old group.
        group = ec2.CfnPlacementGroup(
            self, f"PlacementGroup{shard.shard or ''}", strategy="cluster"
        )
        CfnOutput(group, "Name", value=group.ref, description=f"{placeholder} in the manifests")
        return group.ref


def node_role(scope: Construct, *, carries_cni_rights: bool) -> iam.Role:
    """Define a `Role` for the nodes in ``scope``.

    Args:
        scope: Parent.
        carries_cni_rights: Whether the VPC CNI gets its rights from this role.
    """
    policies = {**NODE_POLICIES, **(CNI_POLICY if carries_cni_rights else {})}
    role = iam.Role(
        scope,
        "Role",
        assumed_by=service("ec2.amazonaws.com"),
        managed_policies=[aws_policy(name) for name in policies],
    )
    acknowledge_managed_policies(role, policies)
    return role


def security_group_ids(scope: Construct, *, plan: PoolPlan, cluster: ClusterContext) -> list[str]:
    """Return the security groups of every interface: the cluster's, and with EFA a group for EFA.

    Groups in a launch template replace the cluster security group, so both are returned.
    """
    if plan.efa_interfaces == 0:
        return [cluster.security_group_id]
    efa = EfaSecurityGroup(scope, "EfaSecurityGroup", vpc=cluster.vpc, pool=plan.name, tags={})
    return [cluster.security_group_id, efa.security_group_id]


def placement_group_name(scope: Construct, plan: PoolPlan) -> str | None:
    """Return the name of the pool's cluster placement group; None without one."""
    if not plan.placement_group:
        return None
    return ec2.CfnPlacementGroup(scope, "PlacementGroup", strategy="cluster").ref


def reservation_group_arn(scope: Construct, *, plan: PoolPlan, cluster_name: str) -> str | None:
    """Return the ARN of the resource group that instances target; None without one.

    An instance that targets a full reservation by its id fails to launch; an instance that targets
    a group becomes an On-Demand Instance. So a reservation that may spill gets a group of its own.
    The reservation must be the account's own: its ARN names the owner.

    The group is defined beside ``scope``, not in it: while one node group replaces another, its
    name is taken.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/create-cr-group.html
    """
    reservation = plan.reservation
    if reservation is None or reservation.id is None or not reservation.spill:
        return reservation.resource_group if reservation else None
    beside = scope.node.scope
    assert beside is not None, "a node group is in a stack"
    return resourcegroups.CfnGroup(
        as_construct(beside),
        f"{plan.name}-reservation",
        # CloudFormation does not generate a name for it.
        name=f"{cluster_name}-{plan.name}-reservation",
        configuration=[
            resourcegroups.CfnGroup.ConfigurationItemProperty(
                type="AWS::EC2::CapacityReservationPool"
            ),
            resourcegroups.CfnGroup.ConfigurationItemProperty(
                type="AWS::ResourceGroups::Generic",
                parameters=[
                    resourcegroups.CfnGroup.ConfigurationParameterProperty(
                        name="allowed-resource-types", values=["AWS::EC2::CapacityReservation"]
                    )
                ],
            ),
        ],
        resources=[
            Stack.of(scope).format_arn(
                service="ec2", resource="capacity-reservation", resource_name=reservation.id
            )
        ],
    ).attr_arn


def keep_in_zones(
    scope: Construct,
    *,
    service_token: str,
    properties: Mapping[str, object],
) -> None:
    """Keep EC2 Auto Scaling from moving the nodes of a group from one zone to another.

    Args:
        scope: Parent.
        service_token: ARN of the function of `NodeGroupFunctions`.
        properties: `AutoScalingGroupName`; or `ClusterName` and `NodegroupName` of a managed group.
    """
    ask(
        scope,
        "Zones",
        kind="SuspendedZoneRebalancing",
        service_token=service_token,
        properties=properties,
    )
