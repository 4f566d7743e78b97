"""Statements and grants of KMS key policies."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from ultrascale.catalog.tables import Row, read_rows
from ultrascale.parts.keys.model import KeyAccess, KeyGrantPlan
from ultrascale.plan import names
from ultrascale.plan.model import ClusterPlan
from ultrascale.plan.stacks import LayerId, planned_layers

# --- Actions on KMS keys that AWS's services and their calling roles need -------------------------
# A policy that names a missing role is refused, so that statements for roles of the stacks name
# everybody, and hold their ARN, account and service in conditions, as the policies of AWS's own
# managed keys do.
#
# Sources:
#     https://docs.aws.amazon.com/kms/latest/developerguide/key-policy-modifying.html
#     https://docs.aws.amazon.com/kms/latest/developerguide/conditions-kms.html#conditions-kms-via-service


KeyUser = Literal[
    "auto-scaling",
    "spot",
    "karpenter",
    "auto-mode",
    "ebs-csi",
    "hyperpod",
    "eks",
    "fsx",
    "fsx-links",
    "s3-read",
    "s3-write",
    "rds",
    "rds-secret",
    "secrets-manager",
    "ecr",
    "codebuild",
    "logs",
    "sns-services",
    "sns-roles",
    "prometheus",
]
"""Service or program that uses a key."""


class KeyActions(Row, frozen=True, kw_only=True):
    """Actions on a key."""

    user: KeyUser
    """Service or program that needs them."""
    actions: tuple[str, ...]
    """Actions that AWS's page names."""
    least: tuple[str, ...] = ()
    """Actions without which the user fails, if fewer than all; empty: all of them."""
    source: str
    """Page that names the actions."""


def key_actions(user: str) -> KeyActions:
    """Return the actions on a key that ``user`` needs."""
    return _actions()[user]


@cache
def _actions() -> Mapping[str, KeyActions]:
    return {
        row.user: row for row in read_rows(str(Path(__file__).with_name("kms.csv")), KeyActions)
    }


CREATE_GRANT = "kms:CreateGrant"

GRANT_OPERATIONS = (
    "CreateGrant",
    "Decrypt",
    "DescribeKey",
    "Encrypt",
    "GenerateDataKey",
    "GenerateDataKeyWithoutPlaintext",
    "ReEncryptFrom",
    "ReEncryptTo",
)
"""Operations of a grant for a role that launches instances with encrypted volumes.

Source: the page of ``auto-scaling``.
"""

LINKED_ROLES: Mapping[str, str] = MappingProxyType(
    {
        "autoscaling.amazonaws.com": "AWSServiceRoleForAutoScaling",
        "spot.amazonaws.com": "AWSServiceRoleForEC2Spot",
        "s3.data-source.lustre.fsx.amazonaws.com": "AWSServiceRoleForFSxS3Access_fs-*",
    }
)
"""Names of service-linked roles, by their service; FSx makes one for each linked file system."""


# --- Statements and grants of KMS key policies ----------------------------------------------------


DOMAIN = "amazonaws.com"
"""Domain of the hosts of AWS's services."""


class PolicyTarget:
    """The cluster's place, in the words of policies.

    Args:
        plan: The cluster.
        account: Its account.
    """

    def __init__(self, plan: ClusterPlan, account: str) -> None:
        self.plan = plan
        self.account = account
        self.region = plan.region
        self._layers = planned_layers(plan)
        self._arns = f"arn:{plan.partition}:iam::{account}"

    def host(self, service: str) -> str:
        """Return the host of a service in the Region."""
        return f"{service}.{self.region}.{DOMAIN}"

    def arn(self, service: str, resource: str) -> str:
        """Return the ARN of a resource of the account."""
        return f"arn:{self.plan.partition}:{service}:{self.region}:{self.account}:{resource}"

    @property
    def root(self) -> str:
        """ARN of the account."""
        return f"{self._arns}:root"

    @property
    def deployer(self) -> str:
        """Role of CloudFormation, from the CDK's bootstrap."""
        return f"{self._arns}:role/{names.CDK_QUALIFIER}-cfn-exec-role-{self.account}-{self.region}"

    def linked(self, service: str) -> str:
        """Return the ARN of a service-linked role."""
        return f"{self._arns}:role/aws-service-role/{service}/{LINKED_ROLES[service]}"

    def roles(self, layer: LayerId) -> tuple[str, ...]:
        """ARNs of all roles of a layer's stacks."""
        return tuple(
            f"{self._arns}:role/{stack[: names.KEPT_OF_STACK]}*"
            if len(stack) > names.KEPT_OF_STACK
            else f"{self._arns}:role/{stack}-*"
            for stack in self._layers.get(layer, ())
        )


