"""The HyperPod cluster in a teardown: its state, the gate of its deletion, and training plans.

Sources:
    https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-resiliency-deep-health-checks.html
    https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_DescribeTrainingPlan.html
"""

from collections.abc import Iterator, Mapping, Sequence

from ultrascale.account import Account
from ultrascale.errors import UnansweredError, unless_gone
from ultrascale.frozen import Frozen
from ultrascale.parts.hyperpod.model import Plan
from ultrascale.plan.stacks import LayerId
from ultrascale.teardown.inventory import Kind
from ultrascale.teardown.model import Found, Scope, State, StoppedError, Target, Thing
from ultrascale.teardown.reservations import prepaid
from ultrascale.teardown.stacks import AGAIN, Stack

_CLUSTER = "AWS::SageMaker::Cluster"
TRAINING_PLAN = "SageMaker training plan"
_NO_CLUSTER = "ResourceNotFound"
# HyperPod refuses the deletion of a cluster in one of these states.
_BUSY = frozenset({"Creating", "Updating", "RollingBack", "SystemUpdating"})
_CHECKED = "DeepHealthCheckInProgress"
_NO_PLAN = frozenset({"ResourceNotFound", "ResourceNotFoundException"})
_PLAN_ENDED = frozenset({"Expired", "Failed"})


def _status(account: Account, cluster: str) -> str:
    """Return SageMaker's word for the state of a HyperPod cluster; empty where there is none.

    Raises:
        UnansweredError: AWS did not answer.
    """
    with unless_gone(_NO_CLUSTER):
        answer = account.ask(account.client("sagemaker").describe_cluster, ClusterName=cluster)
        return str(answer["ClusterStatus"])
    return ""


def _clusters(scope: Scope) -> Iterator[Found]:
    own = scope.plan.part(Plan)
    if own is None:
        return
    name = own.cluster.name
    status = _status(scope.account, name)
    if status:
        thing = Thing(kind=_CLUSTER, id=name, note=status)
        yield Found(thing=thing, why="SageMaker has a cluster of this name, with its nodes")


def prepaid_capacity(scope: Scope) -> Iterator[Found]:
    """Yield the training plans of its groups."""
    account, own = scope.account, scope.plan.part(Plan)
    groups = own.cluster.groups if own is not None else ()
    for arn in sorted({group.training_plan for group in groups if group.training_plan is not None}):
        name = arn.rpartition("/")[2]
        try:
            answer = account.ask(
                account.client("sagemaker").describe_training_plan, TrainingPlanName=name
            )
            if answer["Status"] in _PLAN_ENDED:
                continue
            until = f"until {answer['EndTime']:%Y-%m-%dT%H:%MZ}"
        except UnansweredError as error:
            if error.code in _NO_PLAN:
                continue
            until = f"nobody knows until when: {error}"
        yield prepaid(TRAINING_PLAN, name, until)


class Gate(Frozen):
    """Waits until HyperPod accepts a deletion: it refuses one while it checks or updates nodes."""

    account: Account  # The account
    cluster: str  # Name of the HyperPod cluster

    @property
    def thing(self) -> Thing:
        """The cluster."""
        return Thing(kind="HyperPod cluster", id=self.cluster, note="until it takes a deletion")

    @property
    def things(self) -> Sequence[Thing]:
        """Nothing: the gate deletes nothing."""
        return ()

    def look(self) -> State:
        """Return `gone` once nothing keeps the cluster from being deleted."""
        status = _status(self.account, self.cluster)
        if not status:
            return "gone"
        if status in _BUSY:
            return "going"
        with unless_gone(_NO_CLUSTER):
            nodes = self.account.ask_all(
                self.account.client("sagemaker").list_cluster_nodes,
                lambda page: page["ClusterNodeSummaries"],
                ClusterName=self.cluster,
            )
            if any(node["InstanceStatus"]["Status"] == _CHECKED for node in nodes):
                return "going"
        return "gone"

    def remove(self) -> None:
        """Do nothing: the stack deletes the cluster."""

    def stuck(self) -> StoppedError:
        """Return the reason: HyperPod is still at work."""
        return StoppedError(
            str(self.thing),
            why="it updates or checks its nodes, and takes no deletion meanwhile",
            fix="a deep health check takes up to two hours: wait until `aws sagemaker "
            f"list-cluster-nodes --cluster-name {self.cluster} --region {self.account.region}` "
            f"names none {_CHECKED}, then run the command again: it goes on here",
        )


def gates(scope: Scope, stacks: Mapping[str, Stack]) -> Mapping[LayerId, Target]:
    """Return the gate before the layer of the HyperPod cluster, which may have left the file.

    Args:
        scope: The cluster.
        stacks: Its stacks, by name.

    Raises:
        UnansweredError: AWS did not answer.
    """
    made = (
        resource.id
        for stack in stacks.values()
        for resource in stack.resources
        if resource.type == _CLUSTER
    )
    own = scope.plan.part(Plan)
    name = own.cluster.name if own is not None else next(made, "")
    if not name or not _status(scope.account, name):
        return {}
    return {"hyperpod-groups": Gate(account=scope.account, cluster=name)}


KINDS: Mapping[str, Kind] = {
    _CLUSTER: Kind(
        searches=(_clusters,),
        command=f"{AGAIN}; where it is of no stack: aws sagemaker delete-cluster --cluster-name "
        "{id} --region {region}",
    ),
    TRAINING_PLAN: Kind(
        command="nothing removes it; another cluster of the account can use it until then",
        paid=False,
    ),
}
