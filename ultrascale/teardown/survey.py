"""Look at a cluster before its teardown."""

from pathlib import Path

from ultrascale.account import Account
from ultrascale.cluster_api.identity import ClusterArn
from ultrascale.cluster_api.server import Cluster
from ultrascale.errors import ClusterError, QuestionError
from ultrascale.plan.model import ControlPlanePlan
from ultrascale.teardown.clusters import eks_status
from ultrascale.teardown.ec2 import nodes_of_pools
from ultrascale.teardown.kept import Asked
from ultrascale.teardown.model import Scope, Teardown
from ultrascale.teardown.plan import plan_teardown, read_findings

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
