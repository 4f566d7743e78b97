"""The EKS cluster: its state, and its deletion protection.

Source: https://docs.aws.amazon.com/eks/latest/userguide/deletion-protection.html
"""

from collections.abc import Iterator, Sequence

from ultrascale.account import Account
from ultrascale.errors import unless_gone
from ultrascale.frozen import Frozen
from ultrascale.teardown import prices
from ultrascale.teardown.model import Found, Scope, State, StoppedError, Thing

CLUSTER = "AWS::EKS::Cluster"
_NO_CLUSTER = "ResourceNotFoundException"


def eks_status(account: Account, cluster: str) -> str:
    """Return the state of a cluster as EKS names it; empty if there is no such cluster.

    Raises:
        UnansweredError: AWS did not answer.
    """
    with unless_gone(_NO_CLUSTER):
        answer = account.ask(account.client("eks").describe_cluster, name=cluster)
        return str(answer["cluster"]["status"])
    return ""


def eks_cluster(scope: Scope) -> Iterator[Found]:
    """Yield the EKS cluster with the cluster's name."""
    status = eks_status(scope.account, scope.plan.name)
    if status:
        yield Found(
            thing=Thing(kind=CLUSTER, id=scope.plan.name, note=status),
            why="EKS has a cluster of this name",
            price=prices.of_cluster(scope.plan.control_plane.tier),
        )


class ProtectionTarget(Frozen):
    """Target that turns the deletion protection of an EKS cluster off."""

    account: Account  # The account
    cluster: str  # Name of the cluster

    @property
    def thing(self) -> Thing:
        """The deletion protection."""
        return Thing(kind="deletion protection", id=self.cluster)

    @property
    def things(self) -> Sequence[Thing]:
        """The deletion protection alone: the EKS cluster goes with its stack."""
        return (self.thing,)

    def look(self) -> State:
        """Return `there` while the setting is on. Only on an active cluster does it matter."""
        eks = self.account.client("eks")
        with unless_gone(_NO_CLUSTER):
            cluster = self.account.ask(eks.describe_cluster, name=self.cluster)["cluster"]
            if cluster["status"] == "UPDATING":
                return "going"
            if cluster.get("deletionProtection", False) and cluster["status"] == "ACTIVE":
                return "there"
        return "gone"

    def remove(self) -> None:
        """Turn the deletion protection off."""
        self.account.ask(
            self.account.client("eks").update_cluster_config,
            name=self.cluster,
            deletionProtection=False,
        )

    def stuck(self) -> StoppedError:
        """Return the reason why the protection stays on: the update does not end."""
        return StoppedError(
            f"EKS cluster {self.cluster}",
            why="it is being updated, and its deletion protection is on until that ends",
            fix=f"`aws eks list-updates --name {self.cluster} --region {self.account.region}` "
            "names the update; wait for it, then run the command again: it goes on here",
        )
