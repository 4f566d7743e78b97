"""What others have in the VPC of a cluster, for which it will not go: seen before anything does."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ultrascale.account import Account
from ultrascale.teardown.balancers import balancers, name_of
from ultrascale.teardown.remains import description, in_vpc, is_others, tags, used_by_others
from ultrascale.teardown.tagged import LIVE, instances

# Tags whose value is the name of the cluster that an instance is a node of.
_OWNERS = ("aws:eks:cluster-name", "eks:cluster-name", "eks:eks-cluster-name")
_BALANCER = re.compile(r"ELB (.+)")
_FUNCTION = re.compile(r"AWS Lambda VPC ENI-(.+)")
# CloudFormation begins the name of a function with so much of its stack's at least. Functions share
# interfaces, which go on being called as the first of them was, whatever replaced it.
# Source: https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html
_BEGIN = 20
_DATABASE = "RDSNetworkInterface"


def strangers(
    account: Account,
    cluster: str,
    vpc: str,
    own: frozenset[str],
    *,
    has_database: bool,
) -> list[Mapping[str, Any]]:
    """Return the network interfaces in a VPC that nothing of a cluster's teardown takes away.

    Args:
        account: The account.
        cluster: Name of the cluster.
        vpc: Id of the VPC.
        own: Ids of what the stacks and the plan delete.
        has_database: Whether a database of the cluster is in the VPC: its interfaces do not say
            whose they are.

    Raises:
        UnansweredError: Something could not be asked.
    """
    used = used_by_others(account, vpc, own)
    nodes = _nodes(account, cluster, vpc, used)
    balanced = {name_of(arn) for arn in balancers(account, cluster)} if used else set[str]()
    found: list[Mapping[str, Any]] = []
    for each in used:
        about = description(each)
        balancer, function = _BALANCER.fullmatch(about), _FUNCTION.fullmatch(about)
        if balancer is not None:
            strange = balancer[1] not in balanced
        elif function is not None:
            strange = not function[1].startswith(cluster[:_BEGIN])
        elif about == _DATABASE:
            strange = not has_database
        else:
            strange = is_others(each, cluster) or _instance(each, account.id) not in nodes
        if strange:
            found.append(each)
    return found


def _instance(interface: Mapping[str, Any], account: str) -> str:
    """Return the instance of the account that has an interface; empty where none has.

    Services attach interfaces to instances of theirs.
    """
    attached = interface.get("Attachment", {})
    return attached.get("InstanceId", "") if attached.get("InstanceOwnerId") == account else ""


def _nodes(
    account: Account, cluster: str, vpc: str, used: Iterable[Mapping[str, Any]]
) -> frozenset[str]:
    """Return the instances in a VPC that are nodes of a cluster, and what stands for none."""
    if not any(_instance(each, account.id) for each in used):
        return frozenset({""})
    found = instances(account, [*in_vpc(vpc), LIVE])
    return frozenset(
        instance["InstanceId"] for instance in found if _is_node(tags(instance), cluster)
    ) | {""}


def _is_node(found: Mapping[str, str], cluster: str) -> bool:
    owned = any(found.get(key) == cluster for key in _OWNERS)
    return owned or f"kubernetes.io/cluster/{cluster}" in found
