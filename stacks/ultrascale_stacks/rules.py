"""Our own rules over CloudFormation templates: mistakes that no general linter knows.

cdk-nag's EKS rules know only the custom-resource cluster of `aws_eks`; the first rules here replace
them. The other rules find mistakes about accelerators that cost money, lose data, or slow the
network.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network

from ultrascale.documents import Json, JsonObject, look_up, mapping, sequence
from ultrascale.frozen import Frozen

# --- Rules over CloudFormation templates, and the resources that they check -----------------------


Properties = JsonObject


class Resource(Frozen):
    """A resource of a template, for rules."""

    logical_id: str  # Its logical id
    type: str  # Its CloudFormation type
    properties: Properties  # Its properties
    retained: bool  # Whether it outlives its stack and its replacement
    rolls: bool  # Whether a deployment replaces running instances
    # `LaunchTemplateData` of its launch template in the same stack; empty where there is none.
    launches: Properties


class Rule(Frozen):
    """A rule over the resources of a template."""

    name: str  # Its name in an acknowledgment
    description: str  # The mistake that it reports
    types: tuple[str, ...]  # CloudFormation types that it checks
    broken: Callable[[Resource], bool]  # Whether a resource breaks it


def resources(template: object) -> Iterator[Resource]:
    """Yield the resources of a template."""
    bodies = mapping(template, "Resources")
    for logical_id, body in bodies.items():
        resource = mapping(body)
        properties = mapping(resource.get("Properties"))
        template_id = _launch_template(properties)
        yield Resource(
            logical_id=logical_id,
            type=str(resource["Type"]),
            properties=properties,
            retained=resource.get("DeletionPolicy") in {"Retain", "RetainExceptOnCreate"}
            and resource.get("UpdateReplacePolicy") == "Retain",
            rolls=not mapping(resource.get("UpdatePolicy")).keys()
            <= {"AutoScalingScheduledAction"},
            launches=mapping(bodies, template_id, "Properties", "LaunchTemplateData"),
        )


def _launch_template(properties: Properties) -> str:
    """Return the logical id of a node group's or Auto Scaling group's launch template."""
    named = mapping(properties, "LaunchTemplate") or mapping(
        properties, "MixedInstancesPolicy", "LaunchTemplate", "LaunchTemplateSpecification"
    )
    id = mapping(named.get("Id") or named.get("LaunchTemplateId"))
    return str(id.get("Ref", ""))


def at(resource: Resource, *path: str) -> Json:
    """Return the property of ``resource`` at ``path``; None without a value."""
    return look_up(resource.properties, *path)


# --- Our own rules over launch templates, node groups and Auto Scaling groups ---------------------
# Mistakes about accelerators that cost money, lose data, or slow the network.


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


# --- Our own rules over CloudFormation templates: mistakes that no general linter knows -----------


_MANIFEST_LIMIT_BYTES = 100_000


def violations(template: object) -> Iterator[tuple[Rule, Resource]]:
    """Yield every rule that ``template`` breaks, with the resource."""
    for resource in resources(template):
        for rule in RULES:
            if resource.type in rule.types and rule.broken(resource):
                yield rule, resource


def _open_endpoint(resource: Resource) -> bool:
    vpc = mapping(at(resource, "ResourcesVpcConfig"))
    cidrs = sequence(vpc.get("PublicAccessCidrs"))
    public = vpc.get("EndpointPublicAccess") is not False
    return vpc.get("EndpointPrivateAccess") is not True or (
        public and (not cidrs or "0.0.0.0/0" in _union(cidrs))
    )


def _open_to_the_world(resource: Resource) -> bool:
    inline = sequence(resource.properties.get("SecurityGroupIngress"))
    rules = [resource.properties, *(mapping(rule) for rule in inline)]
    ranges = [rule.get(key) for rule in rules for key in ("CidrIp", "CidrIpv6")]
    return not {"0.0.0.0/0", "::/0"}.isdisjoint(_union(ranges))


def _union(ranges: Iterable[Json]) -> set[str]:
    """Return address ranges, joined: two halves are the whole."""
    stated = [ip_network(each) for each in ranges if isinstance(each, str)]
    fourth = collapse_addresses(each for each in stated if isinstance(each, IPv4Network))
    sixth = collapse_addresses(each for each in stated if isinstance(each, IPv6Network))
    return {*map(str, fourth), *map(str, sixth)}


def _text_length(value: object) -> int:
    """Return the length of all strings in a value; a reference counts as its resource's name."""
    match value:
        case str():
            return len(value)
        case list() | Mapping():
            parts = value.values() if isinstance(value, Mapping) else value  # pyright: ignore[reportUnknownVariableType]
            return sum(_text_length(part) for part in parts)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        case _:
            return 0


_CLUSTER = ("AWS::EKS::Cluster",)

RULES = (
    Rule(
        name="EksEndpoint",
        description="the API server must answer privately, and publicly at named ranges only",
        types=_CLUSTER,
        broken=_open_endpoint,
    ),
    Rule(
        name="EksEncryption",
        description="API data must be encrypted with a customer key; adding one later replaces",
        types=_CLUSTER,
        broken=lambda resource: not at(resource, "EncryptionConfig"),
    ),
    Rule(
        name="EksDeletionProtection",
        description="the cluster must be protected from deletion",
        types=_CLUSTER,
        broken=lambda resource: at(resource, "DeletionProtection") is not True,
    ),
    Rule(
        name="EksAuthentication",
        description="access must go through access entries alone",
        types=_CLUSTER,
        broken=lambda resource: (
            at(resource, "AccessConfig", "AuthenticationMode") != "API"
            or at(resource, "AccessConfig", "BootstrapClusterCreatorAdminPermissions") is not False
        ),
    ),
    Rule(
        name="EksCustomResourceCluster",
        description="the cluster must be a native AWS::EKS::Cluster",
        types=("Custom::AWSCDK-EKS-Cluster",),
        broken=lambda resource: True,
    ),
    *NODE_RULES,
    Rule(
        name="Retained",
        description="data and the keys it is encrypted with must outlive their stack",
        types=("AWS::FSx::FileSystem", "AWS::KMS::Key", "AWS::ECR::Repository", "AWS::S3::Bucket"),
        broken=lambda resource: not resource.retained,
    ),
    Rule(
        name="OpenIngress",
        description="no security group may be open to the internet",
        types=("AWS::EC2::SecurityGroup", "AWS::EC2::SecurityGroupIngress"),
        broken=_open_to_the_world,
    ),
    Rule(
        name="ManifestSize",
        description="a manifest above 100 kB fails on its first update",
        types=("Custom::AWSCDK-EKS-KubernetesResource",),
        broken=lambda resource: (
            _text_length(resource.properties.get("Manifest")) > _MANIFEST_LIMIT_BYTES
        ),
    ),
)
