"""Our own rules over launch templates, node groups and Auto Scaling groups.

Mistakes about accelerators that cost money, lose data, or slow the network.
"""

from collections.abc import Mapping

from ultrascale.documents import JsonObject, look_up, mapping, sequence
from ultrascale_stacks.rule import Properties, Resource, Rule, at

_TEMPLATE = ("AWS::EC2::LaunchTemplate",)
_NODE_GROUP = ("AWS::EKS::Nodegroup",)
_AUTO_SCALING_GROUP = ("AWS::AutoScaling::AutoScalingGroup",)
_FEWEST_SPOT_TYPES = 3
_ZERO = (None, 0, "0")


def _interfaces(resource: Resource) -> list[JsonObject]:
    found = sequence(at(resource, "LaunchTemplateData", "NetworkInterfaces"))
    return [mapping(item) for item in found]


def _bad_layout(resource: Resource) -> bool:
    nics = _interfaces(resource)
    if not nics:
        return False
    places = [(nic.get("NetworkCardIndex"), nic.get("DeviceIndex")) for nic in nics]
    kinds = dict(zip(places, (nic.get("InterfaceType") for nic in nics), strict=True))
    return (
        len(set(places)) < len(places)
        or kinds.get((0, 0)) != "interface"
        or not set(kinds.values()) <= {"interface", "efa-only"}
        or any(not nic.get("Groups") for nic in nics)
    )


def _launch_template_data(resource: Resource) -> Properties:
    return mapping(at(resource, "LaunchTemplateData"))


def _market(data: Properties) -> object:
    return look_up(data, "InstanceMarketOptions", "MarketType")


def _target(data: Properties) -> Properties:
    specification = mapping(data.get("CapacityReservationSpecification"))
    return mapping(specification.get("CapacityReservationTarget"))


def _block_in_placement_group(resource: Resource) -> bool:
    data = _launch_template_data(resource)
    return _market(data) == "capacity-block" and look_up(data, "Placement", "GroupName") is not None


def _block_without_reservation(resource: Resource) -> bool:
    data = _launch_template_data(resource)
    return _market(data) == "capacity-block" and not _target(data)


def _two_preferences(resource: Resource) -> bool:
    data = _launch_template_data(resource)
    preference = look_up(data, "CapacityReservationSpecification", "CapacityReservationPreference")
    return bool(_target(data)) and preference not in {None, "capacity-reservations-only"}


def _block_in_subnets(resource: Resource) -> bool:
    subnets = sequence(at(resource, "Subnets") or at(resource, "VPCZoneIdentifier"))
    return _market(resource.launches) == "capacity-block" and len(subnets) != 1


def _block_that_is_not_drained(resource: Resource) -> bool:
    hooks = [mapping(hook) for hook in sequence(at(resource, "LifecycleHookSpecificationList"))]
    return _market(resource.launches) == "capacity-block" and not any(
        hook.get("LifecycleTransition") == "autoscaling:EC2_INSTANCE_TERMINATING" for hook in hooks
    )


def _block_before_its_start(resource: Resource) -> bool:
    if _market(resource.launches) != "capacity-block":
        return False
    if resource.type in _NODE_GROUP:
        # The desired size is looked up during the deployment.
        stated = [at(resource, "ScalingConfig", key) for key in ("MinSize", "DesiredSize")]
    else:
        stated = [at(resource, key) for key in ("MinSize", "DesiredCapacity")]
    return any(size not in _ZERO and not isinstance(size, Mapping) for size in stated)


def _few_spot_types(resource: Resource) -> bool:
    types = sequence(at(resource, "InstanceTypes"))
    return at(resource, "CapacityType") == "SPOT" and len(types) < _FEWEST_SPOT_TYPES


def _what_eks_fills_in(resource: Resource) -> bool:
    market = _market(resource.launches)
    return "IamInstanceProfile" in resource.launches or market not in {None, "capacity-block"}


def _never_joins(resource: Resource) -> bool:
    data = resource.launches
    interfaces = sequence(data.get("NetworkInterfaces"))
    groups = data.get("SecurityGroupIds") or interfaces
    needed = (groups, *(data.get(key) for key in ("ImageId", "IamInstanceProfile", "UserData")))
    return not all(needed)


def _market_of_spot(resource: Resource) -> bool:
    return (
        at(resource, "MixedInstancesPolicy") is not None and _market(resource.launches) is not None
    )