def statements_of(
    target: PolicyTarget, accesses: Iterable[KeyAccess], *, foreign: bool | None
) -> Iterator[Mapping[str, object]]:
    """Yield the statements of a key's policy.

    Args:
        target: The cluster's place.
        accesses: Uses that the statements allow.
        foreign: Whether the key is another account's; None where unknown.
    """
    for access in accesses:
        if access.kind == "linked" and access.grants and foreign:
            # Another account's policy reaches no service-linked role: the account grants it use.
            yield from _grant_statements(target, access)
            continue
        principal, condition = _principal(target, access)
        yield _statement(access.sid, principal, access.actions, condition)
        if access.grants:
            limited = {**condition, "Bool": {"kms:GrantIsForAWSResource": "true"}}
            yield _statement(f"{access.sid}Grants", principal, (CREATE_GRANT,), limited)


def _grant_statements(target: PolicyTarget, access: KeyAccess) -> Iterator[Mapping[str, object]]:
    principal = {"AWS": target.root}
    yield _statement(access.sid, principal, access.actions, {})
    yield _statement(f"{access.sid}Grants", principal, (CREATE_GRANT,), {})


def _principal(
    target: PolicyTarget, access: KeyAccess
) -> tuple[Mapping[str, object], Mapping[str, Mapping[str, object]]]:
    context = _context(access.context)
    if access.kind == "service":
        (host,) = access.principals
        return {"Service": host}, context
    # A policy that names a missing role is refused; a pattern is no name of one.
    if access.kind == "linked" and not any("*" in principal for principal in access.principals):
        return {"AWS": _one_or_all(access.principals)}, context
    equals = {"kms:CallerAccount": target.account}
    if access.via is not None:
        equals["kms:ViaService"] = access.via
    return {"AWS": "*"}, {
        "StringEquals": equals,
        "ArnLike": {"aws:PrincipalArn": _one_or_all(access.principals)},
        **context,
    }


def _context(context: Mapping[str, str]) -> Mapping[str, Mapping[str, object]]:
    operators: dict[str, dict[str, object]] = {}
    for key, value in context.items():
        operators.setdefault("ArnLike" if "*" in value else "StringEquals", {})[key] = value
    return operators


def _one_or_all(values: tuple[str, ...]) -> str | list[str]:
    return values[0] if len(values) == 1 else list(values)


def _statement(
    sid: str,
    principal: Mapping[str, object],
    actions: tuple[str, ...],
    condition: Mapping[str, object],
) -> Mapping[str, object]:
    statement: dict[str, object] = {
        "Sid": sid,
        "Effect": "Allow",
        "Principal": principal,
        "Action": list(actions),
        # In the policy of a key it is the key.
        "Resource": "*",
    }
    return {**statement, "Condition": condition} if condition else statement


def grants_of(
    target: PolicyTarget, arn: str, linked: Iterable[KeyAccess]
) -> Iterator[KeyGrantPlan]:
    """Yield the grants that another account's key needs for service-linked roles."""
    operations = " ".join(GRANT_OPERATIONS)
    for access in linked:
        (grantee,) = access.principals
        yield KeyGrantPlan(
            grantee=grantee,
            operations=GRANT_OPERATIONS,
            command=f"aws kms create-grant --region {target.region} --key-id {arn} "
            f"--grantee-principal {grantee} --operations {operations}",
        )
