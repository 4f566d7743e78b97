"""Rights of people: entries of EKS, and ClusterRoles for the kinds that its policies leave out.

EKS's access policies name API groups of Kubernetes itself alone: a role with `AmazonEKSEditPolicy`
can make a Job, and neither make nor see a Volcano Job. An access entry may have Kubernetes groups
beside its policies, so each level has a group of its own in each namespace, with a ClusterRole for
those kinds.

Sources:
    https://docs.aws.amazon.com/eks/latest/userguide/access-policy-permissions.html
    https://docs.aws.amazon.com/eks/latest/userguide/creating-access-entries.html
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType

from ultrascale import config
from ultrascale.catalog import eks
from ultrascale.core.engine import engine_of
from ultrascale.frozen import Frozen
from ultrascale.plan import capacity, names
from ultrascale.plan.jobs.controllers import controllers_of_jobs, queue_kinds_of
from ultrascale.plan.model import (
    AccessEntryPlan,
    AccessPlan,
    AccessPolicyPlan,
    ClusterRolePlan,
    GroupBindingPlan,
    PoolPlan,
    QueueAccessPlan,
    RightPlan,
)
from ultrascale.plan.namespaces import (
    HTTP_ROUTE_KIND,
    LEADER_WORKER_SET_KIND,
    SCALED_OBJECT_KIND,
    kinds_of_services,
    plan_namespaces,
    queued_namespaces,
    training_namespaces,
)
from ultrascale.plan.rules import rule

Mistakes = Iterator[config.Mistake]

_READ = ("get", "list", "watch")
# The verbs of EKS's policy for editing Jobs.
_WRITE = ("create", "delete", "deletecollection", "patch", "update")
# Namespaces of every cluster.
_KUBERNETES_OWN = ("default", names.SYSTEM_NAMESPACE)
_ANY_QUEUE = "any"
# Groups of kinds of services whose queues admission policies judge.
_QUEUED = frozenset({"leaderworkerset.x-k8s.io"})
# Groups of kinds that come with a service, and name its queue.
_BESIDE_SERVICES = frozenset({"keda.sh", "gateway.networking.k8s.io"})
# An admin's further rights are EKS's alone.
_ROLES: Mapping[config.AccessLevel, str] = MappingProxyType(
    {"view": names.VIEW_ROLE, "edit": names.EDIT_ROLE, "admin": names.EDIT_ROLE}
)


class _Group(Frozen):
    """A Kubernetes group of people, which has one ClusterRole in one namespace or in all."""

    role: str
    namespace: str | None
    queue: str | None = None

    @property
    def name(self) -> str:
        return names.access_group(self.role, self.namespace, self.queue)

    @property
    def place(self) -> tuple[str, str]:
        return self.role, self.namespace or ""


class _Kind(Frozen):
    """A kind of objects of jobs that EKS's access policies leave out."""

    group: str  # Its API group
    resource: str  # Its plural
    # Whether people send it; controllers make the other kinds, which show why a job waits.
    sent: bool = False
    queued: bool = False  # Whether it always waits in a queue of the cluster's engine


def plan_access(cluster: config.Cluster, pools: Sequence[PoolPlan]) -> AccessPlan:
    """Return the rights of people in the cluster."""
    items = cluster.kubernetes.access
    kinds = (*_kinds(cluster),)
    groups = {item: [*_groups(cluster, item)] if kinds else [] for item in items}
    bindings = [*_bindings([group for own in groups.values() for group in own])]
    if any(item.policy != "cluster-admin" for item in items):
        readers = (names.ACCESS_GROUP,)
        bindings.append(GroupBindingPlan(role=names.READER_ROLE, namespace=None, groups=readers))
    bound = {binding.role for binding in bindings}
    return AccessPlan(
        entries=(*_administrators(cluster), *_entries(cluster, groups)),
        roles=tuple(role for role in _cluster_roles(cluster, kinds) if role.name in bound),
        bindings=tuple(bindings),
        queues=_queues(cluster, pools, [group for own in groups.values() for group in own]),
    )


