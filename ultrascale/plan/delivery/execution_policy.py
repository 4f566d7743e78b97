"""Policies and permissions boundaries: of CloudFormation's execution role, of the stacks' roles.

Sources:
    https://docs.aws.amazon.com/cdk/v2/guide/bootstrapping-customizing.html
    https://docs.aws.amazon.com/cdk/v2/guide/customize-permissions-boundaries.html
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
    https://docs.aws.amazon.com/fsx/latest/LustreGuide/setting-up.html
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec.structs import replace

from ultrascale.catalog.cloudformation import allowed_by, permissions_of
from ultrascale.documents import JsonObject, Template, mapping, objects, sequence
from ultrascale.errors import CatalogError
from ultrascale.frozen import Frozen
from ultrascale.plan import names

Document = Mapping[str, object]

POLICY_SIZE = 6_144
"""Characters of a managed policy at most; white space does not count."""

POLICIES_PER_ROLE = 10
"""Managed policies of a role, by default."""

_CUSTOM = ("Custom::", "AWS::CloudFormation::CustomResource")
# Types of resources that need no call.
_METADATA = "AWS::CDK::Metadata"
_READ = ("iam:Get", "iam:List")
# The schemas state the former prefix. IAM wants that of the connection's ARN, which may be either.
# Source: https://docs.aws.amazon.com/dtconsole/latest/userguide/rename.html
_FORMER, _RENAMED = "codestar-connections:", "codeconnections:"
_SERVICE_LINKED = "iam:CreateServiceLinkedRole"
# With the right to link a file system to a bucket, FSx makes a role for the file system. Without it
# FSx writes the bucket's policy instead, which the bucket's next deployment undoes.
_LINK = "fsx:CreateDataRepositoryAssociation"
_LINK_ROLES = "role/aws-service-role/s3.data-source.lustre.fsx.amazonaws.com/*"
_MAKE_LINK_ROLES = ("iam:AttachRolePolicy", _SERVICE_LINKED, "iam:PutRolePolicy")
_PEOPLE = ("User", "Group")
_NEVER = (
    *("iam:*AccessKey*", "iam:*Group*", "iam:*LoginProfile*", "iam:*MFADevice*", "iam:*User*"),
    *("iam:*SAMLProvider*", "iam:*AccountPasswordPolicy*", "iam:*AccountAlias*"),
)
_CHANGE_ROLE = (
    *("iam:AttachRolePolicy", "iam:DeleteRole", "iam:DeleteRolePermissionsBoundary"),
    *("iam:DeleteRolePolicy", "iam:DetachRolePolicy", "iam:PutRolePermissionsBoundary"),
    *("iam:PutRolePolicy", "iam:UpdateAssumeRolePolicy"),
)
# A request for them may state a boundary, or is for a role that has one.
# Source: https://docs.aws.amazon.com/service-authorization/latest/reference/list_awsidentityandaccessmanagementiam.html
_GIVE = (
    *("iam:AttachRolePolicy", "iam:CreateRole", "iam:PutRolePermissionsBoundary"),
    "iam:PutRolePolicy",
)
_UNBIND = "iam:DeleteRolePermissionsBoundary"
_CHANGE_POLICY = (
    *("iam:CreatePolicyVersion", "iam:DeletePolicy", "iam:DeletePolicyVersion"),
    "iam:SetDefaultPolicyVersion",
)


_NAMED_BY_IAM = ("role", "policy", "instance-profile")


class Statement(Frozen, kw_only=False):
    """A statement of a policy."""

    effect: Literal["Allow", "Deny"]  # Whether it allows or denies
    sid: str  # Its name
    actions: Sequence[str]  # Actions of IAM
    resources: Sequence[str]  # ARNs, or ``*``
    conditions: Mapping[str, Mapping[str, str]] | None = None  # Conditions by operator and key
    # ARNs outside the statement; with any of them it holds for all others, and ``resources`` is
    # empty.
    besides: Sequence[str] = ()

    def parts(self) -> "Iterator[Statement]":
        """Yield the statement in parts that fit into a policy each, the actions divided."""
        room = POLICY_SIZE - policy_size(as_document([replace(self, actions=())]))
        part: list[str] = []
        taken = 0
        for action in self.actions:
            # Its quotation marks, and a comma.
            length = len(action) + 3
            if part and taken + length > room:
                yield replace(self, actions=part)
                part, taken = [], 0
            part.append(action)
            taken += length
        yield replace(self, actions=part)


class ExecutionScope(Frozen):
    """Scope of the role's deployments."""

    cluster: str  # Name of the cluster, the prefix of its stacks' names
    partition: str  # Partition of the account
    account: str  # Id of the account
    region: str  # The Region
    # Name of the permissions boundary that each role has to have; None without one.
    permissions_boundary: str | None = None

    @property
    def prefix(self) -> str:
        """Prefix of the names of all objects in the stacks; any text may follow."""
        return f"{self.cluster}-"[: names.KEPT_OF_STACK] + "*"

    def policy_name(self, number: int) -> str:
        """Return the name of the execution policy of a number, from 1."""
        return f"{self.cluster}-cdk-execution-{self.region}-{number}"

    @property
    def boundary_name(self) -> str:
        """Name of the permissions boundary."""
        return f"{self.cluster}-cdk-boundary-{self.region}"

    @property
    def bounds_of_roles(self) -> Mapping[str, str]:
        """The condition key of the roles' permissions boundary, with its ARN; empty without one."""
        if self.permissions_boundary is None:
            return {}
        return {"iam:PermissionsBoundary": self.iam(f"policy/{self.permissions_boundary}")}

    def iam(self, resource: str) -> str:
        """Return the ARN of something of IAM in the account."""
        return f"arn:{self.partition}:iam::{self.account}:{resource}"

    def regional(self, service: str, resource: str) -> str:
        """Return the ARN of a resource of a service in the account and Region."""
        return f"arn:{self.partition}:{service}:{self.region}:{self.account}:{resource}"


