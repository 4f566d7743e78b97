"""Rights in the cluster: people's entries in EKS, and RBAC's additions for kinds of jobs."""

from ultrascale.frozen import Frozen


class RightPlan(Frozen):
    """Rights of the Kubernetes API."""

    group: str  # API group; empty for the core
    resources: tuple[str, ...]  # Resources of the group, in the plural
    verbs: tuple[str, ...]  # Verbs on them
    names: tuple[str, ...] = ()  # Names of the only objects; empty means all


class AccessPolicyPlan(Frozen):
    """An access policy of EKS, with its scope."""

    name: str  # EKS's name of the policy
    namespaces: tuple[str, ...]  # Namespaces of its rights; empty: the whole cluster
    # Queues that jobs may name, ``any`` for all of them; empty: it sends no jobs.
    sends_to: tuple[str, ...]


class AccessEntryPlan(Frozen):
    """The access entry of an IAM role."""

    role: str  # Its ARN
    policies: tuple[AccessPolicyPlan, ...]  # Its access policies
    groups: tuple[str, ...]  # Its Kubernetes groups, to which RBAC allows more


class ClusterRolePlan(Frozen):
    """A ClusterRole."""

    name: str  # Its name
    rights: tuple[RightPlan, ...]  # Its rights


class GroupBindingPlan(Frozen):
    """A binding of Kubernetes groups to a ClusterRole."""

    role: str  # Name of the ClusterRole, and of the binding
    namespace: str | None  # Namespace of the binding; None: the whole cluster
    groups: tuple[str, ...]  # The groups


class QueueAccessPlan(Frozen):
    """Bounds of roles that may send jobs to their own queues alone."""

    engine: str  # The part that has the queues
    namespaces: tuple[str, ...]  # Namespaces in which such roles send jobs
    # Resources of accelerators: a pod that asks for one waits in a queue.
    resources: tuple[str, ...]
    services: bool  # Whether services wait in them too
    scaled: bool  # Whether replicas of such services follow the load
    routed: bool  # Whether requests come to such services by routes
    ray: bool = False  # Whether jobs of Ray wait in them


class AccessPlan(Frozen):
    """Rights of people in the cluster."""

    # Access entries, one for each role in the order of the file, administrators first.
    entries: tuple[AccessEntryPlan, ...]
    roles: tuple[ClusterRolePlan, ...]  # ClusterRoles of their groups
    bindings: tuple[GroupBindingPlan, ...]  # Bindings of these, in namespaces of teams as well
    # Bounds of roles with queues of their own; None where no role has one.
    queues: QueueAccessPlan | None
    # Namespaces whose pods may read nodes, to have ranks in the network's order.
    node_readers: tuple[str, ...] = ()
