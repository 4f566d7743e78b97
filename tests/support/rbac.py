"""A small model of Kubernetes' RBAC: rights of a service account, a user or groups.

It knows Roles, ClusterRoles and their bindings, and no aggregation.

Source: https://kubernetes.io/docs/reference/access-authn-authz/rbac/
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.stub_api_server import Request

Document = Mapping[str, Any]

_PATH = re.compile(
    r"(?:/api/v1|/apis/(?P<group>[^/]+)/[^/]+)"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/))?"
    r"/(?P<resource>[a-z]+)(?:/(?P<name>[^/]+)(?:/(?P<part>[a-z]+))?)?"
)
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True)
class Access:
    """Question to the API server: one verb on one resource, or on all of a namespace."""

    verb: str
    group: str
    resource: str
    namespace: str | None
    name: str | None = None


def accesses_of(request: Request) -> Iterator[Access]:
    """Yield what rights a request takes; none for what every account may ask of the server."""
    match = _PATH.fullmatch(request.path)
    if match is None:
        return  # which kinds a group has
    name = match["name"]
    if request.method == "GET":
        watch = request.query.get("watch") == "true"
        verbs = ["watch" if watch else "get" if name else "list"]
    else:
        verbs = [_VERBS[request.method]]
    if "apply" in request.headers.get("content-type", ""):
        # Where the object is not there yet, it is created.
        # Source: https://kubernetes.io/docs/reference/using-api/server-side-apply/
        verbs.append("create")
    resource = match["resource"] + (f"/{match['part']}" if match["part"] else "")
    for verb in verbs:
        yield Access(verb, match["group"] or "", resource, match["namespace"], name)


class Rbac:
    """The rights by what ``documents`` grant a service account, a user or some groups."""

    def __init__(
        self,
        documents: Sequence[Document],
        *,
        account: str = "",
        namespace: str = "",
        groups: Sequence[str] = (),
        user: str = "",
    ) -> None:
        self._roles = {
            (each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"]): each
            for each in documents
            if each["kind"] in ("Role", "ClusterRole")
        }
        subjects = [
            {"kind": "ServiceAccount", "name": account, "namespace": namespace},
            *({"kind": "Group", "name": group} for group in groups),
            {"kind": "User", "name": user},
        ]
        self._bindings = [
            each
            for each in documents
            if each["kind"] in ("RoleBinding", "ClusterRoleBinding")
            and any(
                subject.items() <= given.items()
                for given in each["subjects"]
                for subject in subjects
            )
        ]

    def allows(self, access: Access) -> bool:
        """Return whether a rule that is bound to the account grants ``access``."""
        return any(
            access.verb in rule["verbs"]
            and access.group in rule["apiGroups"]
            and access.resource in rule["resources"]
            and ("resourceNames" not in rule or access.name in rule["resourceNames"])
            for scope, rule in self._rules()
            if scope in (None, access.namespace)
        )

    def granted(self, namespace: str | None) -> set[tuple[str, str, str]]:
        """Return verb, group and resource of all that is granted in a namespace, or everywhere."""
        return {
            (verb, group, resource)
            for scope, rule in self._rules()
            if scope == namespace
            for verb in rule["verbs"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
        }

    def _rules(self) -> Iterator[tuple[str | None, Mapping[str, Any]]]:
        for binding in self._bindings:
            scope = binding["metadata"].get("namespace")
            kind, name = binding["roleRef"]["kind"], binding["roleRef"]["name"]
            role = self._roles[kind, scope if kind == "Role" else None, name]
            yield from ((scope, rule) for rule in role["rules"])
