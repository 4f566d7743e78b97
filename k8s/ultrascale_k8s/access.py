"""Rights of people to the kinds of jobs, by the groups of their access entries."""

from collections.abc import Sequence

import cdk8s
from cdk8s_plus_27 import k8s as kube
from constructs import Construct

from ultrascale.plan.model import ClusterRolePlan, GroupBindingPlan
from ultrascale_k8s._pods import metadata
from ultrascale_k8s._rbac import bind_groups, rules

_COMPONENT = "access"


class AccessChart(cdk8s.Chart):
    """Defines ClusterRoles, and binds groups to them, in namespaces that must be there."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        roles: Sequence[ClusterRolePlan],
        bindings: Sequence[GroupBindingPlan],
    ) -> None:
        """Define them.

        Args:
            scope: The cdk8s app.
            id: Id of the chart, and name of its file.
            roles: ClusterRoles.
            bindings: Bindings of these or of others.
        """
        super().__init__(scope, id, disable_resource_name_hashes=True)
        for role in roles:
            kube.KubeClusterRole(
                self,
                role.name,
                metadata=metadata(role.name, component=_COMPONENT),
                rules=rules(role.rights),
            )
        for binding in bindings:
            bind_groups(
                self,
                f"{binding.role}-{binding.namespace or 'cluster'}-binding",
                role=binding.role,
                namespace=binding.namespace,
                groups=binding.groups,
                component=_COMPONENT,
            )
