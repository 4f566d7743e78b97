"""Rules, roles and bindings of the platform's service accounts and of groups."""

from collections.abc import Iterable, Iterator, Sequence

from ultrascale.documents import Json, JsonObject
from ultrascale.plan.model import RightPlan
from ultrascale.plan.names import SYSTEM_NAMESPACE
from ultrascale_k8s.objects import manifest

_GROUP = "rbac.authorization.k8s.io"


def rule(*kinds: str, verbs: Sequence[str], group: str = "", names: Sequence[str] = ()) -> Json:
    """Return the rule that allows ``verbs`` on the resources ``kinds``.

    Args:
        kinds: Resources of one API group, in the plural.
        verbs: Allowed verbs.
        group: The API group; empty for the core group.
        names: Names of the objects; empty means all objects.
    """
    named: JsonObject = {"resourceNames": list(names)} if names else {}
    return {"apiGroups": [group], "resources": list(kinds), "verbs": list(verbs), **named}


def rules(rights: Iterable[RightPlan]) -> list[Json]:
    """Return the rules of planned rights."""
    return [
        rule(*right.resources, verbs=right.verbs, group=right.group, names=right.names)
        for right in rights
    ]


def role(
    name: str,
    rules: Iterable[Json],
    *,
    namespace: str | None = None,
    component: str | None = None,
) -> JsonObject:
    """Return the Role ``name`` in ``namespace``; without a namespace, a ClusterRole."""
    kind = "ClusterRole" if namespace is None else "Role"
    return manifest(kind, name, namespace=namespace, component=component, rules=[*rules])


def groups(names: Iterable[str]) -> list[Json]:
    """Return the groups ``names`` as subjects of a binding."""
    return [{"apiGroup": _GROUP, "kind": "Group", "name": name} for name in names]


def binding(
    name: str,
    subjects: list[Json],
    *,
    role: str | None = None,
    role_kind: str = "ClusterRole",
    namespace: str | None = None,
    component: str | None = None,
) -> JsonObject:
    """Return the binding ``name``.

    Args:
        name: Its name.
        subjects: Groups or service accounts that get the role.
        role: Name of the role; by default the binding's name.
        role_kind: Kind of the role.
        namespace: Namespace in which the role applies; None: the whole cluster.
        component: Component of the platform that the binding belongs to.
    """
    return manifest(
        "ClusterRoleBinding" if namespace is None else "RoleBinding",
        name,
        namespace=namespace,
        component=component,
        roleRef={"apiGroup": _GROUP, "kind": role_kind, "name": role or name},
        subjects=subjects,
    )


def account_binding(
    name: str,
    account: str,
    *,
    role: str | None = None,
    role_kind: str = "ClusterRole",
    namespace: str | None = None,
    account_namespace: str = SYSTEM_NAMESPACE,
) -> JsonObject:
    """Return the binding ``name`` of a role to the service account ``account``."""
    subject: Json = {"kind": "ServiceAccount", "name": account, "namespace": account_namespace}
    return binding(
        name, [subject], role=role, role_kind=role_kind, namespace=namespace, component=account
    )


def account_with_rules(
    name: str,
    *,
    cluster: Iterable[Json] = (),
    own: Iterable[Json] = (),
    namespace: str = SYSTEM_NAMESPACE,
    gives_token: bool | None = None,
) -> Iterator[JsonObject]:
    """Yield the service account ``name``, its roles, and the bindings of these roles.

    Args:
        name: Name of the account, and of its roles and bindings.
        cluster: Rules for every namespace.
        own: Rules for only the account's own namespace.
        namespace: Namespace of the account.
        gives_token: Whether pods get its token by default; None: Kubernetes' default.
    """
    yield manifest(
        "ServiceAccount", name, namespace=namespace, automountServiceAccountToken=gives_token
    )
    if cluster := [*cluster]:
        yield role(name, cluster)
        yield account_binding(name, name, account_namespace=namespace)
    if own := [*own]:
        yield role(name, own, namespace=namespace)
        yield account_binding(
            name, name, role_kind="Role", namespace=namespace, account_namespace=namespace
        )
