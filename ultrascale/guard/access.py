"""Access of people to the cluster: entries of EKS, and bindings of roles in Kubernetes."""

from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import filterfalse

from ultrascale.catalog import eks
from ultrascale.documents import Json, JsonObject, mapping, objects, sequence, text
from ultrascale.guard.judging import GOING, KEEP_NODES, Context
from ultrascale.guard.model import Change, Harm
from ultrascale.guard.objects import KubernetesObject, Objects, updated
from ultrascale.guard.openings import opening_text
from ultrascale.guard.replacement import Worlds
from ultrascale.guard.templates import Key, World, references, text_of
from ultrascale.plan import names

ENTRY = "AWS::EKS::AccessEntry"
BINDINGS = ("ClusterRoleBinding", "RoleBinding")
NODES_LOSE = Harm(
    verdict="cuts running nodes off",
    lost="the identity of nodes that run: they lose the API server, and their pods with them",
    instead=KEEP_NODES,
)

_ACCESS_POLICIES = tuple(eks.ACCESS_POLICIES.values())
_SERVICE_ACCOUNTS = "system:serviceaccount"
"""Prefix of the user names of pods and of their groups.

Source: https://kubernetes.io/docs/reference/access-authn-authz/rbac/#referring-to-subjects
"""
_NODE_ENTRIES = frozenset({"EC2", "EC2_LINUX", "EC2_WINDOWS", "FARGATE_LINUX", "HYPERPOD_LINUX"})


def entry_changes(change: Change, context: Context) -> Harm | None:
    """Judge the change of an access entry, whether of nodes or of people."""
    old, new = context.old(change), context.new(change)
    if text(old, "Type") in _NODE_ENTRIES:
        return NODES_LOSE if change.action in GOING else None
    if change.action not in ("updated", *GOING) or is_of_a_program(old):
        return None
    principal = text_of(old.get("PrincipalArn"))
    later = [new] if change.action == "updated" else list(_entries(principal, context.worlds.new))
    if any(_covers(entry, old) for entry in later):
        return None
    return Harm(
        verdict="people lose access",
        lost=f"access of {principal} to the cluster{' in part' if later else ''}",
        instead="keep the entry beside the new ones, and name it once its people use others",
    )


def widened_entries(worlds: Worlds, made: Set[str]) -> Iterator[tuple[Key, str]]:
    """Yield the access entries that allow people more than before, and the change of their rights.

    Args:
        worlds: Both sides.
        made: Namespaces that the change makes: still empty, so that nobody reaches anything there.
    """
    for key in _entry_keys(worlds.new):
        new = worlds.new.properties(key)
        if not is_in_use(key[0], worlds):
            continue
        if text(new, "Type") in _NODE_ENTRIES or is_of_a_program(new):
            continue
        principal = text_of(new.get("PrincipalArn"))
        before = list(_entries(principal, worlds.old))
        wanted = _without_new_rights(new, _groups(*before), made) if before else new
        if not any(_covers(entry, wanted) for entry in before):
            levels = [*dict.fromkeys(level for entry in before for level in _levels(entry))]
            yield key, opening_text(f"access of {principal}", levels or None, [*_levels(new)])


def is_in_use(stack: str, worlds: Worlds) -> bool:
    """Return whether a stack, or the cluster around it, has had its first deployment.

    After a first deployment that stopped half-way, the next one reports no access entries as new.
    The stack of the platform, which all clusters have, comes after the stacks that let people in.
    """
    platform = names.stack("", "platform")
    return stack in worlds.old.templates or any(
        template.endswith(platform) for template in worlds.old.templates
    )


def _without_new_rights(entry: JsonObject, before: Iterable[str], made: Set[str]) -> JsonObject:
    """Return an entry without its rights to namespaces and job kinds that the same change makes.

    Args:
        entry: The entry.
        before: Groups of its principal before.
        made: Namespaces that the change makes.
    """
    had_levels = any(names.is_access_group(each) and each != names.ACCESS_GROUP for each in before)
    groups: Json = [
        group
        for group in _groups(entry)
        if not names.is_access_group(group)
        or (had_levels and made.isdisjoint(group.split(":")[3:4]))
    ]
    policies: Json = [
        {**each, "AccessScope": {**scope, "Namespaces": kept}} if made and named else each
        for each in objects(entry, "AccessPolicies")
        for scope in [mapping(each, "AccessScope")]
        for named in [[*map(text_of, sequence(scope, "Namespaces"))]]
        for kept in [[name for name in named if name not in made]]
    ]
    return {**entry, "KubernetesGroups": groups, "AccessPolicies": policies}


