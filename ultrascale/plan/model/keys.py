"""Customer-managed KMS keys, and the statements that their policies need."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

KeyUse = Literal["volumes", "secrets", "storage", "registry", "logs", "buckets"]
"""Things that a key encrypts, by its name in `keys`; `buckets` are those that exist already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeysPlan:
    """ARNs of the user's own keys; None: a key that the stacks make, or AWS's own.

    Attributes:
        volumes: Key of the nodes' EBS volumes.
        secrets: Key of the Kubernetes API's data.
        storage: Key of file systems, buckets and the backend's database.
        registry: Key of ECR repositories.
        logs: Key of log groups, HyperPod's metrics and the topic of alarms.
    """

    volumes: str | None
    secrets: str | None
    storage: str | None
    registry: str | None
    logs: str | None

    @property
    def stated(self) -> Mapping[KeyUse, str]:
        """The keys that the file names, by their use."""
        arns: dict[KeyUse, str | None] = {
            "volumes": self.volumes,
            "secrets": self.secrets,
            "storage": self.storage,
            "registry": self.registry,
            "logs": self.logs,
        }
        return {use: arn for use, arn in arns.items() if arn is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyAccess:
    """A principal that has to be able to use a key.

    Attributes:
        sid: Name of its statement.
        who: Its name, for the user.
        does: Action that fails without it.
        kind: What it is. KMS lets a ``role`` in by its IAM policies too where the key's policy
            leaves the account to IAM; a ``linked`` role of a service and a ``service`` have none.
        principals: ARNs of roles, in which a star stands for what CloudFormation appends, or the
            host of the service.
        actions: Actions that it needs at any time.
        least: Those of them, without wildcards, that nothing works without; empty: all.
        grants: Whether it makes grants for resources of AWS, and no others.
        via: Host of the service that asks KMS in its name; None where several do.
        context: Further condition keys, as each request has them.
        certain: Whether AWS states that it needs them.
        source: URL of the statement.
    """

    sid: str
    who: str
    does: str
    kind: Literal["role", "linked", "service"]
    principals: tuple[str, ...]
    actions: tuple[str, ...]
    least: tuple[str, ...] = ()
    grants: bool = False
    via: str | None = None
    context: Mapping[str, str] = field(default_factory=dict[str, str])
    certain: bool = True
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyGrantPlan:
    """A grant on a key of another account, which a role linked to a service needs.

    Attributes:
        grantee: ARN of the role.
        operations: What it may do, in the words of KMS.
        command: Command that makes the grant, run in the cluster's account.
    """

    grantee: str
    operations: tuple[str, ...]
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPolicyPlan:
    """Statements that the policy of a key of the file needs.

    Attributes:
        arn: ARN of the key.
        uses: What it encrypts.
        owner: Account of the key.
        foreign: Whether the cluster is in another account; None where the file does not say.
        accesses: Principals that use it.
        statements: Statements of its policy that let these in.
        grants: Grants that they need besides.
    """

    arn: str
    uses: tuple[KeyUse, ...]
    owner: str
    foreign: bool | None
    accesses: tuple[KeyAccess, ...]
    statements: tuple[Mapping[str, object], ...]
    grants: tuple[KeyGrantPlan, ...]
