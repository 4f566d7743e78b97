"""Rules and bindings: of the platform's service accounts, most in `kube-system`, and of groups."""

from collections.abc import Sequence

from cdk8s_plus_27 import k8s as kube
from constructs import Construct

from ultrascale.documents import JsonObject, sequence
from ultrascale.plan.model import RightPlan
from ultrascale.plan.names import SYSTEM_NAMESPACE
from ultrascale_k8s._pods import metadata
from ultrascale_k8s.upstream import upstream_rules

_RBAC_GROUP = "rbac.authorization.k8s.io"


def rule(
    *kinds: str, verbs: Sequence[str], group: str = "", names: Sequence[str] = ()
) -> kube.PolicyRule:
    """Allow ``verbs`` on the resources ``kinds``.

    Args:
        kinds: Resources of one API group, in the plural.
        verbs: What may be done.
        group: The API group; empty for the core group.
        names: The only objects that it may be done to; empty means all.
    """
    return kube.PolicyRule(
        api_groups=[group],
        resources=list(kinds),
        verbs=list(verbs),
        resource_names=list(names) or None,
    )


def rules(rights: Sequence[RightPlan]) -> list[kube.PolicyRule]:
    """Return the rules of planned rights."""
    return [
        rule(*right.resources, verbs=right.verbs, group=right.group, names=right.names)
        for right in rights
    ]


def rules_from_upstream(file: str, role: str) -> list[kube.PolicyRule]:
    """Return the rules of the ClusterRole ``role`` in upstream's ``file``."""
    return [
        kube.PolicyRule(
            api_groups=_texts(each, "apiGroups"),
            resources=_texts(each, "resources"),
            verbs=_texts(each, "verbs"),
        )
        for each in upstream_rules(file, role)
    ]


def _texts(document: JsonObject, key: str) -> list[str]:
    return [str(value) for value in sequence(document, key)]


def bind_groups(
    scope: Construct,
    id: str,
    *,
    role: str,
    groups: Sequence[str],
    namespace: str | None,
    component: str,
) -> None:
    """Give groups the ClusterRole ``role``, after which the binding is named.

    Args:
        scope: The chart.
        id: Id of the binding.
        role: Name of the ClusterRole.
        groups: Kubernetes groups.
        namespace: Namespace in which they have it; None: the whole cluster.
        component: Component that the binding belongs to.
    """
    role_ref = kube.RoleRef(api_group=_RBAC_GROUP, kind="ClusterRole", name=role)
    subjects = [kube.Subject(api_group=_RBAC_GROUP, kind="Group", name=group) for group in groups]
    if namespace is None:
        own = metadata(role, component=component)
        kube.KubeClusterRoleBinding(scope, id, metadata=own, role_ref=role_ref, subjects=subjects)
    else:
        own = metadata(role, namespace=namespace, component=component)
        kube.KubeRoleBinding(scope, id, metadata=own, role_ref=role_ref, subjects=subjects)


def bind_cluster_role(
    scope: Construct,
    id: str,
    *,
    name: str,
    role: str,
    account: str,
    account_namespace: str = SYSTEM_NAMESPACE,
) -> None:
    """Give the service account ``account`` the ClusterRole ``role`` in every namespace."""
    kube.KubeClusterRoleBinding(
        scope,
        id,
        metadata=metadata(name, component=account),
        role_ref=kube.RoleRef(api_group=_RBAC_GROUP, kind="ClusterRole", name=role),
        subjects=_subjects(account, account_namespace),
    )


def bind_role(
    scope: Construct,
    id: str,
    *,
    name: str,
    role: str,
    account: str,
    namespace: str = SYSTEM_NAMESPACE,
    account_namespace: str = SYSTEM_NAMESPACE,
) -> None:
    """Give the service account ``account`` the Role ``role`` of ``namespace``."""
    kube.KubeRoleBinding(
        scope,
        id,
        metadata=metadata(name, namespace=namespace, component=account),
        role_ref=kube.RoleRef(api_group=_RBAC_GROUP, kind="Role", name=role),
        subjects=_subjects(account, account_namespace),
    )


def _subjects(account: str, namespace: str) -> list[kube.Subject]:
    return [kube.Subject(kind="ServiceAccount", name=account, namespace=namespace)]