def _levels(entry: JsonObject) -> Iterator[str]:
    """Yield an entry's access policies and groups as words for people."""
    for policy, namespace in _policy_scopes(entry):
        yield f"{policy} in {namespace or 'the whole cluster'}"
    for group in _groups(entry):
        if group != names.ACCESS_GROUP:
            yield group.removeprefix(f"{names.ACCESS_GROUP}:")


def _groups(*entries: JsonObject) -> Iterator[str]:
    for entry in entries:
        yield from map(text_of, sequence(entry, "KubernetesGroups"))


def is_of_a_program(entry: JsonObject) -> bool:
    """Return whether an access entry belongs to a role that the cluster's own stacks make."""
    return any(True for _ in references(entry.get("PrincipalArn")))


def _entries(principal: str, world: World) -> Iterator[JsonObject]:
    for key in _entry_keys(world):
        values = world.properties(key)
        if text_of(values.get("PrincipalArn")) == principal:
            yield values


def _entry_keys(world: World) -> Iterator[Key]:
    for stack in world.templates:
        for logical_id, body in world.resources(stack).items():
            if body["Type"] == ENTRY:
                yield stack, logical_id


def _covers(entry: JsonObject, before: JsonObject) -> bool:
    """Return whether an access entry allows all that ``before`` allowed."""
    has = {*_policy_scopes(entry)}
    groups = [text_of(group) for group in sequence(entry, "KubernetesGroups")]
    lost = [
        wanted
        for wanted in map(text_of, sequence(before, "KubernetesGroups"))
        if not any(names.group_includes(group, wanted) for group in groups)
    ]
    if (eks.CLUSTER_ADMIN_POLICY, None) in has:
        return not [*filterfalse(names.is_access_group, lost)]
    return not lost and all(_is_allowed(has, *scope) for scope in _policy_scopes(before))


def _policy_scopes(entry: JsonObject) -> Iterator[tuple[str, str | None]]:
    """Yield each access policy of an entry with its namespace; None for all namespaces."""
    for association in objects(entry, "AccessPolicies"):
        policy = text_of(association.get("PolicyArn")).rpartition("/")[2]
        scope = mapping(association, "AccessScope")
        if scope.get("Type") == "namespace":
            yield from ((policy, text_of(name)) for name in sequence(scope, "Namespaces"))
        else:
            yield policy, None


def _is_allowed(has: set[tuple[str, str | None]], wanted: str, namespace: str | None) -> bool:
    enough = {wanted}
    if wanted in _ACCESS_POLICIES:
        enough = {*_ACCESS_POLICIES[_ACCESS_POLICIES.index(wanted) :]}
    return any(policy in enough and scope in (None, namespace) for policy, scope in has)


def narrowed_bindings(applied: tuple[Objects, Objects], worlds: Worlds) -> Iterator[Change]:
    """Yield the role bindings that lose users or groups."""
    old, new = applied
    for before in old.of_kind(*BINDINGS):
        after = new.by_id.get(before.id)
        kept = people_of(after, worlds.old) if after is not None else frozenset[str]()
        lost = sorted(people_of(before, worlds.old) - kept)
        if after is not None and lost:
            yield updated(after).harmed(people_lose(lost))


def people_lose(people: Sequence[str]) -> Harm:
    """Return the loss of rights by users and groups."""
    return Harm(
        verdict="people lose access",
        lost=f"rights of {', '.join(people)} in the cluster",
        instead="keep the binding beside the new ones, and name it once they use others",
    )


def people_of(binding: KubernetesObject, world: World) -> frozenset[str]:
    """Return the users and groups that a binding names, without groups of the cluster's programs.

    Groups that stand for the file's access are left out: the changes of the access entries report
    who loses what.
    """
    bound = {
        text(subject, "name")
        for subject in objects(binding.body, "subjects")
        if text(subject, "kind") in ("Group", "User")
        and not text(subject, "name").startswith(_SERVICE_ACCOUNTS)
        and not names.is_access_group(text(subject, "name"))
    }
    return frozenset(bound - set(_groups_of_programs(world)) if bound else bound)


def _groups_of_programs(world: World) -> Iterator[str]:
    for key in _entry_keys(world):
        entry = world.properties(key)
        if is_of_a_program(entry):
            yield from map(text_of, sequence(entry, "KubernetesGroups"))