def _administrators(cluster: config.Cluster) -> Iterator[AccessEntryPlan]:
    everything = AccessPolicyPlan(
        name=eks.CLUSTER_ADMIN_POLICY, namespaces=(), sends_to=(_ANY_QUEUE,)
    )
    for role in cluster.kubernetes.admins:
        yield AccessEntryPlan(role=role, policies=(everything,), groups=())


def scope_of(cluster: config.Cluster, item: config.Access) -> tuple[str, ...]:
    """Return the namespaces of an item of the file; none: the whole cluster."""
    if item.team is not None:
        return (names.team_namespace(item.team),)
    if item.queue is not None and not item.namespaces:
        return _namespaces_of_queues(cluster)
    return item.namespaces


def _namespaces_of_queues(cluster: config.Cluster) -> tuple[str, ...]:
    quotas = engine_of(cluster.scheduling).quotas
    return queued_namespaces(cluster) if quotas else training_namespaces(cluster)


def _groups(cluster: config.Cluster, item: config.Access) -> Iterator[_Group]:
    role = _ROLES.get(item.policy)
    if role is None:
        return
    if item.queue is not None:
        role = names.QUEUE_ROLE
    namespaces = scope_of(cluster, item)
    if not namespaces:
        yield _Group(role=role, namespace=None)
    # Elsewhere no job runs, and EKS's policy has all rights.
    jobs = training_namespaces(cluster)
    yield from (
        _Group(role=role, namespace=name, queue=item.queue) for name in namespaces if name in jobs
    )


def _bindings(groups: Sequence[_Group]) -> Iterator[GroupBindingPlan]:
    """Yield a binding of each ClusterRole in each place, with all of its groups there."""
    for (role, namespace), members in groupby(
        sorted(groups, key=lambda group: (group.place, group.name)), key=lambda group: group.place
    ):
        yield GroupBindingPlan(
            role=role,
            namespace=namespace or None,
            groups=tuple(dict.fromkeys(group.name for group in members)),
        )


def _entries(
    cluster: config.Cluster, groups: Mapping[config.Access, Sequence[_Group]]
) -> Iterator[AccessEntryPlan]:
    """Yield an entry for each role: EKS takes one of each, with each policy once."""
    for role in dict.fromkeys(item.role for item in groups):
        own = [item for item in groups if item.role == role]
        levels: dict[config.AccessLevel, list[config.Access]] = {}
        for item in own:
            levels.setdefault(item.policy, []).append(item)
        member = {group.name for item in own for group in groups[item]}
        if any(item.policy != "cluster-admin" for item in own):
            member.add(names.ACCESS_GROUP)
        yield AccessEntryPlan(
            role=role,
            policies=tuple(
                AccessPolicyPlan(
                    name=eks.ACCESS_POLICIES[level],
                    namespaces=_joined_scopes([scope_of(cluster, item) for item in items]),
                    sends_to=()
                    if level == "view"
                    else tuple(dict.fromkeys(item.queue or _ANY_QUEUE for item in items)),
                )
                for level, items in levels.items()
            ),
            groups=tuple(sorted(member)),
        )


