"""Objects whose change lets somebody into the cluster, or no longer restricts somebody."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ultrascale.core.table import all_parts
from ultrascale.documents import Json, JsonObject, mapping, objects, parse_json, sequence, text
from ultrascale.guard.access import BINDINGS, is_in_use, people_of
from ultrascale.guard.judging import outside
from ultrascale.guard.model import Change
from ultrascale.guard.network_policies import KIND as NETWORK_POLICY
from ultrascale.guard.network_policies import unisolated, widened
from ultrascale.guard.objects import NAMESPACE, Id, KubernetesObject, Objects
from ultrascale.guard.openings import (
    Opening,
    becomes,
    is_no_longer,
    is_unset,
    loses_a_member,
    opening_at,
    opening_text,
)
from ultrascale.guard.protection import leaves_cluster
from ultrascale.guard.queues import judged_namespaces
from ultrascale.guard.replacement import Worlds
from ultrascale.guard.templates import shown, text_of
from ultrascale.plan import names

_POLICY = "ValidatingAdmissionPolicy"
_POLICY_BINDING = "ValidatingAdmissionPolicyBinding"
ENFORCED = "pod-security.kubernetes.io/enforce"
LEVELS = ("privileged", "baseline", "restricted")
_SCHEME = "service.beta.kubernetes.io/aws-load-balancer-scheme"
_AUTHENTICATION = ("apiKeyAuth", "authorization", "basicAuth", "extAuth", "jwt", "oidc")
_HELD_GROUPS = re.compile(r'startsWith\("([^"]+)"')
# These policies bind pods to queues and nodes: without the policies nobody gains new access.
_OF_SCHEDULING = (names.NODE_ISOLATION_POLICY, names.QUEUED_PODS_POLICY.removesuffix("pods"))
# API groups whose kinds exist in every cluster, whatever its file asks for.
_ALWAYS_THERE = ("", "*", "apps", "batch", "rbac.authorization.k8s.io")


def _pod_security(old: JsonObject, new: JsonObject) -> Iterator[str]:
    before, after = (text(side, "metadata", "labels", ENFORCED) for side in (old, new))
    if before in LEVELS[1:] and after not in LEVELS[LEVELS.index(before) :]:
        yield opening_text(ENFORCED, before, after or None)


def _scheme(old: JsonObject, new: JsonObject) -> Iterator[str]:
    before, after = (text(side, "metadata", "annotations", _SCHEME) for side in (old, new))
    if before != after == "internet-facing":
        yield opening_text(_SCHEME, before or None, after)


def _source_ranges(old: JsonObject, new: JsonObject) -> Iterator[str]:
    before, after = (
        [*map(text_of, sequence(side, "spec", "loadBalancerSourceRanges"))] for side in (old, new)
    )
    if before and outside(after or ["0.0.0.0/0", "::/0"], before):
        yield opening_text("spec/loadBalancerSourceRanges", before, after or None)


def _enforcement(old: JsonObject, new: JsonObject) -> Iterator[str]:
    key = "enable-network-policy-controller"
    before, after = (text(side, "data", key) for side in (old, new))
    if before == "true" != after:
        yield opening_text(f"data/{key}", before, after or None)


def _authentication(old: JsonObject, new: JsonObject) -> Iterator[str]:
    """Yield the openings by which an Envoy Gateway security policy admits more clients.

    Source: https://gateway.envoyproxy.io/docs/api/extension_types/#securitypolicyspec
    """
    before, after = mapping(old, "spec"), mapping(new, "spec")
    instead = [
        f"spec/{method}: {_admitted_by(method, after[method])}"
        for method in _AUTHENTICATION
        if method in after and method not in before
    ]
    for method in _AUTHENTICATION:
        had, has = before.get(method), after.get(method)
        if had is None or (has is not None and not _admits_more(method, had, has)):
            continue
        becomes = " and ".join(instead) or "nothing" if has is None else _admitted_by(method, has)
        yield f"spec/{method}: {_admitted_by(method, had)} -> {becomes}"


def _admitted_by(method: str, value: Json) -> str:
    """Return in words which clients pass a method of authentication."""
    if method == "apiKeyAuth":
        keys = objects(value, "credentialRefs")
        return ", ".join(f"Secret {text(key, 'name')}" for key in keys)
    if method != "jwt":
        return shown(value)
    return " or ".join(
        f"issuer {text(each, 'issuer')}, {_audiences(each)}, "
        f"keys of {text(each, 'remoteJWKS', 'uri') or 'the policy'}"
        for each in objects(value, "providers")
    )


def _audiences(provider: JsonObject) -> str:
    audiences = [*map(text_of, sequence(provider, "audiences"))]
    return f"audiences [{', '.join(audiences)}]" if audiences else "any audience"


def _admits_more(method: str, had: Json, has: Json) -> bool:
    if method == "apiKeyAuth":
        return loses_a_member(*(mapping(side).get("credentialRefs") for side in (has, had)))
    if method == "jwt":
        known = objects(had, "providers")
        return not all(
            any(_is_as_strict(provider, other) for other in known)
            for provider in objects(has, "providers")
        )
    return had != has


def _is_as_strict(provider: JsonObject, other: JsonObject) -> bool:
    """Return whether a token provider refuses every token that ``other`` refuses."""
    if any(provider.get(key) != other.get(key) for key in ("issuer", "localJWKS", "remoteJWKS")):
        return False
    before, after = sequence(other, "audiences"), sequence(provider, "audiences")
    return not before or (bool(after) and {*map(text_of, after)} <= {*map(text_of, before)})


def _models_of_clients(old: JsonObject, new: JsonObject) -> Iterator[str]:
    """Yield the changes that let clients of the front use more models."""
    path = ("metadata", "annotations", names.CLIENT_MODELS)
    before, after = (parse_json(text(side, *path) or "null") for side in (old, new))
    if before is None:
        return
    if after is None:
        yield opening_text("models of clients", before, "all models for each")
        return
    gained = [
        f"{client}: {model}"
        for client, models in after.items()
        for model in models
        if model not in before.get(client, ())
    ]
    if gained:
        yield opening_text("models of clients", None, gained)


def _listeners(old: JsonObject, new: JsonObject) -> Iterator[str]:
    """Yield the listeners of a Gateway that end TLS, or that take routes of any namespace."""
    before, after = (
        {text(each, "name"): each for each in objects(side, "spec", "listeners")}
        for side in (old, new)
    )
    for name in filter(after.__contains__, before):
        for path in (("protocol",), ("allowedRoutes", "namespaces", "from")):
            had, has = text(before[name], *path), text(after[name], *path)
            if (had == "HTTPS" != has) or (had != "All" == has):
                yield opening_text(f"{'/'.join(path)} of listener {name}", had or None, has or None)


def _denies_no_more(before: Json, after: Json) -> bool:
    return "Deny" in sequence(before) and "Deny" not in sequence(after)


_OPENINGS: Mapping[str, Sequence[Opening]] = {
    NAMESPACE: (_pod_security,),
    "ClientTrafficPolicy": (
        opening_at("spec/headers/earlyRequestHeaders/remove", loses_a_member),
        opening_at("spec/tls/clientValidation", is_unset),
    ),
    "ConfigMap": (_enforcement,),
    "EnvoyExtensionPolicy": (_models_of_clients,),
    "EC2NodeClass": (
        opening_at("spec/associatePublicIPAddress", becomes("true")),
        opening_at("spec/blockDeviceMappings/*/ebs/kmsKeyID", is_unset),
        opening_at("spec/metadataOptions/httpTokens", is_no_longer("required")),
    ),
    "EnvoyProxy": (
        opening_at(
            "spec/provider/kubernetes/envoyService/type", becomes("LoadBalancer", "NodePort")
        ),
    ),
    "Gateway": (_listeners,),
    NETWORK_POLICY: (opening_at("spec/egress/*/to/*/ipBlock/except", is_unset),),
    "NodeClass": (opening_at("spec/ephemeralStorage/kmsKeyID", is_unset),),
    "SecurityPolicy": (_authentication,),
    "Service": (
        opening_at("spec/type", becomes("LoadBalancer", "NodePort")),
        _source_ranges,
        _scheme,
    ),
    _POLICY: (opening_at("spec/failurePolicy", is_no_longer("Fail")),),
    _POLICY_BINDING: (opening_at("spec/validationActions", _denies_no_more),),
}

OPENING_KINDS = frozenset(_OPENINGS)
"""Kinds where a change of an object that stays may open something."""


def exposed_objects(applied: tuple[Objects, Objects], worlds: Worlds) -> Iterator[Change]:
    """Yield the objects whose change opens access, each with its openings.

    Args:
        applied: The objects in the cluster, of both sides.
        worlds: Both sides.
    """
    old, new = applied
    opened: dict[Id, list[str]] = {}
    gone = {each.id for each in old.by_id.values() if leaves_cluster(each, new, worlds)}
    for item in old.by_id.values():
        after = new.by_id.get(item.id)
        if after is not None and after.body != item.body:
            opened[item.id] = [
                setting
                for opening in _OPENINGS.get(item.kind, ())
                for setting in opening(item.body, after.body)
            ]
    for id, setting in (
        *_bindings(old, new, worlds),
        *_roles(old, new, worlds),
        *_network_policies(old, new, gone),
        *_admission(old, new, gone),
        *_openings_of_parts(applied),
    ):
        opened.setdefault(id, []).append(setting)
    for id, settings in opened.items():
        if settings:
            yield _change(new.by_id.get(id) or old.by_id[id], settings, id in old.by_id, id in gone)


def _openings_of_parts(applied: tuple[Objects, Objects]) -> "_Opened":
    for part in all_parts():
        if part.judges_changes:
            for each, setting in part.module("guard").openings(applied):
                yield each.id, setting


def _change(
    applied: KubernetesObject, settings: Iterable[str], is_there: bool, goes: bool
) -> Change:
    stack, logical_id = applied.holder
    return Change(
        stack=stack,
        logical_id=logical_id,
        type=f"Kubernetes::{applied.kind}",
        name=applied.whole_name,
        action="deleted" if goes else "updated" if is_there else "added",
        opens=tuple(settings),
    )


_Opened = Iterator[tuple[Id, str]]


def _bindings(old: Objects, new: Objects, worlds: Worlds) -> _Opened:
    """Yield the bindings that people join, including new bindings."""
    for after in new.of_kind(*BINDINGS):
        if not is_in_use(after.holder[0], worlds):
            continue
        before = old.by_id.get(after.id)
        had = frozenset[str]() if before is None else people_of(before, worlds.old)
        has = people_of(after, worlds.new)
        if has - had:
            role = text(after.body, "roleRef", "name")
            yield after.id, opening_text(f"who has {role}", sorted(had) or None, sorted(has))


def _roles(old: Objects, new: Objects, worlds: Worlds) -> _Opened:
    """Yield the roles of people that allow more than before."""
    of_people = {
        text(binding.body, "roleRef", "name")
        for binding in new.of_kind(*BINDINGS)
        if people_of(binding, worlds.new)
        or any(names.is_access_group(text(subject, "name")) for subject in _subjects(binding))
    }
    for after in new.of_kind("ClusterRole", "Role"):
        before = old.by_id.get(after.id)
        if before is None or after.name not in of_people or before.body == after.body:
            continue
        had = {*_rights(before)}
        # Nobody can use a kind before its controller brings it.
        groups = {*_ALWAYS_THERE, *(group for group, *_ in had)}
        gained = sorted(
            right
            for right in {*_rights(after)} - had
            if right[0] in groups and not any(_allows(each, right) for each in had)
        )
        if gained:
            told = ", ".join(f"{verb} {resource}" for _, resource, _, verb in gained)
            yield after.id, opening_text("rules", None, told)


_Right = tuple[str, str, str, str]
"""An RBAC right: API group, resource, name of the only object, and verb."""


def _rights(role: KubernetesObject) -> Iterator[_Right]:
    for rule in objects(role.body, "rules"):
        for verb in sequence(rule, "verbs"):
            for path in sequence(rule, "nonResourceURLs"):
                yield "", text_of(path), "", text_of(verb)
            for group in sequence(rule, "apiGroups"):
                for resource in sequence(rule, "resources"):
                    for name in sequence(rule, "resourceNames") or ("",):
                        yield text_of(group), text_of(resource), text_of(name), text_of(verb)


def _allows(has: _Right, wanted: _Right) -> bool:
    return all(
        mine in (whole, other)
        for mine, other, whole in zip(has, wanted, ("*", "*", "", "*"), strict=True)
    )


def _subjects(binding: KubernetesObject) -> Sequence[JsonObject]:
    return objects(binding.body, "subjects")


def _network_policies(old: Objects, new: Objects, gone: set[Id]) -> _Opened:
    """Yield the changed network policies of namespaces that existed before and stay."""
    for namespace in sorted(_namespaces(old) & _namespaces(new, old, gone)):
        before, after = (
            [each for each in side.of_kind(NETWORK_POLICY) if each.namespace == namespace]
            for side in (old, new)
        )
        pods = [
            mapping(item.spec, "template", "metadata", "labels")
            for item in old.by_id.values()
            if item.namespace == namespace
        ]
        kept = [each for each in before if each.id not in gone and each.id not in new.by_id]
        for policy, setting in (
            *unisolated(before, [*after, *kept]),
            *widened(before, after, pods),
        ):
            yield policy.id, setting


def _namespaces(side: Objects, old: Objects | None = None, gone: Iterable[Id] = ()) -> set[str]:
    """Return the charts' namespaces, and those that stay although no chart applies them."""
    kept = (
        [] if old is None else [each for each in old.of_kind(NAMESPACE) if each.id not in {*gone}]
    )
    return {each.name for each in (*side.of_kind(NAMESPACE), *kept)}


