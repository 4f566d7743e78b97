"""The Lease that the write canary writes, and its right to it."""

import cdk8s
from cdk8s_plus_27 import k8s as kube
from constructs import Construct

from ultrascale.plan.model import WriteLatencyPlan
from ultrascale_k8s._pods import metadata
from ultrascale_k8s._rbac import rule

_COMPONENT = "write-canary"
_RBAC_GROUP = "rbac.authorization.k8s.io"


class WriteCanaryChart(cdk8s.Chart):
    """Defines the Lease and what the canary may do, as a member of its access entry's group.

    The Lease says nothing of who holds it, so that applying it again takes it from nobody.
    """

    def __init__(self, scope: Construct, id: str, *, plan: WriteLatencyPlan) -> None:
        super().__init__(scope, id, disable_resource_name_hashes=True)
        own = metadata(plan.lease, namespace=plan.namespace, component=_COMPONENT)
        kube.KubeLease(self, "Lease", metadata=own)
        kube.KubeRole(
            self,
            "Role",
            metadata=own,
            rules=[
                rule("leases", verbs=("patch",), group="coordination.k8s.io", names=(plan.lease,))
            ],
        )
        group = plan.function.group
        kube.KubeRoleBinding(
            self,
            "Binding",
            metadata=own,
            role_ref=kube.RoleRef(api_group=_RBAC_GROUP, kind="Role", name=plan.lease),
            subjects=[kube.Subject(api_group=_RBAC_GROUP, kind="Group", name=group)],
        )
