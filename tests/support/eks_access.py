"""Rights of an IAM role in a cluster: what EKS's access policies and our RBAC allow together.

The tables are those of EKS's own page, without the group `extensions`, which no server has today.

Source: https://github.com/awsdocs/amazon-eks-user-guide/blob/145543a96a20b66b1e946cd818943e5aa7713f6c/latest/ug/manage-access/k8s-access/access-policy-reference.adoc
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.rbac import Access, Document, Rbac, accesses_of
from tests.support.stub_api_objects import Object
from tests.support.stub_api_server import Reply, Request, StubApiServer
from ultrascale.plan.model import AccessEntryPlan

_READ = frozenset({"get", "list", "watch"})
_WRITE = frozenset({"create", "delete", "deletecollection", "patch", "update"})

Table = Mapping[str, str]
"""Resources by API group."""

_VIEWED: Table = {
    "apps": "controllerrevisions daemonsets daemonsets/status deployments deployments/scale "
    "deployments/status replicasets replicasets/scale replicasets/status statefulsets "
    "statefulsets/scale statefulsets/status",
    "autoscaling": "horizontalpodautoscalers horizontalpodautoscalers/status",
    "batch": "cronjobs cronjobs/status jobs jobs/status",
    "discovery.k8s.io": "endpointslices",
    "networking.k8s.io": "ingresses ingresses/status networkpolicies",
    "policy": "poddisruptionbudgets poddisruptionbudgets/status",
    "": "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods "
    "replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status "
    "bindings events limitranges namespaces/status pods/log pods/status "
    "replicationcontrollers/status resourcequotas resourcequotas/status namespaces",
}
_EDITORS_VIEW: Table = {
    "": "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy"
}
_EDITED: Table = {
    "apps": "daemonsets deployments deployments/rollback deployments/scale replicasets "
    "replicasets/scale statefulsets statefulsets/scale",
    "autoscaling": "horizontalpodautoscalers",
    "batch": "cronjobs jobs",
    "networking.k8s.io": "ingresses networkpolicies",
    "policy": "poddisruptionbudgets",
    "": "pods pods/attach pods/exec pods/portforward pods/proxy configmaps events "
    "persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets "
    "serviceaccounts services services/proxy",
}
_ADMINISTERED: Table = {"rbac.authorization.k8s.io": "rolebindings roles"}
_POLICIES: Mapping[str, Sequence[tuple[frozenset[str], Table]]] = {
    "AmazonEKSViewPolicy": [(_READ, _VIEWED)],
    "AmazonEKSEditPolicy": [(_READ, _VIEWED), (_READ, _EDITORS_VIEW), (_WRITE, _EDITED)],
    "AmazonEKSAdminPolicy": [
        (_READ, _VIEWED),
        (_READ, _EDITORS_VIEW),
        (_WRITE, _EDITED),
        (_READ | _WRITE, _ADMINISTERED),
    ],
}


def policies_of(policy: str) -> Iterator[tuple[tuple[str, str], frozenset[str]]]:
    """Yield the verbs that an access policy of EKS allows, by API group and resource."""
    for verbs, table in _POLICIES[policy]:
        for group, resources in table.items():
            for resource in resources.split():
                yield (group, resource), verbs


def stand_ins(entries: Mapping[str, AccessEntryPlan]) -> Iterator[dict[str, Any]]:
    """Yield roles that give users the rights of EKS's policies, for servers that have none.

    Args:
        entries: Access entries by the names of the users.
    """
    rbac = {"apiVersion": "rbac.authorization.k8s.io/v1"}
    for name, parts in _POLICIES.items():
        rules = [
            {"apiGroups": [group], "resources": table[group].split(), "verbs": sorted(verbs)}
            for verbs, table in parts
            for group in table
        ]
        yield {**rbac, "kind": "ClusterRole", "metadata": {"name": name.lower()}, "rules": rules}
    for user, entry in entries.items():
        subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]
        for policy in entry.policies:
            reference = {"kind": "ClusterRole", "name": policy.name.lower()}
            for namespace in policy.namespaces:
                yield {
                    **rbac,
                    "kind": "RoleBinding",
                    "metadata": {"name": f"{user}-{policy.name.lower()}", "namespace": namespace},
                    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", **reference},
                    "subjects": subjects,
                }


@dataclass(frozen=True)
class Person:
    """Whoever takes on a role, in a cluster with objects of RBAC."""

    entry: AccessEntryPlan
    documents: Sequence[Document]

    def allows(self, access: Access) -> bool:
        """Return whether EKS or RBAC allows ``access``."""
        if access.resource == "namespaces" and access.name is not None:
            # To the API server a namespace is in itself.
            access = Access(access.verb, access.group, access.resource, access.name, access.name)
        if Rbac(self.documents, groups=self.entry.groups).allows(access):
            return True
        return any(
            access.verb in verbs and access.resource in table.get(access.group, "").split()
            for policy in self.entry.policies
            if not policy.namespaces or access.namespace in policy.namespaces
            for verbs, table in _POLICIES[policy.name]
        )


class GuardedApiServer(StubApiServer):
    """An API server that asks what a person may do."""

    def __init__(self, person: Person) -> None:
        super().__init__()
        self.person = person
        self.refused: list[Access] = []

    def respond(self, request: Request) -> Reply:
        refused = [each for each in accesses_of(request) if not self.person.allows(each)]
        if not refused:
            return super().respond(request)
        self.refused += refused
        return Reply(403, _forbidden(refused[0]))


def _forbidden(access: Access) -> Object:
    message = f"cannot {access.verb} resource {access.resource} in API group {access.group!r}"
    return {"kind": "Status", "code": 403, "reason": "Forbidden", "message": message}


def resources_of(*policies: str) -> Iterator[tuple[str, str]]:
    """Yield group and resource of all that EKS's policies name."""
    for policy in policies:
        for _, table in _POLICIES[policy]:
            yield from ((group, name) for group in table for name in table[group].split())
