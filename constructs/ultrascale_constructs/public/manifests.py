"""Kubernetes objects that constructs apply to a user's cluster."""

from aws_cdk import Stack
from constructs import Construct

from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_constructs.platform import ManifestApplier
from ultrascale_constructs.public.arguments import digest


def manifests_of(scope: Construct, cluster: ClusterContext) -> ManifestApplier:
    """Return the applier of manifests in ``scope``, with a kubectl provider per stack and cluster.

    Each provider has two functions, and is an administrator of the cluster.
    """
    stack = Stack.of(scope)
    id = f"UltrascaleKubectl{digest(scope, cluster.name)}"
    found = stack.node.try_find_child(id)
    if not isinstance(found, ManifestApplier):
        found = ManifestApplier(stack, id, cluster=cluster)
    return ManifestApplier(scope, "Manifests", cluster=cluster, through=found)
