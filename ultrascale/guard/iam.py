"""Permissions that IAM policies grant and deny, in a form for comparison."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ultrascale.documents import Json, JsonObject, mapping, objects, sequence
from ultrascale.guard.templates import text_of

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

    Source:
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-logic-multiple-context-keys-or-values.html
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
            document = json.loads(text_of(document))
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
    for each in dict.fromkeys(wanted):
        if each not in exact and not any(_includes(other, each) for other in there):
            yield each


def _includes(has: Permission, wanted: Permission) -> bool:
    return (
        has.effect == wanted.effect
        and (has.principal == ANYONE or is_same(has.principal, wanted.principal))
        and all(any(test.follows_from(each) for each in wanted.condition) for test in has.condition)
        and _matches(has.action.lower(), wanted.action.lower())
        and _matches(*_with_one_account(has.resource, wanted.resource))
    )


def _are_among(values: Iterable[str], others: Iterable[str]) -> bool:
    return all(any(is_same(each, other) for other in others) for each in values)


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
