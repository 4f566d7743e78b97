"""Network interfaces and security groups that controllers of Kubernetes left in a VPC.

The network plugin leaves interfaces behind of a node that ends too fast for it, and each of them
keeps a subnet and a security group from being deleted.

Sources:
    https://github.com/aws/amazon-vpc-cni-k8s/blob/master/docs/troubleshooting.md
    https://docs.aws.amazon.com/eks/latest/userguide/auto-disable.html (security groups)
    https://kubernetes-sigs.github.io/aws-load-balancer-controller/latest/guide/service/annotations/
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from ultrascale.account import Account
from ultrascale.errors import UnansweredError
from ultrascale.teardown.model import State, StoppedError, Thing
from ultrascale.teardown.retained import SECURITY_GROUP, RetainedTarget

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import FilterTypeDef

INTERFACE = "AWS::EC2::NetworkInterface"
_ABSENT = "InvalidNetworkInterfaceID.NotFound"
_PLUGIN_TAG = "cluster.k8s.amazonaws.com/name"
_BALANCER_TAG = "elbv2.k8s.aws/cluster"
_EKS_TAG = "aws:eks:cluster-name"
_AUTO_MODE_TAG = "eks:eks-cluster-name"
# The network plugin of a node writes so before it knows the cluster.
_PLUGIN_WORDS = "aws-K8S-"
# So EKS describes the interfaces of a control plane.
_EKS_WORDS = "Amazon EKS "
# How descriptions name what has an interface: gateways, endpoints, attachments, file systems.
_NAMED = re.compile(r"\b(?:nat|vpce|tgw-attach|rslvr-in|rslvr-out|fs)-[0-9a-f]+")
_SHOWN = 5
# EC2 answers a request for all of a large VPC at once too late, or not at all.
# Source: https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-pagination.html
_PAGE = 1000


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
            self.account.ask(
                self.account.client("ec2").describe_network_interfaces,
                NetworkInterfaceIds=[self.id],
            )
        except UnansweredError as error:
            if error.code == _ABSENT:
                return "gone"
            raise
        return "there"

    def remove(self) -> None:
        """Delete it. One that is in use again is left alone: EC2 refuses that, and it is told."""
        try:
            self.account.ask(
                self.account.client("ec2").delete_network_interface, NetworkInterfaceId=self.id
            )
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
            fix=f"`aws ec2 describe-network-interfaces --network-interface-ids {self.id} --region "
            f"{self.account.region}` says by what; end that, then run the command again: it "
            "goes on here",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class VpcGate:
    """Lets a VPC go only once nothing is in it that the plan did not print.

    CloudFormation would take its gateways, routes and endpoints before it fails at a subnet that is
    in use, and leave what is in that, such as another cluster, without a network.

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
        if self._unprinted():
            return "there"
        used = self._used()
        # AWS takes those of functions, load balancers and control planes away, in its own time.
        return "there" if any(map(self._stays, used)) else "going" if used else "gone"

    def remove(self) -> None:
        """Stop: what the plan did not print is never deleted."""
        raise self.stuck()

    def stuck(self) -> StoppedError:
        """Return what is in it: remains since the plan was printed, or what others have there."""
        unprinted = self._unprinted()
        used = self._used()
        if used and not unprinted:
            return StoppedError(
                f"VPC {self.vpc}",
                why=in_use(used),
                fix="where they are another cluster's, or a service's that needs the VPC, leave it "
                "as it is; else remove what has them, then run the command again: it goes on here",
            )
        left = ", ".join(str(each) for each in unprinted)
        return StoppedError(
            f"VPC {self.vpc}",
            why=f"left in it since the plan was printed: {left or 'nothing any more'}",
            fix="run the command again: the new plan prints and deletes it",
        )

    def _unprinted(self) -> list[Thing]:
        found = remains(self.account, self.cluster, self.vpc, frozenset())
        return [each.thing for each in found if each.id not in self.own]

    def _used(self) -> list[Mapping[str, Any]]:
        return used_by_others(self.account, self.vpc, self.own)

    def _stays(self, interface: Mapping[str, Any]) -> bool:
        """Return whether nobody takes an interface away: an instance has it, or another's is it."""
        return is_others(interface, self.cluster) or "InstanceId" in interface.get("Attachment", {})


