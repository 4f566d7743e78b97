"""Orphans in a VPC: interfaces and security groups that keep it from being deleted.

The network plugin leaves interfaces behind where a node ends too fast; each keeps a subnet
and a security group from being deleted. Interfaces of another cluster or service keep
the VPC. `inventory` says how each kind is deleted.

Sources:
    https://github.com/aws/amazon-vpc-cni-k8s/blob/master/docs/troubleshooting.md
    https://docs.aws.amazon.com/eks/latest/userguide/auto-disable.html (security groups)
    https://kubernetes-sigs.github.io/aws-load-balancer-controller/latest/guide/service/annotations/
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ultrascale.account import Account
from ultrascale.frozen import Frozen
from ultrascale.teardown.ec2 import (
    AUTO_MODE_TAG,
    BALANCER_TAG,
    EKS_TAG,
    INTERFACE,
    LIVE,
    PLUGIN_TAG,
    SECURITY_GROUP,
    balancer_arns,
    balancer_name,
    in_vpc,
    instances,
    interface_words,
    interfaces,
    is_in,
    is_node,
    tags,
)
from ultrascale.teardown.model import State, StoppedError, Thing

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import NetworkInterfaceTypeDef

# Description of a plugin's interface while the plugin does not know its cluster.
_PLUGIN_WORDS = "aws-K8S-"
# Description of the interfaces of a control plane.
_EKS_WORDS = "Amazon EKS "
_DATABASE_WORDS = "RDSNetworkInterface"
_BALANCER_WORDS = re.compile(r"ELB (.+)")
_FUNCTION_WORDS = re.compile(r"AWS Lambda VPC ENI-(.+)")
# Ids of gateways, endpoints, attachments and file systems in the descriptions of their interfaces.
_NAMED = re.compile(r"\b(?:nat|vpce|tgw-attach|rslvr-in|rslvr-out|fs)-[0-9a-f]+")
# A function's name begins with at least this many characters of its stack's name.
# Functions share interfaces, whose descriptions go on naming the first function.
# Source: https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html
_BEGIN = 20
_SHOWN = 5


def orphans(
    account: Account, cluster: str, vpc: str, stacks: frozenset[str], *, vpc_is_ours: bool = True
) -> tuple[Thing, ...]:
    """Return the unused interfaces and the security groups that Kubernetes left in a VPC.

    In a VPC that is not ours, only orphans in our account that name the cluster: others, and those
    of accounts that the VPC is shared with, are somebody else's.

    Args:
        account: The account.
        cluster: Name of the cluster.
        vpc: Id of the VPC.
        stacks: Ids of resources that stacks delete.
        vpc_is_ours: Whether a stack of the cluster made the VPC.

    Raises:
        UnansweredError: AWS did not answer.
    """
    return (
        *_interfaces(account, cluster, vpc, stacks, vpc_is_ours=vpc_is_ours),
        *_groups(account, cluster, vpc, stacks),
    )


def _interfaces(
    account: Account, cluster: str, vpc: str, stacks: frozenset[str], *, vpc_is_ours: bool
) -> Iterator[Thing]:
    for interface in interfaces(account, in_vpc(vpc)):
        id = interface["NetworkInterfaceId"]
        is_free = interface["Status"] == "available" and id not in stacks
        is_plugins = _is_plugins if vpc_is_ours else _names_cluster
        if is_free and is_in(account, interface) and is_plugins(interface, cluster):
            yield Thing(kind=INTERFACE, id=id, note=_description(interface))


def _groups(account: Account, cluster: str, vpc: str, stacks: frozenset[str]) -> Iterator[Thing]:
    for group in account.ask_all(
        account.client("ec2").describe_security_groups,
        lambda page: page["SecurityGroups"],
        Filters=in_vpc(vpc),
    ):
        own, id = tags(group.get("Tags", [])), group["GroupId"]
        is_clusters = any(own.get(key) == cluster for key in (BALANCER_TAG, EKS_TAG, AUTO_MODE_TAG))
        if is_clusters and id not in stacks and is_in(account, group):
            yield Thing(kind=SECURITY_GROUP, id=id, note=group.get("GroupName", ""))


def _is_plugins(interface: "NetworkInterfaceTypeDef", cluster: str) -> bool:
    """Return whether the network plugin of this cluster, or of an unknown one, made an interface.

    The plugin of another cluster in the VPC may be about to attach a new interface.
    """
    if PLUGIN_TAG in tags(interface.get("TagSet", [])):
        return _names_cluster(interface, cluster)
    return _description(interface).startswith(_PLUGIN_WORDS)


def _names_cluster(interface: "NetworkInterfaceTypeDef", cluster: str) -> bool:
    """Return whether an interface carries a cluster's name as the tag of its network plugin."""
    return tags(interface.get("TagSet", [])).get(PLUGIN_TAG) == cluster