def execution_policies(
    kinds: Iterable[str], scope: ExecutionScope, allowed: Iterable[str] = ()
) -> tuple[Document, ...]:
    """Return the policies that let CloudFormation deploy resources of ``kinds``.

    The role may change only the cluster's own roles, policies and instance profiles, by their
    names. Other resources have no name before they exist.

    Args:
        kinds: Types of the resources in the templates.
        scope: Scope of their deployments.
        allowed: Actions to allow besides.

    Raises:
        CatalogError: No source states the actions of a type, or the policies are too many for a
            role.
    """
    actions = _actions(kinds) | frozenset(allowed)
    policies = tuple(_full_policies(_statements(actions, scope)))
    if len(policies) > POLICIES_PER_ROLE:
        raise CatalogError(
            f"{len(policies)} policies of {POLICY_SIZE} characters, and a role takes "
            f"{POLICIES_PER_ROLE}; bootstrap with a policy of your own"
        )
    return policies


def boundary(kinds: Iterable[str], scope: ExecutionScope, allowed: Iterable[str] = ()) -> Document:
    """Return the permissions boundary of the role: the services it needs, and no way out of it.

    Args:
        kinds: Types of the resources in the templates.
        scope: Scope of their deployments.
        allowed: Actions to allow besides.

    Raises:
        CatalogError: No source states the actions of a type.
    """
    actions = _actions(kinds) | frozenset(allowed)
    services = {action.split(":")[0] for action in actions} | {"lambda", "s3", "ssm"}
    own = [scope.iam(f"policy/{scope.cluster}-cdk-*")]
    statements = [
        Statement("Allow", "Services", sorted(f"{service}:*" for service in services), ("*",)),
        Statement("Deny", "NoPeople", _NEVER, ("*",)),
        Statement("Deny", "KeepBootstrapRoles", _CHANGE_ROLE, (scope.iam("role/cdk-*"),)),
    ]
    if bounds := scope.bounds_of_roles:
        own += bounds.values()
        # For all policies of the role, now or later.
        other = {"StringNotEquals": bounds}
        statements += [
            Statement("Deny", "RolesHaveABoundary", _GIVE, (), other, (scope.iam(_LINK_ROLES),)),
            Statement("Deny", "RolesKeepTheirs", (_UNBIND,), ("*",)),
        ]
    return as_document([*statements, Statement("Deny", "KeepThesePolicies", _CHANGE_POLICY, own)])


def policy_size(document: Document) -> int:
    """Return the number of characters of a policy that IAM counts."""
    return len(json.dumps(document, separators=(",", ":")))


def _actions(kinds: Iterable[str]) -> frozenset[str]:
    unknown: list[str] = []
    found: set[str] = set()
    for kind in sorted(set(kinds)):
        if kind.startswith(_CUSTOM) or kind == _METADATA:
            continue
        try:
            found |= permissions_of(kind)
        except CatalogError as error:
            unknown.append(str(error))
    if unknown:
        raise CatalogError("\n".join(unknown))
    renamed = {
        _RENAMED + action.removeprefix(_FORMER) for action in found if action.startswith(_FORMER)
    }
    return frozenset(found | renamed)


