"""Our own rules over CloudFormation templates: mistakes that no general linter knows.

cdk-nag's EKS rules know the custom-resource cluster of `aws_eks` only; the first rules here stand
in for them. The others are accelerator mistakes that cost money, data or the fabric.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from ultrascale.catalog.eks import CONTROL_PLANE_LOG_TYPES

Properties = Mapping[str, object]
_MANIFEST_LIMIT_BYTES = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One resource of a template.

    Attributes:
        logical_id: Its logical id.
        type: Its CloudFormation type.
        properties: Its properties.
        retained: Whether it outlives its stack and its replacement.
    """

    logical_id: str
    type: str
    properties: Properties
    retained: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule.

    Attributes:
        name: What an acknowledgment names.
        description: What is wrong where it fires.
        types: CloudFormation types it looks at.
        broken: Whether a resource breaks it.
    """

    name: str
    description: str
    types: tuple[str, ...]
    broken: Callable[[Resource], bool]


def resources(template: Mapping[str, object]) -> Iterator[Resource]:
    """Yield the resources of a template."""
    for logical_id, body in _mapping(template.get("Resources")).items():
        resource = _mapping(body)
        yield Resource(
            logical_id=logical_id,
            type=str(resource["Type"]),
            properties=_mapping(resource.get("Properties")),
            retained=resource.get("DeletionPolicy") in {"Retain", "RetainExceptOnCreate"}
            and resource.get("UpdateReplacePolicy") == "Retain",
        )


def violations(template: Mapping[str, object]) -> Iterator[tuple[Rule, Resource]]:
    """Yield every rule that ``template`` breaks, with the resource that breaks it."""
    for resource in resources(template):
        for rule in RULES:
            if resource.type in rule.types and rule.broken(resource):
                yield rule, resource


def _mapping(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}


def _sequence(value: object) -> Sequence[object]:
    return cast("Sequence[object]", value) if isinstance(value, list) else ()


def _at(resource: Resource, *path: str) -> object:
    value: object = resource.properties
    for key in path:
        value = _mapping(value).get(key)
    return value


def _open_endpoint(resource: Resource) -> bool:
    vpc = _mapping(_at(resource, "ResourcesVpcConfig"))
    cidrs = _sequence(vpc.get("PublicAccessCidrs"))
    public = vpc.get("EndpointPublicAccess") is not False
    return vpc.get("EndpointPrivateAccess") is not True or (
        public and (not cidrs or "0.0.0.0/0" in cidrs)
    )


def _missing_logs(resource: Resource) -> bool:
    enabled = _sequence(_at(resource, "Logging", "ClusterLogging", "EnabledTypes"))
    return {_mapping(item).get("Type") for item in enabled} != set(CONTROL_PLANE_LOG_TYPES)


def _interfaces(resource: Resource) -> list[Mapping[str, object]]:
    found = _sequence(_at(resource, "LaunchTemplateData", "NetworkInterfaces"))
    return [_mapping(item) for item in found]


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


def _block_in_placement_group(resource: Resource) -> bool:
    market = _at(resource, "LaunchTemplateData", "InstanceMarketOptions", "MarketType")
    group = _at(resource, "LaunchTemplateData", "Placement", "GroupName")
    return market == "capacity-block" and group is not None


def _block_without_reservation(resource: Resource) -> bool:
    market = _at(resource, "LaunchTemplateData", "InstanceMarketOptions", "MarketType")
    specification = _at(resource, "LaunchTemplateData", "CapacityReservationSpecification")
    return market == "capacity-block" and not _mapping(
        _mapping(specification).get("CapacityReservationTarget")
    )


def _reachable_metadata(resource: Resource) -> bool:
    options = _mapping(_at(resource, "LaunchTemplateData", "MetadataOptions"))
    return options.get("HttpTokens") != "required" or options.get("HttpPutResponseHopLimit") != 1


def _plain_disk(resource: Resource) -> bool:
    disks = _sequence(_at(resource, "LaunchTemplateData", "BlockDeviceMappings"))
    # Without any the image's own root volume is made, as the account has it.
    return not disks or any(
        _mapping(_mapping(disk).get("Ebs")).get("Encrypted") is not True for disk in disks
    )


def _open_to_the_world(resource: Resource) -> bool:
    inline = _sequence(resource.properties.get("SecurityGroupIngress"))
    rules = [resource.properties, *(_mapping(rule) for rule in inline)]
    return any(
        rule.get("CidrIp") == "0.0.0.0/0" or rule.get("CidrIpv6") == "::/0" for rule in rules
    )


def _text_length(value: object) -> int:
    """Return the length of every string in a value: a reference counts as its own name."""
    match value:
        case str():
            return len(value)
        case list() | Mapping():
            parts = value.values() if isinstance(value, Mapping) else value  # pyright: ignore[reportUnknownVariableType]
            return sum(_text_length(part) for part in parts)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        case _:
            return 0


_CLUSTER = ("AWS::EKS::Cluster",)
_TEMPLATE = ("AWS::EC2::LaunchTemplate",)
_NODE_GROUP = ("AWS::EKS::Nodegroup",)

RULES = (
    Rule(
        name="EksEndpoint",
        description="the API server must answer privately, and publicly at named ranges only",
        types=_CLUSTER,
        broken=_open_endpoint,
    ),
    Rule(
        name="EksLogs",
        description="all five control-plane logs must be on",
        types=_CLUSTER,
        broken=_missing_logs,
    ),
    Rule(
        name="EksEncryption",
        description="API data must be encrypted with a customer key; adding one later replaces",
        types=_CLUSTER,
        broken=lambda resource: not _at(resource, "EncryptionConfig"),
    ),
    Rule(
        name="EksDeletionProtection",
        description="the cluster must be protected from deletion",
        types=_CLUSTER,
        broken=lambda resource: _at(resource, "DeletionProtection") is not True,
    ),
    Rule(
        name="EksAuthentication",
        description="access must go through access entries alone",
        types=_CLUSTER,
        broken=lambda resource: (
            _at(resource, "AccessConfig", "AuthenticationMode") != "API"
            or _at(resource, "AccessConfig", "BootstrapClusterCreatorAdminPermissions") is not False
        ),
    ),
    Rule(
        name="EksCustomResourceCluster",
        description="the cluster must be a native AWS::EKS::Cluster",
        types=("Custom::AWSCDK-EKS-Cluster",),
        broken=lambda resource: True,
    ),
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
            _at(resource, "LaunchTemplateData", "KeyName") or _at(resource, "RemoteAccess")
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
        description="EKS refuses a maximum of 0; scale to zero is desired and minimum 0",
        types=_NODE_GROUP,
        broken=lambda resource: _at(resource, "ScalingConfig", "MaxSize") in {0, "0"},
    ),
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
