"""EC2 resources, load balancers and instance profiles made by EKS, Karpenter and drivers.

Their makers tag them with the name of the cluster.

Sources:
    https://docs.aws.amazon.com/eks/latest/userguide/eks-using-tags.html
    https://karpenter.sh/docs/concepts/nodeclasses/#spectags
    https://github.com/kubernetes-sigs/aws-ebs-csi-driver/blob/master/docs/tagging.md
    https://kubernetes-sigs.github.io/aws-load-balancer-controller/latest/guide/service/annotations/
    https://docs.aws.amazon.com/eks/latest/userguide/auto-elb-example.html
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from ultrascale.account import Account
from ultrascale.catalog import vpc
from ultrascale.documents import text
from ultrascale.teardown import prices
from ultrascale.teardown.model import Found, Scope, Search, Thing

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import (
        FilterTypeDef,
        InstanceTypeDef,
        NetworkInterfaceTypeDef,
        SecurityGroupTypeDef,
    )
    from mypy_boto3_resourcegroupstaggingapi.type_defs import TagFilterTypeDef

INSTANCE, VOLUME = "AWS::EC2::Instance", "AWS::EC2::Volume"
SNAPSHOT, ADDRESS = "AWS::EC2::Snapshot", "AWS::EC2::EIP"
INTERFACE, SECURITY_GROUP = "AWS::EC2::NetworkInterface", "AWS::EC2::SecurityGroup"
LAUNCH_TEMPLATE = "AWS::EC2::LaunchTemplate"
SCALING_GROUP = "AWS::AutoScaling::AutoScalingGroup"
LOAD_BALANCER = "AWS::ElasticLoadBalancingV2::LoadBalancer"
CLASSIC_LOAD_BALANCER = "AWS::ElasticLoadBalancing::LoadBalancer"
INSTANCE_PROFILE = "AWS::IAM::InstanceProfile"

PLUGIN_TAG = vpc.CLUSTER_TAG
"""Tag of the network plugin on its interfaces; its value is the cluster's name."""
BALANCER_TAG = "elbv2.k8s.aws/cluster"
"""Tag of the AWS Load Balancer Controller; its value is the cluster's name."""
EKS_TAG, AUTO_MODE_TAG = "aws:eks:cluster-name", "eks:eks-cluster-name"
"""Tags of EKS and of EKS Auto Mode; their value is the cluster's name."""
_NODE_GROUP_TAG = "eks:cluster-name"
# Tags with the name of the cluster as their value.
_NAME_TAGS = (
    EKS_TAG,
    _NODE_GROUP_TAG,
    AUTO_MODE_TAG,
    "ebs.csi.aws.com/cluster-name",
    BALANCER_TAG,
    PLUGIN_TAG,
)
_POOL_TAG = "karpenter.sh/nodepool"
_SCALING_GROUP_TAG = "aws:autoscaling:groupName"
_CLAIM_TAG = "kubernetes.io/created-for/pvc/name"
# Value of `owned_tag` on a resource that several clusters use; none of them may delete it.
# Source: https://github.com/kubernetes/cloud-provider-aws/blob/master/pkg/providers/v1/tags.go
_SHARED = "shared"
_STOPPED = frozenset({"stopping", "stopped"})
# Without pages, EC2 answers for a large fleet or VPC too late, or not at all.
# Source: https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-pagination.html
_PAGE = 1000
LIVE: "FilterTypeDef" = {
    "Name": "instance-state-name",
    "Values": ["pending", "running", "stopping", "stopped"],
}
"""EC2's filter for instances that are not terminated."""
Listing = Callable[[Account, "list[FilterTypeDef]"], Iterator[Found]]
"""Function that lists the resources of a kind that pass EC2's filters."""