def _reachable_metadata(resource: Resource) -> bool:
    options = mapping(at(resource, "LaunchTemplateData", "MetadataOptions"))
    return options.get("HttpTokens") != "required" or options.get("HttpPutResponseHopLimit") != 1


def _plain_disk(resource: Resource) -> bool:
    disks = sequence(at(resource, "LaunchTemplateData", "BlockDeviceMappings"))
    # Without a mapping, EC2 makes the image's root volume with the account's defaults.
    return not disks or any(
        mapping(mapping(disk).get("Ebs")).get("Encrypted") is not True for disk in disks
    )


NODE_RULES = (
    Rule(
        name="EfaLayout",
        description=(
            "card 0 device 0 must be an `interface`, every place taken once, every other "
            "interface `interface` or `efa-only`, each with its security groups"
        ),
        types=_TEMPLATE,
        broken=_bad_layout,
    ),
    Rule(
        name="CapacityBlockPlacementGroup",
        description="a Capacity Block cannot launch into a placement group",
        types=_TEMPLATE,
        broken=_block_in_placement_group,
    ),
    Rule(
        name="CapacityBlockTarget",
        description="a Capacity Block launch must name its reservation",
        types=_TEMPLATE,
        broken=_block_without_reservation,
    ),
    Rule(
        name="CapacityReservationPreference",
        description="beside a target EC2 takes no preference but capacity-reservations-only",
        types=_TEMPLATE,
        broken=_two_preferences,
    ),
    Rule(
        name="CapacityBlockSubnet",
        description="a Capacity Block is in one zone, and its group must be in one subnet",
        types=(*_NODE_GROUP, *_AUTO_SCALING_GROUP),
        broken=_block_in_subnets,
    ),
    Rule(
        name="CapacityBlockSize",
        description="before a Capacity Block starts its group must be empty: launches would fail",
        types=(*_NODE_GROUP, *_AUTO_SCALING_GROUP),
        broken=_block_before_its_start,
    ),
    Rule(
        name="CapacityBlockDrain",
        description="without a lifecycle hook the jobs of a Capacity Block end without a warning",
        types=_AUTO_SCALING_GROUP,
        broken=_block_that_is_not_drained,
    ),
    Rule(
        name="SpotTypes",
        description=f"Spot is short without a choice of {_FEWEST_SPOT_TYPES} types",
        types=_NODE_GROUP,
        broken=_few_spot_types,
    ),
    Rule(
        name="SpotMarket",
        description="a mixed instances policy refuses a launch template with market options",
        types=_AUTO_SCALING_GROUP,
        broken=_market_of_spot,
    ),
    Rule(
        name="NodeGroupTemplate",
        description="EKS refuses a launch template with an instance profile or with Spot options",
        types=_NODE_GROUP,
        broken=_what_eks_fills_in,
    ),
    Rule(
        name="SelfManagedTemplate",
        description=(
            "without an image, an instance profile, user data and security groups no node joins"
        ),
        types=_AUTO_SCALING_GROUP,
        broken=_never_joins,
    ),
    Rule(
        name="RunningNodes",
        description="a deploy must not replace nodes that run",
        types=_AUTO_SCALING_GROUP,
        broken=lambda resource: resource.rolls,
    ),
    Rule(
        name="InstanceMetadata",
        description="instance metadata must take tokens only and be out of reach of pods",
        types=_TEMPLATE,
        broken=_reachable_metadata,
    ),
    Rule(
        name="DiskEncryption",
        description="node volumes must be encrypted",
        types=_TEMPLATE,
        broken=_plain_disk,
    ),
    Rule(
        name="NoSsh",
        description="nodes must be reached through Systems Manager, not SSH",
        types=(*_TEMPLATE, *_NODE_GROUP),
        broken=lambda resource: bool(
            at(resource, "LaunchTemplateData", "KeyName") or at(resource, "RemoteAccess")
        ),
    ),
    Rule(
        name="NodeGroupName",
        description="a fixed name makes the replacement of a node group collide with it",
        types=_NODE_GROUP,
        broken=lambda resource: "NodegroupName" in resource.properties,
    ),
    Rule(
        name="NodeGroupMaxSize",
        description="a maximum of 0 keeps every node away; scale to zero is desired and minimum 0",
        types=(*_NODE_GROUP, *_AUTO_SCALING_GROUP),
        broken=lambda resource: any(
            size in (0, "0")
            for size in (at(resource, "ScalingConfig", "MaxSize"), at(resource, "MaxSize"))
        ),
    ),
)
