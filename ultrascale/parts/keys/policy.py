"""Judgement of a KMS key's policy and grants: who may use the key, and unclear cases.

Source: https://docs.aws.amazon.com/kms/latest/developerguide/policy-evaluation.html
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from ultrascale.documents import Json, as_list, look_up, mapping, text
from ultrascale.findings import Issue, State
from ultrascale.parts.keys import statements
from ultrascale.parts.keys.model import KeyAccess

if TYPE_CHECKING:
    from mypy_boto3_kms.type_defs import GrantListEntryTypeDef as Grant

_PREFIX = "kms:"
# KMS sends it with these requests alone.
_GRANT_ACTIONS = frozenset({statements.CREATE_GRANT, "kms:ListGrants", "kms:RevokeGrant"})
_FOR_AWS = "kms:grantisforawsresource"
_LIKE = frozenset(
    {"stringequals", "stringequalsignorecase", "stringlike", "arnequals", "arnlike", "bool"}
)


class KeyPolicy:
    """The policy and the grants of one key.

    Args:
        document: The policy.
        grants: Grants on the key.
        account: The cluster's account.
        delegates: Whether roles of the cluster have policies of their own for the key, so that a
            statement for the whole account lets them in.
    """

    def __init__(
        self, document: Json, grants: "Sequence[Grant]", *, account: str, delegates: bool
    ) -> None:
        self._statements = as_list(look_up(document, "Statement"))
        self._grants = grants
        self._account = account
        self._delegates = delegates

    def issues(self, access: KeyAccess, *, fix: str) -> Iterator[Issue]:
        """Yield the issue that a principal may not use the key.

        Args:
            access: The principal.
            fix: Remedy that lets it in.
        """
        missing, unclear = self._missing(access)
        missing -= granted(access, self._grants)
        if not missing:
            return
        state: State = "fail" if access.certain and not unclear else "warn"
        doubt = ", unless a statement with other conditions allows it" if unclear else ""
        yield Issue(
            state=state,
            evidence=f"{access.who} may not use the key ({', '.join(sorted(missing))}){doubt}: "
            f"{access.does}",
            fix=fix,
        )

    def _missing(self, access: KeyAccess) -> tuple[set[str], bool]:
        """Return the actions that the policy does not allow, and whether all of it is unclear."""
        missing, denied = set(needed(access)), set[str]()
        unclear: set[str] = set()
        for statement in self._statements:
            denies = text(statement, "Effect") == "Deny"
            if not self._names(statement, access, denies=denies):
                continue
            for action in needed(access):
                if not _has(statement, action):
                    continue
                holds = self._holds(statement, access, action)
                if holds is None and not denies:
                    unclear.add(action)
                elif holds and denies:
                    denied.add(action)
                elif holds:
                    missing.discard(action)
        return missing | denied, not (missing - unclear) and not denied

    def _names(self, statement: Json, access: KeyAccess, *, denies: bool) -> bool:
        """Return whether a statement names a principal.

        A statement for the account leaves it to IAM: no policy there lets a service or its linked
        role in.
        """
        principal = look_up(statement, "Principal")
        if principal == "*" or _excluded(statement) is not None:
            return True
        if access.kind == "service":
            named = [service for service in as_list(look_up(principal, "Service"))]
            return any(service in access.principals for service in named)
        through_iam = self._delegates and access.kind == "role"
        return any(
            arn == "*"
            or (isinstance(arn, str) and _matches(arn, access.principals))
            or ((through_iam or denies) and self._is_account(arn))
            for arn in as_list(look_up(principal, "AWS"))
        )

    def _is_account(self, principal: Json) -> bool:
        if not isinstance(principal, str):
            return False
        return principal == self._account or principal.endswith(f"::{self._account}:root")

    def _holds(self, statement: Json, access: KeyAccess, action: str) -> bool | None:
        """Return whether a statement's conditions hold for a request; None where it is unclear."""
        # The excluded principals would have to be compared by their sessions as well.
        unclear = _excluded(statement) is not None
        for operator, tests in mapping(statement, "Condition").items():
            for key, wanted in mapping(tests).items():
                holds = self._tested(operator.lower(), key.lower(), wanted, access, action)
                if holds is False:
                    return False
                unclear = unclear or holds is None
        return None if unclear else True

    def _tested(
        self, operator: str, key: str, wanted: Json, access: KeyAccess, action: str
    ) -> bool | None:
        name = operator.removesuffix("ifexists").removeprefix("foranyvalue:")
        if key == _FOR_AWS and action not in _GRANT_ACTIONS:
            return operator.endswith("ifexists")
        values = self._context(access).get(key)
        if values is None:
            return None
        alike = any(_matches(str(value).lower(), values) for value in as_list(wanted))
        if name in _LIKE:
            return alike
        if name in {"stringnotequals", "stringnotlike", "arnnotequals", "arnnotlike"}:
            return not alike
        return None

    def _context(self, access: KeyAccess) -> Mapping[str, tuple[str, ...]]:
        """Return the condition keys of a request, in lower case, as far as they are known."""
        context: dict[str, tuple[str, ...]] = {
            key.lower(): (value.lower(),) for key, value in access.context.items()
        }
        if access.grants:
            context[_FOR_AWS] = ("true",)
        if access.kind == "service":
            return context
        context["kms:calleraccount"] = context["aws:principalaccount"] = (self._account,)
        context["aws:principalarn"] = tuple(principal.lower() for principal in access.principals)
        if access.via is not None:
            context["kms:viaservice"] = (access.via.lower(),)
        return context


def needed(access: KeyAccess) -> tuple[str, ...]:
    """Return the actions, without wildcards, that a principal needs."""
    grant = (statements.CREATE_GRANT,) if access.grants else ()
    return (*(access.least or access.actions), *grant)


def granted(access: KeyAccess, grants: "Iterable[Grant]") -> set[str]:
    """Return the actions that grants allow a principal."""
    return {
        f"{_PREFIX}{operation}"
        for grant in grants
        if _matches(grant.get("GranteePrincipal", ""), access.principals)
        for operation in grant.get("Operations", ())
    }


def _matches(value: str, patterns: Iterable[str]) -> bool:
    """Return whether a value of a policy, which may be a pattern, means one of our names.

    A star of ours stands for CloudFormation's suffix.
    """
    return any(fnmatchcase(value, pattern) or fnmatchcase(pattern, value) for pattern in patterns)


def _excluded(statement: Json) -> Json:
    """Return the principals that a statement excludes, None where it names its own."""
    return look_up(statement, "NotPrincipal")


def _has(statement: Json, action: str) -> bool:
    besides = as_list(look_up(statement, "NotAction"))
    listed = any(
        isinstance(name, str) and fnmatchcase(action.lower(), name.lower())
        for name in besides or as_list(look_up(statement, "Action"))
    )
    return not listed if besides else listed
