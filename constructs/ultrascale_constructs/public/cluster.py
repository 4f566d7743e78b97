"""EKS clusters of an app: in a VPC of the app, or existing ones."""

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network
from typing import Literal, TypeAlias

from aws_cdk import CfnResource, Stack, Token
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks as eks_v1
from aws_cdk import aws_eks_v2 as eks
from constructs import Construct, DependencyGroup, IDependable

from ultrascale import config
from ultrascale.frozen import Frozen
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
    """

    name: str
    """Its name."""
    cluster: eks.Cluster
    """The cluster for other constructs of the CDK."""
    context: ClusterContext
    """The cluster for constructs of this package."""
    kubernetes_version: str
    """Its minor version."""
    ready: DependencyGroup
    """Constructs that nodes must wait for: the control plane, and the add-ons for joining."""

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


# --- Existing EKS clusters of an app, whether defined there or imported ---------------------------


class ExistingCluster(Frozen):
    """An EKS cluster by its plain values, which may be tokens of CloudFormation.

    `aws eks describe-cluster --name NAME` prints all of them.
    """

    name: str  # Its name
    vpc: ec2.IVpc  # Its VPC: made in the app, looked up, or imported by `Vpc.from_vpc_attributes`
    security_group_id: str  # Cluster security group, ``sg-…``, which EKS made with the cluster
    endpoint: str | None = None  # URL of its API server; self-managed nodes need it
    # Certificate authority of the API server, base64-encoded; self-managed nodes need it.
    certificate_authority: str | None = None
    service_cidr: str | None = None  # Range of its Kubernetes Services; self-managed nodes need it
    # Minor version of its control plane, such as ``1.35``; a `NodePool` needs it.
    kubernetes_version: str | None = None


AnyCluster: TypeAlias = (
    "Cluster | ExistingCluster | eks.ICluster | eks.Cluster | eks_v1.ICluster | eks_v1.Cluster"
)
"""A `Cluster` of this package, an `ExistingCluster`, or one of the CDK's `aws_eks_v2` or
`aws_eks`."""

_NEEDED: Mapping[str, str] = {
    "vpc": "vpc",
    "security_group_id": "cluster_security_group_id",
    "endpoint": "cluster_endpoint",
    "certificate_authority": "cluster_certificate_authority_data",
}


def context_of(
    cluster: AnyCluster,
    arguments: "Arguments",
    *needed: str,
    private_subnet_ids: tuple[str, ...] = (),
) -> ClusterContext | None:
    """Return ``cluster`` as a context for constructs; None if it lacks any field of ``needed``.

    Args:
        cluster: The cluster.
        arguments: Collector of the mistakes.
        needed: Fields of `ClusterContext` that the construct reads.
        private_subnet_ids: Subnets from which its API server can be reached.
    """
    own = getattr(cluster, "context", None)
    if isinstance(own, ClusterContext):
        return own
    if isinstance(cluster, ExistingCluster):
        values: dict[str, object] = {field: getattr(cluster, field) for field in needed}
        name, spelled = cluster.name, {field: field for field in needed}
        todo = "add it to ExistingCluster"
    elif isinstance(own_name := getattr(cluster, "cluster_name", None), str):
        name, spelled = own_name, {**_NEEDED, "service_cidr": "service_cidr"}
        values = {field: _property_of(cluster, spelled[field]) for field in needed}
        todo = "give it to from_cluster_attributes, or use ExistingCluster"
    else:
        arguments.refuse(
            "cluster",
            "not a cluster",
            "pass a Cluster or ExistingCluster of this package, or one of aws_eks_v2 or aws_eks",
            got=repr(cluster),
        )
        return None
    missing = [field for field, value in values.items() if value is None]
    for field in missing:
        arguments.refuse(f"cluster.{spelled[field]}", "not known of this cluster", todo)
    if missing:
        return None

    def text(field: str) -> str:
        value = values.get(field)
        return value if isinstance(value, str) else ""

    vpc = values.get("vpc")
    return ClusterContext(
        name=name,
        endpoint=text("endpoint"),
        certificate_authority=text("certificate_authority"),
        service_cidr=text("service_cidr"),
        security_group_id=text("security_group_id"),
        # A construct that reads the field has named it as needed.
        vpc=vpc,  # pyright: ignore[reportArgumentType]
        private_subnet_ids=private_subnet_ids,
    )


def version_of(cluster: AnyCluster, stated: str | None = None) -> str | None:
    """Return the Kubernetes minor version of a cluster; None if only EKS knows it.

    Args:
        cluster: The cluster.
        stated: Version in the arguments; None without one.
    """
    if stated is not None:
        return stated
    known = getattr(cluster, "kubernetes_version", None)
    if isinstance(known, str):
        return None if Token.is_unresolved(known) else known
    resource = _resource(cluster)
    found = resource.version if isinstance(resource, eks.CfnCluster) else None
    return None if found is None or Token.is_unresolved(found) else found


def stated_name(cluster: AnyCluster) -> str | None:
    """Return the name of a cluster as text; None if only CloudFormation knows it."""
    resource = _resource(cluster)
    names: list[object] = [
        getattr(cluster, "name", None),
        resource.name if isinstance(resource, eks.CfnCluster) else None,
        getattr(cluster, "cluster_name", None),
    ]
    known = (name for name in names if isinstance(name, str) and not Token.is_unresolved(name))
    return next(known, None)


def ready_of(cluster: AnyCluster) -> IDependable | None:
    """Return the construct that nodes have to wait for; None if the app does not make the cluster.

    Self-managed nodes have the cluster's name as text in tags: it is no reference that makes them
    wait.
    """
    return getattr(cluster, "ready", None) or _resource(cluster)


def _resource(cluster: AnyCluster) -> CfnResource | None:
    node = getattr(cluster, "node", None)
    found = None if node is None else node.default_child
    return found if isinstance(found, CfnResource) else None


def _property_of(cluster: object, name: str) -> object:
    """Return a property of a construct; None if an imported construct raises that it is unknown."""
    try:
        return getattr(cluster, name, None)
    except RuntimeError:
        return None


def is_own(cluster: AnyCluster) -> bool:
    """Return whether a cluster is a `Cluster` of this package, with its add-ons."""
    return isinstance(getattr(cluster, "context", None), ClusterContext)
