"""Rights of people: entries of EKS, and ClusterRoles for the kinds that its policies leave out.

EKS's access policies name API groups of Kubernetes itself alone: whoever has `AmazonEKSEditPolicy`
can make a Job, and neither make nor see a Volcano Job. An access entry may have Kubernetes groups
beside its policies, so each level has a group of its own in each namespace, with a ClusterRole for
those kinds.

Sources:
    https://docs.aws.amazon.com/eks/latest/userguide/access-policy-permissions.html
    https://docs.aws.amazon.com/eks/latest/userguide/creating-access-entries.html
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from ultrascale import config
from ultrascale.catalog import eks
from ultrascale.plan import names
from ultrascale.plan.jobs.kinds import controllers_of_jobs, has_kueue
from ultrascale.plan.model import (
    AccessEntryPlan,
    AccessPlan,
    AccessPolicyPlan,
    ClusterRolePlan,
    GroupBindingPlan,
    PoolPlan,
    RightPlan,
)
from ultrascale.plan.namespaces import plan_namespaces, team_namespaces, training_namespaces

Mistakes = Iterator[config.Mistake]

_READ = ("get", "list", "watch")
# As EKS's policy for editing has it for Jobs.
_WRITE = ("create", "delete", "deletecollection", "patch", "update")
# Namespaces of every cluster.
_KUBERNETES_OWN = ("default", names.SYSTEM_NAMESPACE)
# An admin's further rights are EKS's alone.
_ROLES: Mapping[config.AccessLevel, str] = MappingProxyType(
    {"view": names.VIEW_ROLE, "edit": names.EDIT_ROLE, "admin": names.EDIT_ROLE}
)


def plan_access(cluster: config.Cluster, pools: Sequence[PoolPlan]) -> AccessPlan | None:
    """Return the rights of people beside the administrators; None where the file gives none.

    Args:
        cluster: The cluster file.
        pools: Plans of its pools.
    """
    items = cluster.kubernetes.access
    if not items:
        return None
    jobs = (*_rights_to_jobs(cluster, pools),)
    of_items = [(item, [*_groups(cluster, item)] if jobs else []) for item in items]
    bound = dict.fromkeys(each for _, groups in of_items for each in groups)
    bindings = [
        GroupBindingPlan(
            role=role, namespace=namespace, groups=(names.access_group(role, namespace),)
        )
        for role, namespace in sorted(bound, key=lambda each: (each[0], each[1] or ""))
    ]
    readers = any(item.policy != "cluster-admin" for item in items)
    if readers:
        reader = names.READER_ROLE
        bindings.append(GroupBindingPlan(role=reader, namespace=None, groups=(names.ACCESS_GROUP,)))
    used = {each.role for each in bindings}
    teams = team_namespaces(cluster)
    return AccessPlan(
        entries=tuple(_entries(of_items)),
        roles=tuple(each for each in _cluster_roles(cluster, jobs) if each.name in used),
        bindings=tuple(each for each in bindings if each.namespace not in teams),
        team_bindings=tuple(each for each in bindings if each.namespace in teams),
    )


def _groups(cluster: config.Cluster, item: config.Access) -> Iterator[tuple[str, str | None]]:
    """Yield the ClusterRoles of an item, each with its namespace, or None for the cluster."""
    role = _ROLES.get(item.policy)
    if role is None:
        return
    namespaces = scope_of(item)
    if not namespaces:
        yield role, None
    # Elsewhere no job runs, and EKS's policy says everything.
    jobs = training_namespaces(cluster)
    yield from ((role, namespace) for namespace in namespaces if namespace in jobs)


def scope_of(item: config.Access) -> tuple[str, ...]:
    """Return the namespaces that an item holds in; none: the whole cluster."""
    return (names.team_namespace(item.team),) if item.team is not None else item.namespaces


_Scoped = tuple[config.Access, Sequence[tuple[str, str | None]]]


def _entries(items: Sequence[_Scoped]) -> Iterator[AccessEntryPlan]:
    """Yield an entry for each role: EKS takes one of each, with each policy once."""
    for role in dict.fromkeys(item.role for item, _ in items):
        own = [(item, groups) for item, groups in items if item.role == role]
        scopes: dict[str, list[tuple[str, ...]]] = {}
        for item, _ in own:
            scopes.setdefault(eks.ACCESS_POLICIES[item.policy], []).append(scope_of(item))
        reads = (
            [names.ACCESS_GROUP] if any(each.policy != "cluster-admin" for each, _ in own) else []
        )
        yield AccessEntryPlan(
            role=role,
            policies=tuple(
                AccessPolicyPlan(
                    name=policy,
                    namespaces=()
                    if () in each
                    else tuple(sorted({name for scope in each for name in scope})),
                )
                for policy, each in scopes.items()
            ),
            groups=tuple(
                sorted(
                    {*reads, *(names.access_group(*each) for _, groups in own for each in groups)}
                )
            ),
        )


def _rights_to_jobs(
    cluster: config.Cluster, pools: Sequence[PoolPlan]
) -> Iterator[tuple[str, str, bool]]:
    """Yield group and plural of each kind that EKS's policies leave out, and whether it is written.

    Controllers make what is only read: it says why a job waits.
    """
    yield from ((*each, True) for each in controllers_of_jobs(cluster, pools))
    if cluster.scheduling.engine == "volcano":
        yield "scheduling.volcano.sh", "podgroups", False
    if has_kueue(cluster):
        yield "kueue.x-k8s.io", "localqueues", False
        yield "kueue.x-k8s.io", "workloads", False


def _cluster_roles(
    cluster: config.Cluster, jobs: Sequence[tuple[str, str, bool]]
) -> Iterator[ClusterRolePlan]:
    reads = tuple(
        RightPlan(group=group, resources=(resource,), verbs=_READ) for group, resource, _ in jobs
    )
    writes = tuple(
        RightPlan(group=group, resources=(resource,), verbs=(*_READ, *_WRITE) if made else _READ)
        for group, resource, made in jobs
    )
    yield ClusterRolePlan(name=names.VIEW_ROLE, rights=reads)
    yield ClusterRolePlan(name=names.EDIT_ROLE, rights=writes)
    yield ClusterRolePlan(name=names.READER_ROLE, rights=tuple(_cluster_reads(cluster)))


def _cluster_reads(cluster: config.Cluster) -> Iterator[RightPlan]:
    """Yield what everybody may read of the cluster: nodes, queues and priorities of jobs."""
    yield RightPlan(group="", resources=("nodes",), verbs=_READ)
    yield RightPlan(group="scheduling.k8s.io", resources=("priorityclasses",), verbs=_READ)
    if cluster.scheduling.engine == "volcano":
        yield RightPlan(group="scheduling.volcano.sh", resources=("queues",), verbs=_READ)
    if has_kueue(cluster):
        yield RightPlan(group="kueue.x-k8s.io", resources=("clusterqueues",), verbs=_READ)
    if cluster.karpenter is not None or any(pool.is_auto_mode for pool in cluster.pools):
        yield RightPlan(group="karpenter.sh", resources=("nodepools",), verbs=_READ)


def access_is_where_jobs_run(cluster: config.Cluster) -> Mistakes:
    """Yield namespaces that the cluster has not, or in which nobody but controllers may write."""
    jobs = training_namespaces(cluster)
    platform = {*_KUBERNETES_OWN, *(each.name for each in plan_namespaces(cluster))} - {*jobs}
    for index, item in enumerate(cluster.kubernetes.access):
        if item.queue is not None:
            key = f"kubernetes.access.{index}.queue"
            yield config.refuse(key, "not supported yet", "name namespaces", code="unsupported")
        for number, name in enumerate(item.namespaces):
            key = f"kubernetes.access.{index}.namespaces.{number}"
            if name not in platform and name not in jobs:
                wrong = "not a namespace that this cluster makes"
                todo = config.near(name, jobs)
                todo += "; jobs run in training, and where storage has claims"
                yield config.refuse(key, wrong, todo)
            elif name in platform and item.policy != "view":
                wrong = (
                    f"a namespace of controllers: who has {item.policy} there takes on their "
                    "service accounts, and rules the cluster"
                )
                yield config.refuse(key, wrong, "write policy: view, or cluster-admin")