def _admission(old: Objects, new: Objects, gone: set[Id]) -> _Opened:
    """Yield admission policies that leave, or that no longer judge a namespace that stays."""
    stay = _namespaces(new)
    for binding in old.of_kind(_POLICY_BINDING):
        after = new.by_id.get(binding.id)
        policy = text(binding.spec, "policyName")
        judged = old.by_id.get((_POLICY, "", policy))
        if binding.name.startswith(_OF_SCHEDULING):
            continue
        if judged is not None and not _holds_anybody(judged, new):
            continue
        if binding.id in gone or (_POLICY, "", policy) in gone:
            yield binding.id, opening_text(f"admission by {policy}", "refuses", None)
        elif after is not None:
            had, has = (judged_namespaces(side) for side in (binding, after))
            lost = sorted((had - has) & stay)
            if lost and has:
                yield binding.id, opening_text(f"namespaces of {policy}", sorted(had), sorted(has))


def _holds_anybody(policy: KubernetesObject, new: Objects) -> bool:
    """Return whether a binding still has people of the groups that a policy restricts."""
    stated = [text(each, "expression") for each in objects(policy.spec, "matchConditions")]
    groups = [group for each in stated for group in _HELD_GROUPS.findall(each)]
    held = [group for group in groups if names.is_access_group(group)]
    bound = [
        text(each, "name") for binding in new.of_kind(*BINDINGS) for each in _subjects(binding)
    ]
    return not held or any(group.startswith(tuple(held)) for group in bound)
