"""Customer-managed KMS keys, and the statements that their policies need."""

from collections.abc import Mapping
from typing import Literal

from msgspec import field

from ultrascale.frozen import Frozen
from ultrascale.plan.model import KeyUse, PlannedPart

PolicyUse = KeyUse | Literal["buckets"]
"""Uses of a key, by its name in `keys`; `buckets` are existing ones."""


class Plan(PlannedPart):
    """The user's own keys; a use without one gets a key that the stacks make, or AWS's own."""

    arns: Mapping[KeyUse, str]  # ARNs of the keys that the file names, in its own order of uses

    def key(self, use: KeyUse) -> str | None:
        """Return the ARN of the key for ``use``; None where the file names none."""
        return self.arns.get(use)


class KeyAccess(Frozen):
    """A principal that has to be able to use a key."""

    sid: str  # Name of its statement
    who: str  # Its name, for the user
    does: str  # Action that fails without it
    # Kind of the principal. KMS lets a ``role`` in by its IAM policies too where the key's policy
    # leaves the account to IAM; a ``linked`` role of a service and a ``service`` have none.
    kind: Literal["role", "linked", "service"]
    # ARNs of roles, in which a star stands for CloudFormation's suffix, or the host of the service.
    principals: tuple[str, ...]
    actions: tuple[str, ...]  # Actions that it needs at any time
    # Those of them, without wildcards, that it always needs; empty: all.
    least: tuple[str, ...] = ()
    grants: bool = False  # Whether it makes grants for resources of AWS, and no others
    via: str | None = (
        None  # Host of the service that asks KMS in its name; None for several services
    )
    # Further condition keys of each request.
    context: Mapping[str, str] = field(default_factory=dict[str, str])
    certain: bool = True  # Whether AWS documents that it needs them
    source: str  # URL of the statement


class KeyGrantPlan(Frozen):
    """A grant on a key of another account, which a role linked to a service needs."""

    grantee: str  # ARN of the role
    operations: tuple[str, ...]  # Its operations, in the words of KMS
    command: str  # Command that makes the grant, run in the cluster's account


class KeyPolicyPlan(Frozen):
    """Statements that the policy of a key of the file needs."""

    arn: str  # ARN of the key
    uses: tuple[PolicyUse, ...]  # Uses of the key
    owner: str  # Account of the key
    # Whether the cluster is in another account; None where the file does not say.
    foreign: bool | None
    accesses: tuple[KeyAccess, ...]  # Principals that use it
    statements: tuple[Mapping[str, object], ...]  # Statements of its policy that let them in
    grants: tuple[KeyGrantPlan, ...]  # Grants that they need besides
