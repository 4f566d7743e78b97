"""The EKS cluster and the HyperPod cluster: their states, and what a deletion waits for.

Sources:
    https://docs.aws.amazon.com/eks/latest/userguide/deletion-protection.html
    https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-resiliency-deep-health-checks.html
"""

from collections.abc import Iterator, Sequence

from ultrascale.account import Account
from ultrascale.errors import UnansweredError
from ultrascale.frozen import Frozen
from ultrascale.teardown import prices
from ultrascale.teardown.model import Found, Scope, State, StoppedError, Thing

CLUSTER, HYPERPOD = "AWS::EKS::Cluster", "AWS::SageMaker::Cluster"
_NO_CLUSTER = "ResourceNotFoundException"
_NO_HYPERPOD = "ResourceNotFound"
# HyperPod refuses the deletion of a cluster in one of these states.
_BUSY = frozenset({"Creating", "Updating", "RollingBack", "SystemUpdating"})
_CHECKED = "DeepHealthCheckInProgress"


def eks_status(account: Account, cluster: str) -> str:
    """Return EKS's word for the state of a cluster; empty where there is none.

    Raises:
        UnansweredError: AWS did not answer.
    """
    try:
        answer = account.ask(account.client("eks").describe_cluster, name=cluster)
    except UnansweredError as error:
        if error.code == _NO_CLUSTER:
            return ""
        raise
    return str(answer["cluster"]["status"])


def hyperpod_status(account: Account, cluster: str) -> str:
    """Return SageMaker's word for the state of a HyperPod cluster; empty where there is none.

    Raises:
        UnansweredError: AWS did not answer.
    """
    try:
        answer = account.ask(account.client("sagemaker").describe_cluster, ClusterName=cluster)
    except UnansweredError as error:
        if error.code == _NO_HYPERPOD:
            return ""
        raise
    return str(answer["ClusterStatus"])


def eks_cluster(scope: Scope) -> Iterator[Found]:
    """Yield the EKS cluster of the cluster's name."""
    status = eks_status(scope.account, scope.plan.name)
    if status:
        yield Found(
            thing=Thing(kind=CLUSTER, id=scope.plan.name, note=status),
            why="EKS has a cluster of this name",
            price=prices.of_cluster(scope.plan.control_plane.tier),
        )


def hyperpod_cluster(scope: Scope) -> Iterator[Found]:
    """Yield the HyperPod cluster of the plan's name."""
    if scope.plan.hyperpod is None:
        return
    name = scope.plan.hyperpod.name
    status = hyperpod_status(scope.account, name)
    if status:
        thing = Thing(kind=HYPERPOD, id=name, note=status)
        yield Found(thing=thing, why="SageMaker has a cluster of this name, with its nodes")


class ProtectionTarget(Frozen):
    """Takes the deletion protection off an EKS cluster."""

    account: Account  # The account
    cluster: str  # Name of the cluster

    @property
    def thing(self) -> Thing:
        """The setting."""
        return Thing(kind="deletion protection", id=self.cluster)

    @property
    def things(self) -> Sequence[Thing]:
        """The setting: the cluster itself goes with its stack."""
        return (self.thing,)

    def look(self) -> State:
        """Return whether it is on. A cluster that is not active can be deleted all the same."""
        try:
            answer = self.account.ask(
                self.account.client("eks").describe_cluster, name=self.cluster
            )
        except UnansweredError as error:
            if error.code == _NO_CLUSTER:
                return "gone"
            raise
        cluster = answer["cluster"]
        if cluster["status"] == "UPDATING":
            return "going"
        protected = cluster.get("deletionProtection", False) and cluster["status"] == "ACTIVE"
        return "there" if protected else "gone"

    def remove(self) -> None:
        """Turn it off."""
        self.account.ask(
            self.account.client("eks").update_cluster_config,
            name=self.cluster,
            deletionProtection=False,
        )

    def stuck(self) -> StoppedError:
        """Return that the update does not end."""
        return StoppedError(
            f"EKS cluster {self.cluster}",
            why="it is being updated, and its deletion protection is on until that ends",
            fix=f"`aws eks list-updates --name {self.cluster} --region {self.account.region}` "
            "names the update; wait for it, then run the command again: it goes on here",
        )


class HyperPodGate(Frozen):
    """Waits until HyperPod accepts a deletion: it refuses one while it checks or updates nodes."""

    account: Account  # The account
    cluster: str  # Name of the HyperPod cluster

    @property
    def thing(self) -> Thing:
        """The cluster."""
        return Thing(kind="HyperPod cluster", id=self.cluster, note="until it takes a deletion")

    @property
    def things(self) -> Sequence[Thing]:
        """Nothing: the gate only waits."""
        return ()

    def look(self) -> State:
        """Return `gone` once nothing keeps the cluster from being deleted."""
        status = hyperpod_status(self.account, self.cluster)
        if not status:
            return "gone"
        if status in _BUSY:
            return "going"
        try:
            nodes = self.account.ask_all(
                self.account.client("sagemaker").list_cluster_nodes,
                lambda page: page["ClusterNodeSummaries"],
                ClusterName=self.cluster,
            )
        except UnansweredError as error:
            if error.code == _NO_HYPERPOD:
                return "gone"
            raise
        checked = any(node["InstanceStatus"]["Status"] == _CHECKED for node in nodes)
        return "going" if checked else "gone"

    def remove(self) -> None:
        """Do nothing: the stack deletes the cluster."""

    def stuck(self) -> StoppedError:
        """Return that it is still at work."""
        return StoppedError(
            str(self.thing),
            why="it updates or checks its nodes, and takes no deletion meanwhile",
            fix="a deep health check takes up to two hours: wait until `aws sagemaker "
            f"list-cluster-nodes --cluster-name {self.cluster} --region {self.account.region}` "
            f"names none {_CHECKED}, then run the command again: it goes on here",
        )
