"""The permissions boundary of the roles in the stacks: the rights of all of them together.

Sources:
    https://docs.aws.amazon.com/IAM/latest/UserGuide/access_policies_boundaries.html
    https://docs.aws.amazon.com/cdk/v2/guide/customize-permissions-boundaries.html
"""

import json
import re
from collections.abc import Iterable, Iterator

from ultrascale.catalog.managed_policies import allowed_by
from ultrascale.documents import JsonObject, Template, mapping, objects, sequence
from ultrascale.errors import CatalogError
from ultrascale.plan.delivery.execution_policy import (
    Document,
    ExecutionScope,
    Statement,
    as_document,
)

_POLICIES = ("AWS::IAM::ManagedPolicy", "AWS::IAM::Policy")
_AWS_POLICY = re.compile(r":iam::aws:policy/(?:[\w-]+/)*(\w+)")
# By these actions rights are passed on or taken up: a boundary states the very actions.
_IDENTITY = ("iam:", "sts:")
_PASS = "iam:PassRole"
_SERVICE_LINKED = "iam:CreateServiceLinkedRole"


def roles_boundary(templates: Iterable[Template], scope: ExecutionScope) -> Document:
    """Return the permissions boundary of the roles in ``templates``.

    They may use the services that their policies name, and hand on roles of the cluster alone. A
    role that a changed template adds has no more, whatever is attached to it.

    Args:
        templates: The templates of the cluster's stacks.
        scope: Scope of their deployments.

    Raises:
        CatalogError: No source states the rights of an AWS managed policy in them.
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


def _allowed(templates: Iterable[Template]) -> Iterator[str]:
    unknown: dict[str, None] = {}
    for kind, properties in _resources(templates):
        if kind == "AWS::IAM::Role":
            # An ARN may be joined to its partition, or chosen by a condition.
            for policy in _AWS_POLICY.findall(json.dumps(properties.get("ManagedPolicyArns"))):
                try:
                    yield from allowed_by(policy)
                except CatalogError as error:
                    unknown[str(error)] = None
            for inline in objects(properties, "Policies"):
                yield from _actions(mapping(inline, "PolicyDocument"))
        elif kind in _POLICIES:
            yield from _actions(mapping(properties, "PolicyDocument"))
    if unknown:
        raise CatalogError("\n".join(unknown))


def _resources(templates: Iterable[Template]) -> Iterator[tuple[str, JsonObject]]:
    for template in templates:
        for body in template.get("Resources", {}).values():
            yield body["Type"], body.get("Properties", {})


def _actions(document: JsonObject) -> Iterator[str]:
    for statement in objects(document, "Statement"):
        if statement["Effect"] == "Allow":
            actions = statement["Action"]
            yield from [actions] if isinstance(actions, str) else map(str, sequence(actions))