def by_tags(listing: Listing) -> tuple[Search, ...]:
    """Return searches for a kind of resource: one for each tag whose value is a cluster's name.

    Each search is a request of its own: a refusal of one hides no result of another.
    """
    return (
        lambda scope: listing(scope.account, [_owner_filter(scope.plan.name)]),
        *(partial(_resources_by_name_tag, listing, key) for key in _NAME_TAGS),
    )


def _resources_by_name_tag(listing: Listing, key: str, scope: Scope) -> Iterator[Found]:
    return listing(scope.account, [{"Name": f"tag:{key}", "Values": [scope.plan.name]}])


def _is_shared(own: Mapping[str, str], filters: "list[FilterTypeDef]") -> bool:
    """Return whether tags mark a resource as shared: then no cluster may delete it."""
    wanted = {value for condition in filters for value in condition.get("Values", ())}
    return any(key in wanted and value == _SHARED for key, value in own.items())


def owned_tag(cluster: str) -> str:
    """Return the key of the tag that several makers set on resources of a cluster."""
    return f"kubernetes.io/cluster/{cluster}"


def _owner_filter(cluster: str) -> "FilterTypeDef":
    return {"Name": "tag-key", "Values": [owned_tag(cluster)]}


def in_vpc(vpc: str) -> "list[FilterTypeDef]":
    """Return EC2's filter for the resources in a VPC."""
    return [{"Name": "vpc-id", "Values": [vpc]}]


def tags(listed: Iterable[object]) -> Mapping[str, str]:
    """Return a resource's tags as a mapping; AWS answers a list of keys and values."""
    return {text(tag, "Key"): text(tag, "Value") for tag in listed}


def instances(account: Account, filters: "list[FilterTypeDef]") -> "list[InstanceTypeDef]":
    """Return the instances that pass EC2's filters."""
    return account.ask_all(
        account.client("ec2").describe_instances,
        lambda page: [
            instance
            for reservation in page["Reservations"]
            for instance in reservation["Instances"]
        ],
        Filters=filters,
        MaxResults=_PAGE,
    )


def interfaces(account: Account, filters: "list[FilterTypeDef]") -> "list[NetworkInterfaceTypeDef]":
    """Return the network interfaces that pass EC2's filters."""
    return account.ask_all(
        account.client("ec2").describe_network_interfaces,
        lambda page: page["NetworkInterfaces"],
        Filters=filters,
        MaxResults=_PAGE,
    )


def is_in(account: Account, found: "NetworkInterfaceTypeDef | SecurityGroupTypeDef") -> bool:
    """Return whether a resource is in our account: a VPC's owner sees all participants' resources.

    Source: https://docs.aws.amazon.com/vpc/latest/userguide/vpc-sharing.html
    """
    return found.get("OwnerId", account.id) == account.id


def interface_words(interface: "NetworkInterfaceTypeDef") -> str:
    """Return id, status and description of a network interface."""
    about = interface.get("Description") or interface.get("InterfaceType", "")
    return f"{interface['NetworkInterfaceId']} {interface['Status']}: {about}"


def nodes_of_pools(account: Account, cluster: str) -> tuple[Found, ...]:
    """Return the running nodes of a cluster's NodePools, which only its API server can end.

    Raises:
        UnansweredError: AWS did not answer.
    """
    owners: tuple[FilterTypeDef, ...] = (
        _owner_filter(cluster),
        {"Name": f"tag:{AUTO_MODE_TAG}", "Values": [cluster]},
    )
    of_pools: FilterTypeDef = {"Name": "tag-key", "Values": [_POOL_TAG]}
    nodes = (node for owner in owners for node in list_instances(account, [owner, of_pools]))
    return tuple({node.thing.id: node for node in nodes}.values())


def is_node(instance_tags: Mapping[str, str], cluster: str) -> bool:
    """Return whether the tags of an instance say that it is a node of a cluster."""
    named = (EKS_TAG, _NODE_GROUP_TAG, AUTO_MODE_TAG)
    return owned_tag(cluster) in instance_tags or any(
        instance_tags.get(key) == cluster for key in named
    )


