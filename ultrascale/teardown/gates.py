"""What has to hold before a stack can go: each is waited for, or brought about.

Sources:
    https://docs.aws.amazon.com/eks/latest/userguide/deletion-protection.html
    https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-resiliency-deep-health-checks.html
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ultrascale.account import Account
from ultrascale.errors import UnansweredError
from ultrascale.teardown.model import State, StoppedError, Thing

NO_CLUSTER = "ResourceNotFoundException"
NO_HYPERPOD = "ResourceNotFound"
# In these HyperPod is at work on the cluster, and refuses its deletion.
_BUSY = frozenset({"Creating", "Updating", "RollingBack", "SystemUpdating"})
_CHECKED = "DeepHealthCheckInProgress"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectionTarget:
    """Takes the deletion protection off an EKS cluster.

    Attributes:
        account: The account.
        cluster: Name of the cluster.
    """

    account: Account
    cluster: str

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
            cluster = self.account.ask(
                self.account.client("eks").describe_cluster, name=self.cluster
            )["cluster"]
        except UnansweredError as error:
            if error.code == NO_CLUSTER:
                return "gone"
            raise
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


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperPodGate:
    """Waits until HyperPod takes a deletion: it takes none while it checks or updates nodes.

    Attributes:
        account: The account.
        cluster: Name of the HyperPod cluster.
    """

    account: Account
    cluster: str

    @property
    def thing(self) -> Thing:
        """The cluster."""
        return Thing(kind="HyperPod cluster", id=self.cluster, note="until it takes a deletion")

    @property
    def things(self) -> Sequence[Thing]:
        """Nothing: it is waited for."""
        return ()

    def look(self) -> State:
        """Return `gone` once nothing keeps the cluster from being deleted."""
        try:
            status = self.account.ask(
                self.account.client("sagemaker").describe_cluster, ClusterName=self.cluster
            )["ClusterStatus"]
            if status in _BUSY:
                return "going"
            nodes = self.account.ask_all(
                self.account.client("sagemaker").list_cluster_nodes,
                lambda page: page["ClusterNodeSummaries"],
                ClusterName=self.cluster,
            )
        except UnansweredError as error:
            if error.code == NO_HYPERPOD:
                return "gone"
            raise
        checked = any(each["InstanceStatus"]["Status"] == _CHECKED for each in nodes)
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