def _joined_scopes(scopes: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    if () in scopes:
        return ()
    return tuple(sorted({name for scope in scopes for name in scope}))


def _queues(
    cluster: config.Cluster, pools: Sequence[PoolPlan], groups: Sequence[_Group]
) -> QueueAccessPlan | None:
    namespaces = {group.namespace for group in groups if group.queue is not None} - {None}
    engine = cluster.scheduling.engine
    if not namespaces or engine == "none":
        return None
    has_services = _queues_services(cluster)
    kinds = kinds_of_services(cluster)
    return QueueAccessPlan(
        engine=engine,
        namespaces=tuple(sorted(filter(None, namespaces))),
        resources=capacity.accelerators_of(pools),
        services=has_services,
        scaled=has_services and SCALED_OBJECT_KIND in kinds,
        routed=has_services and HTTP_ROUTE_KIND in kinds,
        ray=any(kind.group == "ray.io" for kind in _kinds(cluster)),
    )


def _kinds(cluster: config.Cluster) -> Iterator[_Kind]:
    for controller in controllers_of_jobs(cluster):
        if controller.resource is not None:
            group, resource = controller.resource
            queued = controller.waits_in_queue
            yield _Kind(group=group, resource=resource, sent=True, queued=queued)
    queued = _QUEUED | _BESIDE_SERVICES if _queues_services(cluster) else _QUEUED
    for group, resource in kinds_of_services(cluster):
        yield _Kind(group=group, resource=resource, sent=True, queued=group in queued)
    for kinds in queue_kinds_of(cluster):
        for resource in (kinds.local, kinds.entries):
            if resource is not None:
                yield _Kind(group=kinds.group, resource=resource)


def _queues_services(cluster: config.Cluster) -> bool:
    quotas = engine_of(cluster.scheduling).quotas
    return quotas and LEADER_WORKER_SET_KIND in kinds_of_services(cluster)


def _cluster_roles(cluster: config.Cluster, kinds: Sequence[_Kind]) -> Iterator[ClusterRolePlan]:
    for role in (names.VIEW_ROLE, names.QUEUE_ROLE, names.EDIT_ROLE):
        yield ClusterRolePlan(
            name=role, rights=tuple(_right(kind, writes=_writes(role, kind)) for kind in kinds)
        )
    yield ClusterRolePlan(name=names.READER_ROLE, rights=tuple(_cluster_reads(cluster)))


def _writes(role: str, kind: _Kind) -> bool:
    """Return whether a ClusterRole lets people send a kind; a queue's role no kind beside it."""
    return kind.sent and (role == names.EDIT_ROLE or (role == names.QUEUE_ROLE and kind.queued))


def _right(kind: _Kind, *, writes: bool) -> RightPlan:
    verbs = (*_READ, *_WRITE) if writes else _READ
    return RightPlan(group=kind.group, resources=(kind.resource,), verbs=verbs)


def _cluster_reads(cluster: config.Cluster) -> Iterator[RightPlan]:
    """Yield the rights of all people: to read nodes, queues and priorities of jobs."""
    yield RightPlan(group="", resources=("nodes",), verbs=_READ)
    yield RightPlan(group="scheduling.k8s.io", resources=("priorityclasses",), verbs=_READ)
    for kinds in queue_kinds_of(cluster):
        yield RightPlan(group=kinds.group, resources=(kinds.queues,), verbs=_READ)
    if cluster.karpenter is not None or any(pool.is_auto_mode for pool in cluster.pools):
        yield RightPlan(group="karpenter.sh", resources=("nodepools",), verbs=_READ)


@rule
def access_is_where_jobs_run(cluster: config.Cluster) -> Mistakes:
    """Yield namespaces that the cluster lacks, or in which only controllers may write."""
    jobs = training_namespaces(cluster)
    platform = {*_KUBERNETES_OWN, *(namespace.name for namespace in plan_namespaces(cluster))} - {
        *jobs
    }
    for index, item in enumerate(cluster.kubernetes.access):
        for number, name in enumerate(item.namespaces):
            key = f"kubernetes.access.{index}.namespaces.{number}"
            if name not in platform and name not in jobs:
                wrong = "not a namespace that this cluster makes"
                todo = config.near(name, jobs)
                todo += "; jobs run in training and namespaces of claims"
                yield config.refuse(key, wrong, todo)
            elif name in platform and item.policy != "view":
                wrong = (
                    f"{item.policy} in a namespace of controllers gives their service accounts, "
                    "and so the whole cluster"
                )
                yield config.refuse(key, wrong, "write policy: view, or cluster-admin")
            elif item.queue is not None and name not in _namespaces_of_queues(cluster):
                wrong = f"no jobs of this namespace wait in queue {item.queue}"
                yield config.refuse(key, wrong, "move the namespace to an item without queue")