def list_instances(account: Account, filters: "list[FilterTypeDef]") -> Iterator[Found]:
    """Yield instances, each with its reservation and the group that would replace it."""
    for instance in instances(account, [*filters, LIVE]):
        state, type = instance["State"].get("Name", ""), instance["InstanceType"]
        own = tags(instance.get("Tags", []))
        if _is_shared(own, filters):
            continue
        note = " ".join(filter(None, (type, state, _maker_name(own))))
        thing = Thing(kind=INSTANCE, id=instance["InstanceId"], note=note)
        if state in _STOPPED:
            why = "it is stopped, and its volumes are paid for"
            yield Found(thing=thing, why=why, price=prices.UNKNOWN)
            continue
        block, group = instance.get("CapacityReservationId"), own.get(_SCALING_GROUP_TAG)
        why = f"it runs on, and holds {block}" if block else "it runs on"
        if group:
            why += f"; the Auto Scaling group {group} replaces it: delete that first"
        yield Found(thing=thing, why=why, price=prices.of_instance(account.region, type))


def list_volumes(account: Account, filters: "list[FilterTypeDef]") -> Iterator[Found]:
    """Yield volumes, each with the name of its PersistentVolumeClaim."""
    for volume in account.ask_all(
        account.client("ec2").describe_volumes, lambda page: page["Volumes"], Filters=filters
    ):
        own = tags(volume.get("Tags", []))
        if _is_shared(own, filters):
            continue
        claim = own.get(_CLAIM_TAG, _maker_name(own))
        yield Found(
            thing=Thing(kind=VOLUME, id=volume["VolumeId"], note=claim),
            why=f"no driver has deleted it: {volume['State']}",
            price=prices.of_volume(volume.get("VolumeType", ""), volume["Size"]),
        )


def list_snapshots(account: Account, filters: "list[FilterTypeDef]") -> Iterator[Found]:
    """Yield snapshots of the account."""
    for snapshot in account.ask_all(
        account.client("ec2").describe_snapshots,
        lambda page: page["Snapshots"],
        # Without an owner, EC2 goes through all public snapshots, and does not answer in time.
        # Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSnapshots.html
        OwnerIds=["self"],
        Filters=filters,
    ):
        own = tags(snapshot.get("Tags", []))
        if _is_shared(own, filters):
            continue
        yield Found(
            thing=Thing(kind=SNAPSHOT, id=snapshot["SnapshotId"], note=_maker_name(own)),
            why="no driver has deleted it",
            price=prices.of_snapshot(snapshot["VolumeSize"]),
        )


def list_addresses(account: Account, filters: "list[FilterTypeDef]") -> Iterator[Found]:
    """Yield Elastic IP addresses."""
    for address in account.ask_all(
        account.client("ec2").describe_addresses, lambda page: page["Addresses"], Filters=filters
    ):
        if _is_shared(tags(address.get("Tags", [])), filters):
            continue
        note = address.get("PublicIp", "")
        thing = Thing(kind=ADDRESS, id=address["AllocationId"], note=note)
        yield Found(thing=thing, why="nobody releases it")


def list_interfaces(account: Account, filters: "list[FilterTypeDef]") -> Iterator[Found]:
    """Yield network interfaces, each with its description."""
    for interface in interfaces(account, filters):
        own = tags(interface.get("TagSet", []))
        if _is_shared(own, filters) or not is_in(account, interface):
            continue
        note = interface.get("Description", "")
        yield Found(
            thing=Thing(kind=INTERFACE, id=interface["NetworkInterfaceId"], note=note),
            why=f"its node or controller left it: {interface['Status']}",
        )


