"""Right of pods of jobs to read the Node that they run on, for ranks in the network's order."""

from collections.abc import Sequence

import cdk8s
from cdk8s_plus_27 import k8s as kube
from constructs import Construct

from ultrascale.plan.names import NODE_READER_ROLE
from ultrascale_k8s._pods import metadata
from ultrascale_k8s._rbac import rule

_RBAC_GROUP = "rbac.authorization.k8s.io"


class NodeReadersChart(cdk8s.Chart):
    """Lets every service account of some namespaces get Nodes by their names.

    RBAC cannot limit a pod to its own node. A Node tells its labels, addresses and images, and
    none of its pods; nobody may list them. Only pods that compute ranks have a token to ask with.
    """

    def __init__(self, scope: Construct, id: str, *, namespaces: Sequence[str]) -> None:
        """Define the right.

        Args:
            scope: The cdk8s app.
            id: Id of the chart, and name of its file.
            namespaces: Namespaces whose pods have it.
        """
        super().__init__(scope, id, disable_resource_name_hashes=True)
        name = NODE_READER_ROLE
        kube.KubeClusterRole(
            self,
            "Role",
            metadata=metadata(name, component=id),
            rules=[rule("nodes", verbs=("get",))],
        )
        kube.KubeClusterRoleBinding(
            self,
            "Binding",
            metadata=metadata(name, component=id),
            role_ref=kube.RoleRef(api_group=_RBAC_GROUP, kind="ClusterRole", name=name),
            subjects=[
                kube.Subject(
                    api_group=_RBAC_GROUP,
                    kind="Group",
                    # Source: https://kubernetes.io/docs/reference/access-authn-authz/rbac/
                    name=f"system:serviceaccounts:{namespace}",
                )
                for namespace in namespaces
            ],
        )