def foreign_interfaces(
    account: Account, cluster: str, vpc: str, own: frozenset[str], *, has_database: bool
) -> tuple["NetworkInterfaceTypeDef", ...]:
    """Return the network interfaces in a VPC that no step of a teardown deletes.

    Args:
        account: The account.
        cluster: Name of the cluster.
        vpc: Id of the VPC.
        own: Ids of resources that the stacks and the plan delete.
        has_database: Whether a database of the cluster is in the VPC: its interfaces do not name
            their owner.

    Raises:
        UnansweredError: AWS did not answer.
    """
    used = _interfaces_in_use(account, vpc, own)
    nodes = _nodes(account, cluster, vpc, used)
    balancers = (
        {balancer_name(arn) for arn in balancer_arns(account, cluster)} if used else set[str]()
    )

    def is_foreign(interface: "NetworkInterfaceTypeDef") -> bool:
        about = _description(interface)
        if balancer := _BALANCER_WORDS.fullmatch(about):
            return balancer[1] not in balancers
        if function := _FUNCTION_WORDS.fullmatch(about):
            return not function[1].startswith(cluster[:_BEGIN])
        if about == _DATABASE_WORDS:
            return not has_database
        instance = _instance(interface, account.id)
        return _is_others(interface, cluster) or bool(instance and instance not in nodes)

    return tuple(filter(is_foreign, used))


def in_use(used: Sequence["NetworkInterfaceTypeDef"]) -> str:
    """Return the sentence that interfaces are in use in a VPC."""
    shown = ", ".join(interface_words(interface) for interface in used[:_SHOWN])
    more = f" and {len(used) - _SHOWN} more" if len(used) > _SHOWN else ""
    return f"it is in use by network interfaces of no stack of the cluster: {shown}{more}"


def _interfaces_in_use(
    account: Account, vpc: str, own: frozenset[str]
) -> list["NetworkInterfaceTypeDef"]:
    """Return the interfaces in a VPC that neither stacks nor the plan delete.

    Interfaces of gateways and endpoints name their owner in the description.
    """
    return [
        interface
        for interface in interfaces(account, in_vpc(vpc))
        if own.isdisjoint(
            {interface["NetworkInterfaceId"], *_NAMED.findall(_description(interface))}
        )
    ]


def _is_others(interface: "NetworkInterfaceTypeDef", cluster: str) -> bool:
    """Return whether an interface belongs to another cluster, or to a service such as a gateway."""
    about = _description(interface)
    other = about.startswith(_EKS_WORDS) and about != _EKS_WORDS + cluster
    return other or _NAMED.search(about) is not None


def _description(interface: "NetworkInterfaceTypeDef") -> str:
    return interface.get("Description", "")


def _instance(interface: "NetworkInterfaceTypeDef", account: str) -> str:
    """Return the account's instance that an interface is attached to; empty without one.

    Services attach interfaces to instances of other accounts.
    """
    attached = interface.get("Attachment", {})
    return attached.get("InstanceId", "") if attached.get("InstanceOwnerId") == account else ""


def _nodes(
    account: Account, cluster: str, vpc: str, used: Iterable["NetworkInterfaceTypeDef"]
) -> frozenset[str]:
    if not any(_instance(interface, account.id) for interface in used):
        return frozenset()
    return frozenset(
        instance["InstanceId"]
        for instance in instances(account, [*in_vpc(vpc), LIVE])
        if is_node(tags(instance.get("Tags", [])), cluster)
    )


class VpcGate(Frozen):
    """Gate that lets a VPC go only once it holds nothing beyond the plan.

    CloudFormation would delete gateways, routes and endpoints before it fails at a subnet that is
    in use: another cluster in that subnet would lose its network.
    """

    account: Account  # The account
    cluster: str  # Name of the cluster
    vpc: str  # Id of the VPC
    own: frozenset[str]  # Ids of resources that the stacks and the plan delete

    @property
    def thing(self) -> Thing:
        """The VPC."""
        return Thing(kind="AWS::EC2::VPC", id=self.vpc, note="until nothing else is in it")

    @property
    def things(self) -> Sequence[Thing]:
        """Nothing: the gate deletes nothing."""
        return ()

    def look(self) -> State:
        """Return `gone` if nothing unknown is left in the VPC."""
        if self._unprinted_orphans():
            return "there"
        used = self._interfaces_in_use()
        # AWS deletes interfaces of functions, load balancers and control planes in its own time.
        return "there" if any(map(self._is_kept_interface, used)) else "going" if used else "gone"

    def remove(self) -> None:
        """Stop the teardown: things that the plan did not print are never deleted."""
        raise self.stuck()

    def stuck(self) -> StoppedError:
        """Return orphans younger than the plan, or the interfaces of other owners."""
        unprinted = self._unprinted_orphans()
        used = self._interfaces_in_use()
        if used and not unprinted:
            return StoppedError(
                f"VPC {self.vpc}",
                why=in_use(used),
                fix="where they are another cluster's, or a service's that needs the VPC, leave it "
                "as it is; else remove what has them, then run the command again: it goes on here",
            )
        left = ", ".join(map(str, unprinted))
        return StoppedError(
            f"VPC {self.vpc}",
            why=f"left in it since the plan was printed: {left or 'nothing any more'}",
            fix="run the command again: the new plan prints and deletes it",
        )

    def _unprinted_orphans(self) -> list[Thing]:
        there = orphans(self.account, self.cluster, self.vpc, frozenset())
        return [thing for thing in there if thing.id not in self.own]

    def _interfaces_in_use(self) -> list["NetworkInterfaceTypeDef"]:
        return _interfaces_in_use(self.account, self.vpc, self.own)

    def _is_kept_interface(self, interface: "NetworkInterfaceTypeDef") -> bool:
        """Return whether an interface stays: it is attached to an instance or has another owner."""
        attached = "InstanceId" in interface.get("Attachment", {})
        return attached or _is_others(interface, self.cluster)
