"""Rights of people's groups to the kinds of jobs, and of pods to read their Nodes."""

from collections.abc import Iterable, Iterator, Sequence

from ultrascale.documents import JsonObject
from ultrascale.plan.model import ClusterRolePlan, GroupBindingPlan
from ultrascale.plan.names import NODE_READER_ROLE
from ultrascale_k8s._rbac import binding, groups, role, rule, rules

_COMPONENT, _READERS = "access", "node-readers"


def node_reader_objects(namespaces: Sequence[str]) -> list[JsonObject]:
    """Return the right of all service accounts in ``namespaces`` to get Nodes by name.

    RBAC cannot limit a pod to its own node. A Node shows its labels, addresses and images, but not
    its pods; the right does not allow to list Nodes. Only pods that compute ranks have a token for
    the API server.
    """
    # Source: https://kubernetes.io/docs/reference/access-authn-authz/rbac/
    accounts = groups(f"system:serviceaccounts:{namespace}" for namespace in namespaces)
    return [
        role(NODE_READER_ROLE, [rule("nodes", verbs=("get",))], component=_READERS),
        binding(NODE_READER_ROLE, accounts, component=_READERS),
    ]


def access_objects(
    roles: Iterable[ClusterRolePlan], bindings: Iterable[GroupBindingPlan]
) -> Iterator[JsonObject]:
    """Yield ClusterRoles, and bindings of groups to these or other roles.

    The namespaces of the bindings must exist.
    """
    for each in roles:
        yield role(each.name, rules(each.rights), component=_COMPONENT)
    for each in bindings:
        yield binding(
            each.role, groups(each.groups), namespace=each.namespace, component=_COMPONENT
        )
