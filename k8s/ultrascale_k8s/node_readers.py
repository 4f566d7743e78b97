"""Right of pods of jobs to read the Node that they run on, for ranks in the network's order."""

from collections.abc import Sequence

from ultrascale.documents import JsonObject
from ultrascale.plan.names import NODE_READER_ROLE
from ultrascale_k8s._rbac import binding, groups, role, rule

_COMPONENT = "node-readers"


def node_reader_objects(namespaces: Sequence[str]) -> list[JsonObject]:
    """Return the right of every service account of ``namespaces`` to get Nodes by their names.

    RBAC cannot limit a pod to its own node. A Node tells its labels, addresses and images, and
    none of its pods; nobody may list them. Only pods that compute ranks have a token to ask with.
    """
    # Source: https://kubernetes.io/docs/reference/access-authn-authz/rbac/
    accounts = groups(f"system:serviceaccounts:{namespace}" for namespace in namespaces)
    return [
        role(NODE_READER_ROLE, [rule("nodes", verbs=("get",))], component=_COMPONENT),
        binding(NODE_READER_ROLE, accounts, component=_COMPONENT),
    ]
