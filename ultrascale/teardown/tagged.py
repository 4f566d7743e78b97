"""What is left of a cluster in EC2 and in Auto Scaling, found by the tags of those who made it.

Sources:
    https://docs.aws.amazon.com/eks/latest/userguide/eks-using-tags.html
    https://karpenter.sh/docs/concepts/nodeclasses/#spectags
    https://github.com/kubernetes-sigs/aws-ebs-csi-driver/blob/master/docs/tagging.md
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ultrascale.account import Account
from ultrascale.teardown import prices
from ultrascale.teardown.model import Left, Thing
from ultrascale.teardown.remains import tags
from ultrascale.teardown.retained import SECURITY_GROUP

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import FilterTypeDef, InstanceTypeDef

INSTANCE = "AWS::EC2::Instance"
LIVE: "FilterTypeDef" = {
    "Name": "instance-state-name",
    "Values": ["pending", "running", "stopping", "stopped"],
}
"""EC2's filter for instances that are there."""
_GROUP = "AWS::AutoScaling::AutoScalingGroup"
_GROUP_TAG = "aws:autoscaling:groupName"
_POOL = "karpenter.sh/nodepool"
_OWNED = "kubernetes.io/cluster/"
# A group that several clusters use has this for the value of that tag; none of them may delete it.
# Source: https://github.com/kubernetes/cloud-provider-aws/blob/master/pkg/providers/v1/tags.go
_SHARED = "shared"
_STOPPED = frozenset({"stopping", "stopped"})
# EC2 answers a request for all of a large fleet at once too late, or not at all.
# Source: https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-pagination.html
PAGE = 1000
"""Results in a page."""
Question = Callable[[], Iterator[Left]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """A kind of resources that are tagged by who made them.

    Attributes:
        type: CloudFormation's name of the type.
        found: Lists those that pass filters.
        id: Where the id stands in an element.
        remove: The command that removes one.
        service: The service, as the AWS CLI calls it.
        paid: Whether one costs while it is not used.
        filters: More filters of the request.
    """

    type: str
    found: "Callable[[Account, list[FilterTypeDef]], Iterable[Mapping[str, Any]]]"
    id: str
    remove: str
    service: str = "ec2"
    paid: bool = True
    filters: "Sequence[FilterTypeDef]" = ()


_KINDS = (
    _Kind(
        type=INSTANCE,
        found=lambda account, filters: instances(account, filters),
        id="InstanceId",
        remove="terminate-instances --instance-ids",
        filters=(LIVE,),
    ),
    _Kind(
        type="AWS::EC2::Volume",
        found=lambda account, filters: account.ask_all(
            account.client("ec2").describe_volumes, lambda page: page["Volumes"], Filters=filters
        ),
        id="VolumeId",
        remove="delete-volume --volume-id",
    ),
    _Kind(
        type="AWS::EC2::Snapshot",
        found=lambda account, filters: account.ask_all(
            account.client("ec2").describe_snapshots,
            lambda page: page["Snapshots"],
            OwnerIds=["self"],
            Filters=filters,
        ),
        id="SnapshotId",
        remove="delete-snapshot --snapshot-id",
        # Else EC2 goes through the public ones of all accounts, and does not answer in time.
        # Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSnapshots.html
    ),
    _Kind(
        type="AWS::EC2::EIP",
        found=lambda account, filters: account.ask_all(
            account.client("ec2").describe_addresses,
            lambda page: page["Addresses"],
            Filters=filters,
        ),
        id="AllocationId",
        remove="release-address --allocation-id",
    ),
    _Kind(
        type="AWS::EC2::NetworkInterface",
        found=lambda account, filters: account.ask_all(
            account.client("ec2").describe_network_interfaces,
            lambda page: page["NetworkInterfaces"],
            Filters=filters,
            MaxResults=PAGE,
        ),
        id="NetworkInterfaceId",
        remove="delete-network-interface --network-interface-id",
        paid=False,
    ),
    _Kind(
        type=SECURITY_GROUP,
        found=lambda account, filters: account.ask_all(
            account.client("ec2").describe_security_groups,
            lambda page: page["SecurityGroups"],
            Filters=filters,
        ),
        id="GroupId",
        remove="delete-security-group --group-id",
        paid=False,
    ),
    _Kind(
        type="AWS::EC2::LaunchTemplate",
        found=lambda account, filters: account.ask_all(
            account.client("ec2").describe_launch_templates,
            lambda page: page["LaunchTemplates"],
            Filters=filters,
        ),
        id="LaunchTemplateId",
        remove="delete-launch-template --launch-template-id",
        paid=False,
    ),
    _Kind(
        type=_GROUP,
        found=lambda account, filters: account.ask_all(
            account.client("autoscaling").describe_auto_scaling_groups,
            lambda page: page["AutoScalingGroups"],
            Filters=filters,
        ),
        id="AutoScalingGroupName",
        service="autoscaling",
        remove="delete-auto-scaling-group --force-delete --auto-scaling-group-name",
        paid=False,
    ),
)


def instances(account: Account, filters: "list[FilterTypeDef]") -> "list[InstanceTypeDef]":
    """Return the instances that pass EC2's filters."""
    return account.ask_all(
        account.client("ec2").describe_instances,
        lambda page: [each for found in page["Reservations"] for each in found["Instances"]],
        Filters=filters,
        MaxResults=PAGE,
    )


def tagged_questions(account: Account, cluster: str) -> Iterator[Question]:
    """Yield what is to be asked, each by itself: one that is refused hides no other.

    Args:
        account: The account.
        cluster: Name of the cluster.
    """
    for tag in _tag_filters(cluster):
        for kind in _KINDS:
            yield partial(_tagged, account, kind, tag)


def nodes_of_pools(account: Account, cluster: str) -> tuple[Left, ...]:
    """Return the instances of a cluster that only its API server can end: NodePools' nodes.

    Args:
        account: The account.
        cluster: Name of the cluster.

    Raises:
        UnansweredError: Nobody could tell.
    """
    kind = replace(_KINDS[0], filters=(LIVE, {"Name": "tag-key", "Values": [_POOL]}))
    owners: tuple[FilterTypeDef, ...] = (
        {"Name": "tag-key", "Values": [f"{_OWNED}{cluster}"]},
        {"Name": "tag:eks:eks-cluster-name", "Values": [cluster]},
    )
    found = (each for owner in owners for each in _tagged(account, kind, owner))
    return tuple({each.thing.id: each for each in found}.values())


def _tag_filters(cluster: str) -> "Iterator[FilterTypeDef]":
    """Yield EC2's filters for what EKS, Karpenter and the drivers tag."""
    yield {"Name": "tag-key", "Values": [f"{_OWNED}{cluster}"]}
    for key in (
        "aws:eks:cluster-name",
        "eks:cluster-name",
        "eks:eks-cluster-name",
        "ebs.csi.aws.com/cluster-name",
        "elbv2.k8s.aws/cluster",
        "cluster.k8s.amazonaws.com/name",
    ):
        yield {"Name": f"tag:{key}", "Values": [cluster]}


def _tagged(account: Account, kind: _Kind, tag: "FilterTypeDef") -> Iterator[Left]:
    filters = [tag, *kind.filters]
    for each in kind.found(account, filters):
        if kind.type == SECURITY_GROUP and _is_shared(each, tag):
            continue
        note, why, (price, hourly) = _facts(account.region, kind.type, each)
        yield Left(
            thing=Thing(kind=kind.type, id=each[kind.id], note=note),
            why=why,
            command=f"aws {kind.service} {kind.remove} {each[kind.id]} --region {account.region}",
            price=price,
            paid=kind.paid,
            usd_per_hour=hourly,
        )


def _is_shared(found: Mapping[str, Any], tag: "FilterTypeDef") -> bool:
    return any(
        key in tag["Values"] and value == _SHARED
        for key, value in tags(found).items()
        if key.startswith(_OWNED)
    )


def _facts(region: str, type: str, found: Mapping[str, Any]) -> tuple[str, str, prices.Price]:
    """Return what tells a resource from others, why it stays, and its price."""
    made_by = tags(found).get("Name") or tags(found).get(_POOL, "")
    match type:
        case _ if type == INSTANCE:
            state = found["State"]["Name"]
            note = " ".join(filter(None, (found["InstanceType"], state, made_by)))
            if state in _STOPPED:
                return note, "it is stopped, and its volumes are paid for", prices.UNKNOWN
            block = found.get("CapacityReservationId")
            group = tags(found).get(_GROUP_TAG)
            why = f"it runs on, and holds {block}" if block else "it runs on"
            why += (
                f"; the Auto Scaling group {group} replaces it: delete that first" if group else ""
            )
            return note, why, prices.of_instance(region, found["InstanceType"])
        case "AWS::EC2::Volume":
            claim = tags(found).get("kubernetes.io/created-for/pvc/name", made_by)
            price = prices.of_volume(found.get("VolumeType", ""), found["Size"])
            return claim, f"no driver has deleted it: {found['State']}", price
        case "AWS::EC2::Snapshot":
            return made_by, "no driver has deleted it", prices.of_snapshot(found["VolumeSize"])
        case "AWS::EC2::EIP":
            return found.get("PublicIp", ""), "nobody releases it", prices.of_type(type)
        case _ if type == _GROUP:
            count = found["DesiredCapacity"]
            return f"of {count} instances", "it launches instances anew", prices.UNKNOWN
        case "AWS::EC2::NetworkInterface":
            about = found.get("Description", "")
            return about, f"its node or controller left it: {found['Status']}", prices.UNKNOWN
        case _:
            name = found.get("GroupName") or found.get("LaunchTemplateName", made_by)
            return name, "its controller left it", prices.UNKNOWN