def _statements(actions: frozenset[str], scope: ExecutionScope) -> Iterator[Statement]:
    iam = {action for action in actions if action.startswith("iam:")}
    reads = {action for action in iam if action.startswith(_READ)}
    writes = {
        action
        for action in iam - reads - {_SERVICE_LINKED}
        if not any(word in action for word in _PEOPLE)
    }
    assets = f"arn:{scope.partition}:s3:::cdk-*-assets-{scope.account}-{scope.region}/*"
    function = scope.regional("lambda", f"function:{scope.prefix}")
    parameters = (
        scope.regional("ssm", "parameter/cdk-bootstrap/*"),
        # AWS's own, in no account: releases of machine images.
        f"arn:{scope.partition}:ssm:{scope.region}::parameter/aws/service/*",
    )
    yield Statement("Allow", "Parameters", ("ssm:GetParameters",), parameters)
    yield Statement("Allow", "Assets", ("s3:GetObject",), (assets,))
    yield Statement("Allow", "CustomResources", ("lambda:InvokeFunction",), (function,))
    if writes:
        named = [scope.iam(f"{kind}/{scope.prefix}") for kind in _NAMED_BY_IAM]
        if bounds := scope.bounds_of_roles:
            given = sorted(writes & {*_GIVE})
            yield Statement("Allow", "BoundedRoles", given, named[:1], {"StringEquals": bounds})
            writes -= {*_GIVE, _UNBIND}
        yield Statement("Allow", "OwnRoles", sorted(writes), named)
    if any(action.startswith("codepipeline:") for action in actions):
        # A pipeline deploys by these roles; given to any other service, they trust it not.
        bootstrap = f"arn:{scope.partition}:iam::*:role/cdk-*"
        yield Statement("Allow", "RolesOfActions", ("iam:PassRole",), (bootstrap,))
    if _SERVICE_LINKED in iam:
        linked = scope.iam("role/aws-service-role/*")
        yield Statement("Allow", "ServiceLinkedRoles", (_SERVICE_LINKED,), (linked,))
    if _LINK in actions:
        yield Statement("Allow", "LinkedStorage", _MAKE_LINK_ROLES, (scope.iam(_LINK_ROLES),))
        objects = (f"arn:{scope.partition}:s3:::{scope.prefix}",)
        yield Statement("Allow", "LinkedObjects", ("s3:Get*", "s3:List*", "s3:PutObject"), objects)
    if reads:
        yield Statement("Allow", "ReadRoles", sorted(reads), ("*",))
    yield Statement("Allow", "Resources", sorted(actions - iam), ("*",))


def _full_policies(statements: Iterable[Statement]) -> Iterator[Document]:
    """Yield policies with all of ``statements``, each as full as IAM allows."""
    held: list[Statement] = []
    for part in (part for statement in statements for part in statement.parts()):
        if held and policy_size(as_document([*held, part])) > POLICY_SIZE:
            yield as_document(held)
            held = []
        held.append(part)
    if held:
        yield as_document(held)


def as_document(statements: Iterable[Statement]) -> Document:
    """Return the policy of some statements."""
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": statement.sid,
                "Effect": statement.effect,
                "Action": [*statement.actions],
                **(
                    {"NotResource": [*statement.besides]}
                    if statement.besides
                    else {"Resource": [*statement.resources]}
                ),
                **({"Condition": statement.conditions} if statement.conditions else {}),
            }
            for statement in statements
        ],
    }


# --- The permissions boundary of the roles in the stacks: the rights of all of them together ------
# Sources:
#     https://docs.aws.amazon.com/IAM/latest/UserGuide/access_policies_boundaries.html
#     https://docs.aws.amazon.com/cdk/v2/guide/customize-permissions-boundaries.html


_POLICIES = ("AWS::IAM::ManagedPolicy", "AWS::IAM::Policy")
_AWS_POLICY = re.compile(r":iam::aws:policy/(?:[\w-]+/)*(\w+)")
# By these actions rights are passed on or taken up: a boundary states the very actions.
_IDENTITY = ("iam:", "sts:")
_PASS = "iam:PassRole"


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
                yield from _boundary_actions(mapping(inline, "PolicyDocument"))
        elif kind in _POLICIES:
            yield from _boundary_actions(mapping(properties, "PolicyDocument"))
    if unknown:
        raise CatalogError("\n".join(unknown))


def _resources(templates: Iterable[Template]) -> Iterator[tuple[str, JsonObject]]:
    for template in templates:
        for body in template.get("Resources", {}).values():
            yield body["Type"], body.get("Properties", {})


def _boundary_actions(document: JsonObject) -> Iterator[str]:
    for statement in objects(document, "Statement"):
        if statement["Effect"] == "Allow":
            actions = statement["Action"]
            yield from [actions] if isinstance(actions, str) else map(str, sequence(actions))
