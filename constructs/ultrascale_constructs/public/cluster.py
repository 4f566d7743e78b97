"""EKS clusters in a VPC of the app."""

from collections.abc import Sequence
from ipaddress import IPv4Network
from typing import Literal

from aws_cdk import Stack, Token
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from constructs import Construct, DependencyGroup, IDependable

from ultrascale import config
from ultrascale.plan import names
from ultrascale.plan.control_plane import foreign_control_plane
from ultrascale_constructs.addon import Addon
from ultrascale_constructs.cdk_types import child
from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_constructs.control_plane import ControlPlane
from ultrascale_constructs.public.arguments import Arguments, defining, digest

LogType = Literal["api", "audit", "authenticator", "controllerManager", "scheduler"]


class Cluster(Construct):
    """Defines an EKS cluster in a VPC of yours, with the add-ons that nodes need to join.

    A retained key of its own encrypts the API data; access needs access entries; the endpoint is
    private, and public only for `public_cidrs`; the log group is made before EKS would make it
    without retention. The VPC CNI (with prefix delegation), kube-proxy and
    the Pod Identity agent come with it; `add_workload_addons` adds the add-ons that need nodes,
    CoreDNS among them.

    The VPC needs both of its DNS attributes, and its subnets a way to ECR, S3, EKS and STS: NAT or
    endpoints.

    Sources:
        https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html
        https://docs.aws.amazon.com/eks/latest/userguide/eks-provisioned-control-plane.html

    Attributes:
        name: Its name.
        cluster: The cluster for other constructs of the CDK.
        context: The cluster for constructs of this package.
        kubernetes_version: Its minor version.
        ready: Constructs that nodes must wait for: the control plane, and the add-ons for joining.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        name: str,
        vpc: ec2.IVpc,
        subnets: Sequence[ec2.ISubnet],
        kubernetes_version: str | None = None,
        control_plane_tier: Literal["standard", "xl", "2xl", "4xl", "8xl"] = "standard",
        public_cidrs: Sequence[str] = (),
        admins: Sequence[str] = (),
        service_cidr: str | None = None,
        logs: Sequence[LogType] | None = None,
        deletion_protection: bool = True,
    ) -> None:
        """Define the cluster.

        Args:
            scope: Parent.
            id: Construct id.
            name: Its name: a DNS label of at most 40 characters.
            vpc: Its VPC: made in the app, looked up, or imported by `Vpc.from_vpc_attributes`.
            subnets: Private subnets in at least two zones, for the interfaces of the control plane.
                Later changes stay within the same zones.
            kubernetes_version: Minor version, such as ``1.35``. Default: this package's.
            control_plane_tier: Tier of the provisioned control plane; all but ``standard`` cost by
                the hour.
            public_cidrs: Ranges that reach the public endpoint. Default: there is none.
            admins: ARNs of IAM roles with cluster administration, which may be tokens. Default:
                nobody.
            service_cidr: Range of Kubernetes Services, apart from the VPC's and from whatever it is
                connected to. It can never change. Default: 172.20.0.0/16.
            logs: Control-plane logs that go to CloudWatch. Default: all.
            deletion_protection: Whether EKS refuses to delete it.

        Raises:
            ArgumentError: Arguments are wrong; one line for each.
        """
        super().__init__(scope, id)
        arguments = Arguments(self)
        lists = {"subnets": subnets, "public_cidrs": public_cidrs, "admins": admins}
        arguments.lists(**lists, **({} if logs is None else {"logs": logs}))
        arguments.construct("vpc", vpc, "pass an ec2.Vpc", "vpc_id")
        arguments.subnets("subnets", subnets)
        arguments.flags(deletion_protection=deletion_protection)
        arguments.text("name", name)
        arguments.stop()
        if Token.is_unresolved(name):
            todo = "write its text: other names begin with it"
            arguments.refuse("name", "a name that CloudFormation alone knows", todo)
            name = "token"
        arguments.claim("the cluster of this name", of=name, argument="name", todo="choose another")
        zones = arguments.zones(subnets)
        role = "arn:{partition}:iam::111122223333:role/stand-in-{digest}"
        reading = arguments.judge(
            zones=zones,
            name=name,
            kubernetes={
                "version": kubernetes_version,
                "control_plane_tier": control_plane_tier,
                "endpoint": {"public_cidrs": [*public_cidrs]} if public_cidrs else None,
                "admins": [arguments.known(arn, role) for arn in admins],
                "service_cidr": service_cidr,
                "logs": None if logs is None else [*logs],
            },
            vpc_cidr=_range(vpc),
            own_zones=True,
        )
        (kubernetes,) = reading.every(config.Kubernetes)
        with arguments.planning():
            plan = foreign_control_plane(kubernetes)
        self._addons = plan.workload_addons
        self.kubernetes_version = plan.version
        ids = [subnet.subnet_id for subnet in subnets]
        with defining():
            control_plane = ControlPlane(
                self,
                "ControlPlane",
                name=name,
                plan=plan,
                vpc=_without_subnets(self, vpc),
                subnet_ids=ids,
                tags_nodes=False,
            )
            self.ready = DependencyGroup(control_plane)
            for addon in plan.node_addons:
                resource = Addon(self, addon.name, plan=addon, cluster_name=name)
                resource.node.add_dependency(control_plane)
                self.ready.add(resource)
        self.name = name
        self.cluster = control_plane.cluster
        child(self.cluster, eks.CfnCluster).add_property_override(
            "DeletionProtection", deletion_protection
        )
        for arn in admins:
            self._admit(f"Admin{digest(self, arn)}", arn)
        self.context = ClusterContext(
            # Constructs that refer to the cluster wait for these.
            name=self.cluster.cluster_name,
            endpoint=control_plane.endpoint,
            certificate_authority=control_plane.certificate_authority,
            service_cidr=str(plan.service_cidr),
            security_group_id=control_plane.security_group_id,
            vpc=vpc,
            private_subnet_ids=tuple(ids),
        )

    def add_workload_addons(self, *after: IDependable) -> None:
        """Define the add-ons that need a node to become healthy: CoreDNS and its like.

        Args:
            after: Constructs that bring nodes, such as a `NodePool` of role ``system``, which their
                controllers prefer, or a node group of yours.
        """
        folder = Construct(self, "WorkloadAddons")
        with defining():
            for plan in self._addons:
                addon = Addon(folder, plan.name, plan=plan, cluster_name=self.context.name)
                addon.node.add_dependency(self.ready, *after)

    def _admit(self, id: str, arn: str) -> None:
        partition = Stack.of(self).partition
        eks.CfnAccessEntry(
            self,
            id,
            cluster_name=self.cluster.cluster_name,
            principal_arn=arn,
            access_policies=[
                eks.CfnAccessEntry.AccessPolicyProperty(
                    policy_arn=f"arn:{partition}:eks::aws:cluster-access-policy/{names.CLUSTER_ADMIN_POLICY}",
                    access_scope=eks.CfnAccessEntry.AccessScopeProperty(type="cluster"),
                )
            ],
        )


def _without_subnets(scope: Construct, vpc: ec2.IVpc) -> ec2.IVpc:
    """Return a VPC without its subnets: the CDK's cluster would tag each, or warn of it."""
    return ec2.Vpc.from_vpc_attributes(
        scope, "Vpc", vpc_id=vpc.vpc_id, availability_zones=vpc.availability_zones
    )


def _range(vpc: ec2.IVpc) -> IPv4Network | None:
    """Return the range of a VPC; None if the app does not know it."""
    try:
        return IPv4Network(vpc.vpc_cidr_block)
    # A token is no range, and neither is the CDK's dummy for a VPC before its lookup.
    except (RuntimeError, ValueError):
        return None