def used_by_others(account: Account, vpc: str, own: frozenset[str]) -> list[Mapping[str, Any]]:
    """Return the interfaces in a VPC that neither stacks nor the plan delete.

    Those of gateways and endpoints name them in their descriptions.

    Args:
        account: The account.
        vpc: Id of the VPC.
        own: Ids of what the stacks and the plan delete.
    """
    found = account.ask_all(
        account.client("ec2").describe_network_interfaces,
        lambda page: page["NetworkInterfaces"],
        Filters=in_vpc(vpc),
        MaxResults=_PAGE,
    )
    return [
        each
        for each in found
        if own.isdisjoint({each["NetworkInterfaceId"], *_NAMED.findall(description(each))})
    ]


def is_others(interface: Mapping[str, Any], cluster: str) -> bool:
    """Return whether an interface is another cluster's, or of a gateway, endpoint or file system.

    Args:
        interface: One that no stack has.
        cluster: Name of the cluster.
    """
    about = description(interface)
    other = about.startswith(_EKS_WORDS) and about != _EKS_WORDS + cluster
    return other or _NAMED.search(about) is not None


def description(interface: Mapping[str, Any]) -> str:
    """Return what an interface says of itself."""
    return str(interface.get("Description", ""))


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
    every = account.ask_all(
        account.client("ec2").describe_network_interfaces,
        lambda page: page["NetworkInterfaces"],
        Filters=in_vpc(vpc),
        MaxResults=_PAGE,
    )
    for each in every:
        if each["Status"] == "available" and _is_plugins(each, cluster):
            id = each["NetworkInterfaceId"]
            if id not in stacks:
                note = each.get("Description", "")
                found.append(InterfaceTarget(account=account, id=id, note=note))
    for each in account.ask_all(
        account.client("ec2").describe_security_groups,
        lambda page: page["SecurityGroups"],
        Filters=in_vpc(vpc),
    ):
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


def in_vpc(vpc: str) -> "list[FilterTypeDef]":
    """Return EC2's filter for what lies in a VPC."""
    return [{"Name": "vpc-id", "Values": [vpc]}]


def tags(found: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the tags of a resource of EC2."""
    listed = cast("list[Mapping[str, str]]", found.get("Tags") or found.get("TagSet") or [])
    return {each["Key"]: each["Value"] for each in listed}


def _is_plugins(interface: Mapping[str, Any], cluster: str) -> bool:
    """Return whether the network plugin of a cluster made an interface, or that of an unknown one.

    Another cluster may be in the VPC, whose plugin is about to attach what it has just made.
    """
    owner = tags(interface).get(_PLUGIN_TAG)
    plugins = str(interface.get("Description", "")).startswith(_PLUGIN_WORDS)
    return plugins if owner is None else owner == cluster


def in_use(used: Sequence[Mapping[str, Any]]) -> str:
    """Return that a VPC is in use by interfaces."""
    shown = ", ".join(_described(each) for each in used[:_SHOWN])
    more = f" and {len(used) - _SHOWN} more" if len(used) > _SHOWN else ""
    return f"it is in use by network interfaces of no stack of the cluster: {shown}{more}"


def _described(interface: Mapping[str, Any]) -> str:
    about = interface.get("Description") or interface.get("InterfaceType", "")
    return f"{interface['NetworkInterfaceId']} {interface['Status']}: {about}"


def _is_of(group: Mapping[str, Any], cluster: str) -> bool:
    return cluster in _owners(tags(group))


def _owners(found: Mapping[str, str]) -> Iterator[str]:
    for key in (_BALANCER_TAG, _EKS_TAG, _AUTO_MODE_TAG):
        if key in found:
            yield found[key]
