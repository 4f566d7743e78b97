"""Permissions of IAM policies, in a form for comparison, and rights that leave roles in use."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ultrascale.documents import Json, JsonObject, mapping, objects, parse_json, sequence
from ultrascale.guard.judging import trusted_services
from ultrascale.guard.model import Change, Harm
from ultrascale.guard.replacement import Worlds, change_of
from ultrascale.guard.templates import Key, World, references, text_of

ANYONE = "AWS *"
"""`Permission.principal` of a permission that everybody has."""

# Operators that hold for any value of a list: a longer list lets more requests in.
_ONE_OF = frozenset(
    {
        "arnequals",
        "arnlike",
        "ipaddress",
        "stringequals",
        "stringequalsignorecase",
        "stringlike",
    }
)
_ACCOUNT = "<AWS::AccountId>"
_NUMBER = re.compile(r"(?<![0-9])[0-9]{12}(?![0-9])")


class Test(NamedTuple):
    """One test of a condition; a condition holds if all of its tests hold.

    Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-logic-multiple-context-keys-or-values.html
    """

    operator: str  # Its operator, in lower case
    key: str  # Its key, in lower case
    values: frozenset[str]  # Its values

    @property
    def is_positive(self) -> bool:
        """Return whether the test holds only for the values of its list."""
        return self.operator.rpartition(":")[2].removesuffix("ifexists") in _ONE_OF

    def follows_from(self, other: "Test") -> bool:
        """Return whether every request that passes ``other`` passes this test."""
        if (self.operator, self.key) != (other.operator, other.key):
            return False
        return _are_among(other.values, self.values) and (
            self.is_positive or _are_among(self.values, other.values)
        )


class Permission(NamedTuple):
    """One action on one resource for one principal."""

    effect: str  # ``Allow`` or ``Deny``
    principal: str  # Kind and name of its holder; empty in the policy of an identity
    action: str  # The action; wildcards match
    resource: str  # The resource; wildcards match. Empty where the policy names none
    condition: frozenset[Test]  # The tests of its condition; empty without one


def permissions(document: Json) -> Iterator[Permission]:
    """Yield the permissions of a policy document in the form of `World.value`, or of its text."""
    for statement in _statements(document):
        condition = frozenset(_tests(statement.get("Condition")))
        for principal in _principals(statement.get("Principal")) or ("",):
            for action in _members(statement, "Action"):
                for resource in _members(statement, "Resource") or ("",):
                    yield Permission(
                        effect=text_of(statement.get("Effect", "Allow")),
                        principal=principal,
                        action=action,
                        resource=resource,
                        condition=condition,
                    )


def _statements(document: Json) -> Iterator[JsonObject]:
    if document is not None and "Statement" not in mapping(document):
        try:
            document = parse_json(text_of(document))
        except json.JSONDecodeError:
            return
    stated = mapping(document).get("Statement")
    yield from [stated] if isinstance(stated, Mapping) else objects(document, "Statement")


def _tests(condition: Json) -> Iterator[Test]:
    for operator, keys in mapping(condition).items():
        if not isinstance(keys, Mapping):
            # A CloudFormation function yields the policy.
            yield Test(operator, "", frozenset({text_of(keys)}))
        for key, values in mapping(keys).items():
            yield Test(operator.lower(), key.lower(), frozenset(_texts(values)))


def permissions_beyond(
    wanted: Iterable[Permission], held: Iterable[Permission]
) -> Iterator[Permission]:
    """Yield the permissions of ``wanted`` that no permission of ``held`` includes."""
    there = list(dict.fromkeys(held))
    exact = frozenset(there)
    for permission in dict.fromkeys(wanted):
        if permission not in exact and not any(_includes(other, permission) for other in there):
            yield permission


def _includes(has: Permission, wanted: Permission) -> bool:
    return (
        has.effect == wanted.effect
        and (has.principal == ANYONE or is_same(has.principal, wanted.principal))
        and all(any(test.follows_from(each) for each in wanted.condition) for test in has.condition)
        and _matches(has.action.lower(), wanted.action.lower())
        and _matches(*_with_one_account(has.resource, wanted.resource))
    )


def _are_among(values: Iterable[str], others: Iterable[str]) -> bool:
    return all(any(is_same(value, other) for other in others) for value in values)


def is_same(one: str, other: str) -> bool:
    """Return whether two names mean the same resource; one of them may lack the account."""
    first, second = _with_one_account(one, other)
    return first == second


def _with_one_account(one: str, other: str) -> tuple[str, str]:
    """Return both texts with one spelling of the account, if only one text has its number.

    A template has the number of the account if the cluster file says it.
    """
    if (_ACCOUNT in one) != (_ACCOUNT in other):
        return _NUMBER.sub(_ACCOUNT, one), _NUMBER.sub(_ACCOUNT, other)
    return one, other


def _matches(pattern: str, name: str) -> bool:
    """Return whether an IAM pattern matches ``name``; if that is a pattern, all that it matches."""
    if pattern == name:
        return True
    expression = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(expression, name) is not None


def _members(statement: JsonObject, key: str) -> list[str]:
    """Return the actions or resources of a statement; ``Not…`` counts as one pattern of its own."""
    others = statement.get(f"Not{key}")
    if others is not None:
        return [f"all but {text_of(others)}"]
    return _texts(statement.get(key))


def _principals(stated: Json) -> list[str]:
    if isinstance(stated, str):
        return [f"AWS {stated}"]
    return [f"{kind} {name}" for kind, value in mapping(stated).items() for name in _texts(value)]


def _texts(value: Json) -> list[str]:
    if value is None:
        return []
    return [*map(text_of, sequence(value))] if isinstance(value, list) else [text_of(value)]


# --- Rights that leave the roles of running nodes, pods and functions -----------------------------


ROLE = "AWS::IAM::Role"
MANAGED_POLICY = "AWS::IAM::ManagedPolicy"
_POLICIES = (MANAGED_POLICY, "AWS::IAM::Policy", "AWS::IAM::RolePolicy")
_FUNCTIONS = "functions"
_USERS = {
    "ec2.amazonaws.com": "nodes",
    "lambda.amazonaws.com": _FUNCTIONS,
    "pods.eks.amazonaws.com": "pods",
    "sagemaker.amazonaws.com": "nodes",
}
_ALL_OF_POLICY = "all of the policy"
_MOST_RESOURCES, _MOST_ACTIONS = 4, 4
# A copy of an object onto itself rewrites the object.
_OF_KEYS = (
    "keep the right until nothing needs it: what a key of KMS encrypted stays encrypted by it "
    "until somebody writes it anew, as `aws s3 cp s3://BUCKET/ s3://BUCKET/ --recursive "
    "--sse aws:kms --sse-kms-key-id KEY` does; then name the role"
)

_Held = Mapping[Key, Sequence[Permission]]


def with_rights(changes: Iterable[Change], worlds: Worlds) -> Iterator[Change]:
    """Yield ``changes``, and a change of each role in use that stays but loses rights.

    Args:
        changes: Changes of resources; one that is protected already stays as it is.
        worlds: Both sides.
    """
    all_changes = list(changes)
    gone = {
        f"<{change.stack}.{change.logical_id}{end}"
        for change in all_changes
        if change.action == "deleted"
        for end in (".", ">")
    }
    lost = dict(_lost_rights(worlds, gone))
    for change in all_changes:
        harm = lost.pop((change.stack, change.logical_id), None)
        yield change if harm is None or change.lost else change.harmed(harm)
    for key, harm in lost.items():
        yield change_of(key, worlds.new, "updated").harmed(harm)


def _lost_rights(worlds: Worlds, gone: set[str]) -> Iterator[tuple[Key, Harm]]:
    """Yield the roles that lose rights, apart from rights to resources that are ``gone``."""
    old, new = worlds.old, worlds.new
    # A stack that left the file keeps its policies for a role.
    left = _role_permissions(old, [stack for stack in old.templates if stack not in new.templates])
    before, after = _role_permissions(old, old.templates), _role_permissions(new, new.templates)
    for key in worlds.standing():
        if old.type_of(key) != ROLE or before.get(key) == after.get(key):
            continue
        services = trusted_services(old.properties(key))
        users = sorted({_USERS[service] for service in services if service in _USERS})
        if users == [_FUNCTIONS] and _is_renewed(key, worlds):
            continue
        if not users:
            continue
        had, has = before.get(key, ()), (*after.get(key, ()), *left.get(key, ()))
        lost = [
            each for each in _withdrawn(had, has) if not any(mark in each.resource for mark in gone)
        ]
        if lost:
            yield key, _harm(users, lost)


def _withdrawn(had: Sequence[Permission], has: Sequence[Permission]) -> Iterator[Permission]:
    """Yield what is no longer allowed, then what is denied anew."""
    yield from (each for each in permissions_beyond(had, has) if each.effect == "Allow")
    yield from (each for each in permissions_beyond(has, had) if each.effect == "Deny")


def _is_renewed(role: Key, worlds: Worlds) -> bool:
    """Return whether every function that uses a role gets new code, which may need fewer rights."""
    codes = [
        [side.properties(key).get("Code") for side in (worlds.old, worlds.new)]
        for key in worlds.standing()
        if worlds.new.type_of(key) == "AWS::Lambda::Function"
        for reference in references(worlds.new.properties(key).get("Role"))
        if reference.resource == role
    ]
    return bool(codes) and all(before != after for before, after in codes)


def _role_permissions(world: World, stacks: Iterable[str]) -> _Held:
    """Return the permissions that policies in ``stacks`` give the roles of all stacks."""
    held: dict[Key, list[Permission]] = {}
    for stack in stacks:
        for logical_id, body in world.resources(stack).items():
            key = (stack, logical_id)
            if body["Type"] == ROLE:
                held.setdefault(key, []).extend(_permissions_of_role(world, key))
            elif body["Type"] in _POLICIES:
                values = world.properties(key)
                attached = (values.get("Roles"), values.get("RoleName"))
                for role in {each.resource for value in attached for each in references(value)}:
                    held.setdefault(role, []).extend(permissions(values.get("PolicyDocument")))
    return held


def _permissions_of_role(world: World, role: Key) -> Iterator[Permission]:
    values = world.properties(role)
    for policy in objects(values, "Policies"):
        yield from permissions(policy.get("PolicyDocument"))
    for arn in sequence(values, "ManagedPolicyArns"):
        policies = [
            reference.resource
            for reference in references(arn)
            if world.type_of(reference.resource) == MANAGED_POLICY
        ]
        for policy in policies:
            yield from permissions(world.properties(policy).get("PolicyDocument"))
        if not policies:
            yield Permission("Allow", "", _ALL_OF_POLICY, text_of(arn), frozenset())


def _harm(users: Sequence[str], lost: Sequence[Permission]) -> Harm:
    by_resource: dict[str, list[str]] = {}
    for each in lost:
        denied = "not to be denied " if each.effect == "Deny" else ""
        actions = by_resource.setdefault(each.resource, [])
        if f"{denied}{each.action}" not in actions:
            actions.append(f"{denied}{each.action}")
    told = [f"{_shortened_list(actions)} on {name}" for name, actions in by_resource.items()]
    more = f"; and {len(told) - _MOST_RESOURCES} resources more" * (len(told) > _MOST_RESOURCES)
    return Harm(
        verdict="cuts running pods off" if "pods" in users else "cuts running nodes off",
        lost=f"rights of {' and '.join(users)} that run: {'; '.join(told[:_MOST_RESOURCES])}{more}",
        instead=_OF_KEYS
        if any(each.action.lower().startswith(("kms:", "*")) for each in lost)
        else f"end the {' and '.join(users)} that use it first, then name the role",
    )


def _shortened_list(actions: Sequence[str]) -> str:
    more = len(actions) - _MOST_ACTIONS
    return ", ".join(actions[:_MOST_ACTIONS]) + (f" and {more} more" if more > 0 else "")
