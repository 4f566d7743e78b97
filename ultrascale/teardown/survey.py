"""Survey of a cluster before it is taken down, and the search after it."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from ultrascale.account import Account
from ultrascale.cluster_api.identity import ClusterArn
from ultrascale.cluster_api.server import Cluster
from ultrascale.errors import ClusterError, QuestionError, UnansweredError
from ultrascale.frozen import Frozen
from ultrascale.plan.model import ControlPlanePlan
from ultrascale.teardown.clusters import eks_status
from ultrascale.teardown.ec2 import INSTANCE, nodes_of_pools
from ultrascale.teardown.inventory import as_left, can_look, command, look, searches
from ultrascale.teardown.kept import Asked
from ultrascale.teardown.model import Found, Left, Scope, Search, Teardown, Thing
from ultrascale.teardown.plan import plan_teardown, read_findings
from ultrascale.teardown.stacks import AGAIN, FUNCTION
from ultrascale.teardown.storage import FILE_SYSTEM, file_system_facts, file_systems

_SHOWN = 5
# States in which the API server answers. It alone can end the nodes of NodePools.
_ANSWERING = frozenset({"ACTIVE", "UPDATING"})
_GOING = frozenset({"", "DELETING", "FAILED"})


def survey(
    scope: Scope,
    asked: Asked,
    *,
    kubeconfig: Path | None = None,
    context: str | None = None,
    skip_kubernetes: bool = False,
) -> Teardown:
    """Return the plan of a teardown: the targets in order, and the things that stay.

    Args:
        scope: The cluster.
        asked: Things that the user wants to delete beside the cluster.
        kubeconfig: Kubeconfig; by default the environment's.
        context: Context of the kubeconfig; by default its current one.
        skip_kubernetes: Do not ask the API server.

    Raises:
        QuestionError: Kubernetes is skipped while nodes run that it alone can end; the kubeconfig
            names another cluster; or the cluster or a stack is being changed, is protected, or
            belongs to somebody else.
        ClusterError: The API server cannot be reached.
        UnansweredError: AWS refused a question.
    """
    account, plan = scope.account, scope.plan
    status = eks_status(account, plan.name)
    cluster: Cluster | None = None
    if skip_kubernetes:
        _refuse_running_nodes(account, plan.name, plan.control_plane)
    else:
        cluster = _api_server(account, plan.name, plan.region, status, kubeconfig, context)
    try:
        found = read_findings(scope, cluster, status)
        return plan_teardown(scope, found, asked)
    except ClusterError as error:
        raise ClusterError(f"{error}; {_how_to_reach(plan.name, plan.region)}") from error


def _api_server(
    account: Account,
    name: str,
    region: str,
    status: str,
    kubeconfig: Path | None,
    context: str | None,
) -> Cluster | None:
    """Return the API server of exactly this cluster; None if EKS no longer has it.

    Raises:
        QuestionError: EKS is still creating it, or the kubeconfig names another cluster.
        ClusterError: There is no kubeconfig.
    """
    if status in _GOING:
        return None
    if status not in _ANSWERING:
        raise QuestionError([f"EKS cluster {name}: it is {status}; wait until that has ended"])
    try:
        cluster = Cluster.connected(kubeconfig, context)
    except ClusterError as error:
        raise ClusterError(f"{error}; {_how_to_reach(name, region)}") from error
    wanted = ClusterArn(region=region, account=account.id, cluster=name)
    if cluster.arn != wanted:
        raise QuestionError(
            [
                f"--kubeconfig: names {cluster.name or 'the cluster of this pod'}, not the EKS "
                f"cluster {name} of account {account.id} in {region}; "
                f"{_how_to_reach(name, region)}"
            ]
        )
    return cluster


def _refuse_running_nodes(account: Account, name: str, control_plane: ControlPlanePlan) -> None:
    """Refuse to skip Kubernetes while nodes run that it alone can end.

    EKS ends the nodes of Auto Mode with the cluster.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/delete-cluster.html

    Raises:
        QuestionError: Nodes of NodePools run.
    """
    running = [node.thing.id for node in nodes_of_pools(account, name)]
    if running and not control_plane.auto_mode:
        shown = ", ".join(running[:_SHOWN])
        raise QuestionError(
            [
                f"--skip-kubernetes: {len(running)} nodes of NodePools run ({shown}), and nobody "
                "else would end them; leave it out, or wait until they are gone"
            ]
        )


def _how_to_reach(name: str, region: str) -> str:
    """Return how the user gets a kubeconfig for the API server."""
    return (
        "name a kubeconfig that reaches it by --kubeconfig: `ultrascale connect` writes one, or "
        f"`aws eks update-kubeconfig --name {name} --region {region}`. Once no node of a "
        "NodePool runs, --skip-kubernetes does without"
    )


# --- The search after a teardown: resources that the plan keeps, and orphans ----------------------
# The search deletes nothing. It reports each request that AWS refuses: the refused answer may hold
# resources that cost money.


class Sweep(Frozen):
    """Result of the search after a teardown."""

    left: tuple[Left, ...]  # Orphans and things that the plan keeps; the dearest first
    unknown: tuple[str, ...]  # Questions that AWS did not answer, each with the reason

    @property
    def orphans(self) -> tuple[Left, ...]:
        """Things that should be gone and are not."""
        return tuple(thing for thing in self.left if not thing.asked)


def sweep(scope: Scope, teardown: Teardown) -> Sweep:
    """Return the things that are left of a cluster.

    Args:
        scope: The cluster.
        teardown: Its teardown.
    """
    deleted = frozenset(thing.id for thing in teardown.things if thing.kind == FUNCTION)
    scope = replace(scope, functions=deleted)
    left: dict[tuple[str, str], Left] = {}
    unknown: list[str] = []
    for question in _questions(scope, teardown):
        try:
            for thing in question():
                left.setdefault((thing.thing.kind, thing.thing.id), thing)
        except UnansweredError as error:
            unknown.append(str(error))
    return Sweep(
        left=tuple(sorted(left.values(), key=_dearness)), unknown=tuple(dict.fromkeys(unknown))
    )


def _questions(scope: Scope, teardown: Teardown) -> Iterator[Callable[[], Iterator[Left]]]:
    """Yield a function for each request to AWS: the refusal of a request hides no other answer."""
    for kept in teardown.kept:
        if kept.asked:
            yield partial(_kept_left, scope.account, kept)
    for thing in sorted(teardown.things):
        if can_look(thing.kind):
            yield partial(_ungone_left, scope.account, thing)
    for search in searches():
        yield partial(_search_results, search, scope)


def _dearness(left: Left) -> tuple[bool, float, bool, Left]:
    """Return the sort key: instances first, with or without a known price, then by price."""
    return left.thing.kind != INSTANCE, -left.usd_per_hour, not left.paid, left


def _kept_left(account: Account, kept: Left) -> Iterator[Left]:
    if look(account, kept.thing.kind, kept.thing.id) != "gone":
        yield kept


def _ungone_left(account: Account, thing: Thing) -> Iterator[Left]:
    """Yield a thing that the teardown should have deleted and that still exists.

    It is looked up by its id: searches by tag do not find all such things.
    """
    if look(account, thing.kind, thing.id) == "gone":
        return
    price = None
    if thing.kind == FILE_SYSTEM and (system := file_systems(account).get(thing.id)):
        _, price = file_system_facts(system)
    found = Found(
        thing=thing,
        why="it was to go, and is there",
        command=f"{AGAIN}, or {command(thing.kind, thing.id, account.region)}",
        price=price,
    )
    yield as_left(found, account.region)


def _search_results(search: Search, scope: Scope) -> Iterator[Left]:
    for found in search(scope):
        thing = found.thing
        if found.certain or look(scope.account, thing.kind, thing.id) != "gone":
            yield as_left(found, scope.plan.region)
