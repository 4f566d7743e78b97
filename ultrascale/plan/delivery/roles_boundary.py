"""The permissions boundary of the roles within the stacks: what all of them together may do.

Sources:
    https://docs.aws.amazon.com/IAM/latest/UserGuide/access_policies_boundaries.html
    https://docs.aws.amazon.com/cdk/v2/guide/customize-permissions-boundaries.html
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from ultrascale.catalog.managed_policies import allowed_by
from ultrascale.errors import CatalogError
from ultrascale.plan.delivery.execution_policy import (
    Document,
    ExecutionScope,
    Statement,
    as_document,
)

_POLICIES = ("AWS::IAM::ManagedPolicy", "AWS::IAM::Policy")
_AWS_POLICY = re.compile(r":iam::aws:policy/(?:[\w-]+/)*(\w+)")
# By these, rights are passed on or taken up: a boundary states the very actions.
_IDENTITY = ("iam:", "sts:")
_PASS = "iam:PassRole"
_SERVICE_LINKED = "iam:CreateServiceLinkedRole"


def roles_boundary(templates: Iterable[Mapping[str, Any]], scope: ExecutionScope) -> Document:
    """Return the permissions boundary of the roles in ``templates``.

    They may use the services that their policies name, and hand on roles of the cluster alone. A
    role that a changed template adds has no more, whatever is attached to it.

    Args:
        templates: The templates of the cluster's stacks.
        scope: Where they are deployed.

    Raises:
        CatalogError: No source states what an AWS managed policy of theirs allows.
    """
    allowed = frozenset(_allowed(templates))
    identity = {action for action in allowed if action.startswith(_IDENTITY)}
    services = {f"{action.split(':')[0]}:*" for action in allowed - identity}
    exact = identity - {_PASS, _SERVICE_LINKED}
    statements = [Statement("Allow", "Services", sorted(services), ("*",))]
    if exact:
        statements.append(Statement("Allow", "Identity", sorted(exact), ("*",)))
    if _PASS in identity:
        own = (scope.iam(f"role/{scope.prefix}"),)
        statements.append(Statement("Allow", "OwnRoles", (_PASS,), own))
    if _SERVICE_LINKED in identity:
        linked = (scope.iam("role/aws-service-role/*"),)
        statements.append(Statement("Allow", "ServiceLinkedRoles", (_SERVICE_LINKED,), linked))
    return as_document(statements)


def _allowed(templates: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    unknown: dict[str, None] = {}
    for kind, properties in _resources(templates):
        if kind == "AWS::IAM::Role":
            # An ARN may be joined to its partition, or chosen by a condition.
            for policy in _AWS_POLICY.findall(json.dumps(properties.get("ManagedPolicyArns"))):
                try:
                    yield from allowed_by(policy)
                except CatalogError as error:
                    unknown[str(error)] = None
            for inline in properties.get("Policies", ()):
                yield from _actions(inline["PolicyDocument"])
        elif kind in _POLICIES:
            yield from _actions(properties["PolicyDocument"])
    if unknown:
        raise CatalogError("\n".join(unknown))


def _resources(templates: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for template in templates:
        for body in template.get("Resources", {}).values():
            yield body["Type"], body.get("Properties", {})


def _actions(document: Mapping[str, Any]) -> Iterator[str]:
    for statement in document["Statement"]:
        if statement["Effect"] == "Allow":
            actions = statement["Action"]
            yield from cast("list[str]", actions if isinstance(actions, list) else [actions])