def list_security_groups(account: Account, filters: "list[FilterTypeDef]") -> Iterator[Found]:
    """Yield security groups, each with its name."""
    for group in account.ask_all(
        account.client("ec2").describe_security_groups,
        lambda page: page["SecurityGroups"],
        Filters=filters,
    ):
        own = tags(group.get("Tags", []))
        if _is_shared(own, filters) or not is_in(account, group):
            continue
        note = group.get("GroupName", _maker_name(own))
        thing = Thing(kind=SECURITY_GROUP, id=group["GroupId"], note=note)
        yield Found(thing=thing, why="its controller left it")


def list_launch_templates(account: Account, filters: "list[FilterTypeDef]") -> Iterator[Found]:
    """Yield launch templates."""
    for template in account.ask_all(
        account.client("ec2").describe_launch_templates,
        lambda page: page["LaunchTemplates"],
        Filters=filters,
    ):
        if _is_shared(tags(template.get("Tags", [])), filters):
            continue
        note = template.get("LaunchTemplateName", "")
        thing = Thing(kind=LAUNCH_TEMPLATE, id=template["LaunchTemplateId"], note=note)
        yield Found(thing=thing, why="its controller left it")


def list_scaling_groups(account: Account, filters: "list[FilterTypeDef]") -> Iterator[Found]:
    """Yield Auto Scaling groups, each with the number of its instances."""
    for group in account.ask_all(
        account.client("autoscaling").describe_auto_scaling_groups,
        lambda page: page["AutoScalingGroups"],
        Filters=filters,
    ):
        if _is_shared(tags(group.get("Tags", [])), filters):
            continue
        note = f"of {group['DesiredCapacity']} instances"
        thing = Thing(kind=SCALING_GROUP, id=group["AutoScalingGroupName"], note=note)
        yield Found(thing=thing, why="it launches instances anew")


def _maker_name(own: Mapping[str, str]) -> str:
    """Return the name that the maker of a resource gave it, or else its NodePool's name."""
    return own.get("Name") or own.get(_POOL_TAG, "")


def balancer_arns(account: Account, cluster: str) -> Iterator[str]:
    """Yield the ARNs of the load balancers that controllers made for a cluster."""
    owners: tuple[TagFilterTypeDef, ...] = (
        {"Key": owned_tag(cluster)},
        {"Key": BALANCER_TAG, "Values": [cluster]},
        {"Key": AUTO_MODE_TAG, "Values": [cluster]},
    )
    for owner in owners:
        tagged = account.ask_all(
            account.client("resourcegroupstaggingapi").get_resources,
            lambda page: page["ResourceTagMappingList"],
            TagFilters=[owner],
            ResourceTypeFilters=["elasticloadbalancing:loadbalancer"],
        )
        for found in tagged:
            if tags(found.get("Tags", [])).get(owned_tag(cluster)) != _SHARED:
                yield found["ResourceARN"]


def balancer_name(arn: str) -> str:
    """Return the name that a load balancer has in the descriptions of its network interfaces."""
    return arn.partition("loadbalancer/")[2]


def load_balancers(scope: Scope) -> Iterator[Found]:
    """Yield the load balancers of a cluster; a classic load balancer's name has no ``/``."""
    for arn in balancer_arns(scope.account, scope.plan.name):
        kind = LOAD_BALANCER if "/" in balancer_name(arn) else CLASSIC_LOAD_BALANCER
        why = "its Service or Ingress went while its controller did not run"
        yield Found(thing=Thing(kind=kind, id=arn), why=why)


def instance_profiles(scope: Scope) -> Iterator[Found]:
    """Yield the instance profiles that Karpenter made for the node classes of a cluster.

    Source: https://karpenter.sh/docs/concepts/nodeclasses/#specrole
    """
    account, plan = scope.account, scope.plan
    for profile in account.ask_all(
        account.client("iam").list_instance_profiles,
        lambda page: page["InstanceProfiles"],
        PathPrefix=f"/karpenter/{plan.region}/{plan.name}/",
    ):
        thing = Thing(kind=INSTANCE_PROFILE, id=profile["InstanceProfileName"])
        yield Found(thing=thing, why="Karpenter went before its EC2NodeClass")
