"""Rules of `kubernetes.access`: each item has one role, one scope and one level."""

from ultrascale.catalog import regions
from ultrascale.config._errors import Mistake, Mistakes, near, note, refuse
from ultrascale.config._parts import Names, Readable
from ultrascale.config._rules import rule
from ultrascale.config.access import Access, AccessLevel
from ultrascale.config.identity import Identity
from ultrascale.config.kubernetes import Kubernetes
from ultrascale.config.scheduling import Queue, Scheduling
from ultrascale.config.teams import Team

# Each policy includes the ones before it.
_LEVELS: tuple[AccessLevel, ...] = ("view", "edit", "admin", "cluster-admin")


@rule
def access_is_of_the_partition(access: Access, identity: Identity) -> Mistakes:
    partition = regions.lookup_region(identity.region).partition
    if access.role.split(":")[1] != partition:
        wrong = f"a role outside partition {partition} of {identity.region}"
        yield refuse("role", wrong, f"write arn:{partition}:iam::ACCOUNT:role/NAME")


@rule
def access_is_beside_the_admins(access: Access, kubernetes: Kubernetes) -> Mistakes:
    # EKS has one entry for a role, and answers the second with ResourceInUseException.
    if access.role in kubernetes.admins:
        wrong = "a role of kubernetes.admins can do everything already"
        yield refuse("role", wrong, "keep it in one list")


@rule
def cluster_admin_is_of_the_whole_cluster(access: Access) -> Mistakes:
    if access.policy != "cluster-admin":
        return
    for key in ("namespaces", "team", "queue"):
        if key in access.model_fields_set:
            wrong = "cluster-admin holds in the whole cluster and takes no namespaces"
            yield refuse(key, wrong, "leave it out, or write policy: admin", got="")


@rule
def access_has_one_scope(access: Access) -> Mistakes:
    if "namespaces" in access.model_fields_set and not access.namespaces:
        todo = "name namespaces, or leave the key out for the whole cluster"
        yield refuse("namespaces", "an empty list lets nobody in", todo)
    if access.team is not None:
        for key in ("namespaces", "queue"):
            if key in access.model_fields_set:
                wrong = f"team already names namespace hyperpod-ns-{access.team}"
                yield refuse(key, wrong, f"keep team or {key}", got="")


@rule
def queue_bounds_what_is_sent(access: Access) -> Mistakes:
    if access.queue is None:
        return
    if access.policy == "view":
        wrong = "view sends no jobs, and reads the jobs of every queue"
        yield refuse("queue", wrong, "name namespaces, or write policy: edit")
    elif access.policy == "admin":
        wrong = "an admin can let service accounts send jobs to any queue"
        yield refuse("queue", wrong, "leave it out, or write policy: edit")


@rule
def team_of_access_exists(access: Access, teams: Names[Team]) -> Mistakes:
    if access.team is not None and access.team not in teams:
        yield refuse("team", "not a team of hyperpod.task_governance", near(access.team, teams))


@rule
def queue_of_access_exists(
    access: Access, queues: Names[Queue], scheduling: Scheduling
) -> Mistakes:
    if access.queue is None or access.queue in queues:
        return
    if scheduling.engine == "none":
        wrong, todo = "a queue without an engine", "set scheduling.queueing: kueue, or volcano"
    else:
        wrong, todo = "not one of scheduling.queues", near(access.queue, queues)
    yield refuse("queue", wrong, todo)


@rule
def access_adds_something(items: Readable[Access]) -> Mistakes:
    for placed in items.placed:
        for other in items.placed:
            # Of two equal items, the first stays.
            is_first = other.at < placed.at or not _includes(placed.item, other.item)
            if other is not placed and is_first and _includes(other.item, placed.item):
                wrong = f"{other.path} already gives this role all these rights"
                yield Mistake(placed.at, wrong, "leave out one item", got="")
                break


def _includes(more: Access, less: Access) -> bool:
    """Return whether an item gives its role all rights of another item for that role."""
    if more.role != less.role or _LEVELS.index(more.policy) < _LEVELS.index(less.policy):
        return False
    if more.queue is not None and more.queue != less.queue:
        return False
    if more.team is not None:
        return more.team == less.team
    if not more.namespaces:
        return True
    return bool(less.namespaces) and {*less.namespaces} <= {*more.namespaces}


@rule(severity="warning")
def edits_the_whole_cluster(access: Access) -> Mistakes:
    if access.policy not in ("edit", "admin"):
        return
    if not (access.namespaces or access.team or access.queue):
        text = (
            f"{access.policy} without namespaces includes kube-system, whose Secrets and service "
            "accounts rule the cluster; name namespaces, or write cluster-admin if that is meant"
        )
        yield note("policy", text)
