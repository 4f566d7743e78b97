"""Existing EKS clusters of an app, whether defined there or imported."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from aws_cdk import CfnResource, Token
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks as eks_v1
from aws_cdk import aws_eks_v2 as eks
from constructs import IDependable

from ultrascale.frozen import Frozen
from ultrascale_constructs.cluster_context import ClusterContext

if TYPE_CHECKING:
    from ultrascale_constructs.public.arguments import Arguments
    from ultrascale_constructs.public.cluster import Cluster


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
