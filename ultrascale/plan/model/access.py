"""Rights in the cluster: entries of people in EKS, and what RBAC adds for kinds of jobs."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class RightPlan:
    """Rights of the Kubernetes API.

    Attributes:
        group: API group; empty for the core.
        resources: Resources of the group, in the plural.
        verbs: What may be done to them.
        names: The only objects that it may be done to; empty means all.
    """

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessPolicyPlan:
    """An access policy of EKS, with its scope.

    Attributes:
        name: EKS's name of the policy.
        namespaces: Namespaces that it holds in; empty: in the whole cluster.
        sends_to: Queues that jobs may name, ``any`` for all of them; empty: it sends no jobs.
    """

    name: str
    namespaces: tuple[str, ...]
    sends_to: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessEntryPlan:
    """The access entry of an IAM role.

    Attributes:
        role: Its ARN.
        policies: What EKS allows it.
        groups: Kubernetes groups that it is in, to which RBAC allows more.
    """

    role: str
    policies: tuple[AccessPolicyPlan, ...]
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRolePlan:
    """A ClusterRole.

    Attributes:
        name: Its name.
        rights: What it allows.
    """

    name: str
    rights: tuple[RightPlan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupBindingPlan:
    """A binding of Kubernetes groups to a ClusterRole.

    Attributes:
        role: Name of the ClusterRole, and of the binding.
        namespace: Namespace that it holds in; None: the whole cluster.
        groups: The groups.
    """

    role: str
    namespace: str | None
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueAccessPlan:
    """Bounds of roles that may send jobs to queues of theirs alone.

    Attributes:
        engine: Whose queues they are.
        namespaces: Namespaces in which such roles send jobs.
        resources: Accelerators, by their resources: what asks for one waits in a queue.
        services: Whether services wait in them too.
        scaled: Whether replicas of such services follow the load.
        routed: Whether such services are reached by the front.
    """

    engine: Literal["kueue", "volcano"]
    namespaces: tuple[str, ...]
    resources: tuple[str, ...]
    services: bool
    scaled: bool
    routed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessPlan:
    """Rights of people in the cluster.

    Attributes:
        entries: Access entries, one for each role in the order of the file, administrators first.
        roles: ClusterRoles of their groups.
        bindings: Bindings of these, but those in namespaces of teams.
        team_bindings: Bindings in namespaces of teams, which task governance makes.
        queues: Bounds of roles with queues of their own; None where no role has.
    """

    entries: tuple[AccessEntryPlan, ...]
    roles: tuple[ClusterRolePlan, ...]
    bindings: tuple[GroupBindingPlan, ...]
    team_bindings: tuple[GroupBindingPlan, ...]
    queues: QueueAccessPlan | None
