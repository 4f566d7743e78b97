"""Network interfaces and security groups that controllers of Kubernetes left in a VPC.

The network plugin leaves interfaces behind of a node that ends too fast for it, and each of them
keeps a subnet and a security group from being deleted.

Sources:
    https://github.com/aws/amazon-vpc-cni-k8s/blob/master/docs/troubleshooting.md
    https://docs.aws.amazon.com/eks/latest/userguide/auto-disable.html (security groups)
    https://kubernetes-sigs.github.io/aws-load-balancer-controller/latest/guide/service/annotations/
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ultrascale.account import Account
from ultrascale.errors import UnansweredError
from ultrascale.teardown.model import State, StoppedError, Thing
from ultrascale.teardown.retained import SECURITY_GROUP, RetainedTarget

INTERFACE = "AWS::EC2::NetworkInterface"
INTERFACES = "ec2:DescribeNetworkInterfaces"
GROUPS = "ec2:DescribeSecurityGroups"
_DELETE = "ec2:DeleteNetworkInterface"
_ABSENT = "InvalidNetworkInterfaceID.NotFound"
_PLUGIN_TAG = "cluster.k8s.amazonaws.com/name"
_BALANCER_TAG = "elbv2.k8s.aws/cluster"
_EKS_TAG = "aws:eks:cluster-name"
_AUTO_MODE_TAG = "eks:eks-cluster-name"
# The network plugin of a node writes so before it knows the cluster.
_PLUGIN_WORDS = "aws-K8S-"


@dataclass(frozen=True, slots=True, kw_only=True)
class InterfaceTarget:
    """Deletes a network interface that nothing has attached.

    Attributes:
        account: The account.
        id: Its id.
        note: What it says of itself.
    """

    account: Account
    id: str
    note: str

    @property
    def thing(self) -> Thing:
        """The interface."""
        return Thing(kind=INTERFACE, id=self.id, note=self.note)

    @property
    def things(self) -> Sequence[Thing]:
        """The interface alone."""
        return (self.thing,)

    def look(self) -> State:
        """Return whether it is there."""
        try:
            self.account.ask(INTERFACES, NetworkInterfaceIds=[self.id])
        except UnansweredError as error:
            if error.code == _ABSENT:
                return "gone"
            raise
        return "there"

    def remove(self) -> None:
        """Delete it. One that is in use again is left alone: EC2 refuses that, and it is told."""
        try:
            self.account.ask(_DELETE, NetworkInterfaceId=self.id)
        except UnansweredError as error:
            if error.code not in (
                _ABSENT,
                "InvalidParameterValue",
                "InvalidNetworkInterface.InUse",
            ):
                raise

    def stuck(self) -> StoppedError:
        """Return what has it."""
        return StoppedError(
            f"network interface {self.id}",
            why=f"it is in use ({self.note})",
            fix=f"`aws ec2 describe-network-interfaces --network-interface-ids {self.id}` says by "
            "what; end that, then run the command again: it goes on here",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class VpcGate:
    """Lets a VPC go only once nothing is in it that the plan did not print.

    Attributes:
        account: The account.
        cluster: Name of the cluster.
        vpc: Id of the VPC.
        own: Ids of what the stacks and the plan delete.
    """

    account: Account
    cluster: str
    vpc: str
    own: frozenset[str]

    @property
    def thing(self) -> Thing:
        """The VPC."""
        return Thing(kind="AWS::EC2::VPC", id=self.vpc, note="until nothing else is in it")

    @property
    def things(self) -> Sequence[Thing]:
        """Nothing: it is looked at."""
        return ()

    def look(self) -> State:
        """Return `gone` where nothing unknown is left in the VPC."""
        return "there" if self._unprinted() else "gone"

    def remove(self) -> None:
        """Stop: what the plan did not print is never deleted."""
        raise self.stuck()

    def stuck(self) -> StoppedError:
        """Return what the nodes or their controllers left since the plan was printed."""
        left = ", ".join(str(each) for each in self._unprinted())
        return StoppedError(
            f"VPC {self.vpc}",
            why=f"left in it since the plan was printed: {left or 'nothing any more'}",
            fix="run the command again: the new plan prints and deletes it",
        )

    def _unprinted(self) -> list[Thing]:
        found = remains(self.account, self.cluster, self.vpc, frozenset())
        return [each.thing for each in found if each.id not in self.own]


def remains(
    account: Account, cluster: str, vpc: str, stacks: frozenset[str]
) -> tuple[InterfaceTarget | RetainedTarget, ...]:
    """Return what Kubernetes left in a VPC: interfaces that nothing uses, and security groups.

    Args:
        account: The account.
        cluster: Name of the cluster.
        vpc: Id of the VPC.
        stacks: Ids that belong to stacks, which delete them.
    """
    found: list[InterfaceTarget | RetainedTarget] = []
    for each in account.ask_all(INTERFACES, "NetworkInterfaces", Filters=in_vpc(vpc)):
        if each["Status"] == "available" and _is_plugins(each):
            id = each["NetworkInterfaceId"]
            if id not in stacks:
                note = each.get("Description", "")
                found.append(InterfaceTarget(account=account, id=id, note=note))
    for each in account.ask_all(GROUPS, "SecurityGroups", Filters=in_vpc(vpc)):
        if each["GroupId"] not in stacks and _is_of(each, cluster):
            found.append(
                RetainedTarget(
                    account=account,
                    type=SECURITY_GROUP,
                    id=each["GroupId"],
                    note=each.get("GroupName", ""),
                )
            )
    return tuple(found)


def in_vpc(vpc: str) -> Sequence[Mapping[str, object]]:
    """Return EC2's filter for what lies in a VPC."""
    return [{"Name": "vpc-id", "Values": [vpc]}]


def tags(found: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the tags of a resource of EC2."""
    listed = cast("list[Mapping[str, str]]", found.get("Tags") or found.get("TagSet") or [])
    return {each["Key"]: each["Value"] for each in listed}


def _is_plugins(interface: Mapping[str, Any]) -> bool:
    plugins = str(interface.get("Description", "")).startswith(_PLUGIN_WORDS)
    return plugins or _PLUGIN_TAG in tags(interface)


def _is_of(group: Mapping[str, Any], cluster: str) -> bool:
    return cluster in _owners(tags(group))


def _owners(found: Mapping[str, str]) -> Iterator[str]:
    for key in (_BALANCER_TAG, _EKS_TAG, _AUTO_MODE_TAG):
        if key in found:
            yield found[key]
