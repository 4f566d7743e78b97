"""Our own rules for nodes: each fires on what it is for, and on nothing else."""

from typing import Any

from tests.support.cases import for_each
from tests.support.rule_cases import broken_by, resource
from ultrascale_stacks.rules import NODE_RULES

ENA = {"NetworkCardIndex": 0, "DeviceIndex": 0, "InterfaceType": "interface", "Groups": ["sg-1"]}
EFA = {"NetworkCardIndex": 0, "DeviceIndex": 1, "InterfaceType": "efa-only", "Groups": ["sg-1"]}
METADATA = {"HttpTokens": "required", "HttpPutResponseHopLimit": 1}
DISKS = [{"DeviceName": "/dev/xvda", "Ebs": {"Encrypted": True}}]
TEMPLATE_DATA: dict[str, Any] = {
    "NetworkInterfaces": [ENA, EFA],
    "MetadataOptions": METADATA,
    "BlockDeviceMappings": DISKS,
}
TWO_SUBNETS = ["subnet-b", "subnet-c"]
CLOSE = {"GroupName": "close"}
MIXED = {
    "LaunchTemplate": {"LaunchTemplateSpecification": {"LaunchTemplateId": {"Ref": "Template"}}}
}
AT_LAUNCH = {"LifecycleTransition": "autoscaling:EC2_INSTANCE_LAUNCHING"}


def reservation(preference: str | None, target: str | None = "cr-1") -> dict[str, Any]:
    """Return the data of a launch template with a preference, a target or both."""
    specification: dict[str, Any] = {}
    if preference is not None:
        specification["CapacityReservationPreference"] = preference
    if target is not None:
        specification["CapacityReservationTarget"] = {"CapacityReservationId": target}
    return {"CapacityReservationSpecification": specification}


BLOCK: dict[str, Any] = {
    "InstanceMarketOptions": {"MarketType": "capacity-block"},
    **reservation(None, "cr-0123456789abcdef0"),
}
NODE_GROUP: dict[str, Any] = {"ScalingConfig": {"MinSize": 0, "DesiredSize": 0, "MaxSize": 4}}
HOOK = {"LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING"}
SCALING_GROUP: dict[str, Any] = {
    "MinSize": "0",
    "MaxSize": "4",
    "VPCZoneIdentifier": ["subnet-b"],
    "LifecycleHookSpecificationList": [HOOK],
}
SELF_MANAGED: dict[str, Any] = {
    "ImageId": "ami-1",
    "IamInstanceProfile": {"Arn": "arn"},
    "UserData": "x",
    "SecurityGroupIds": ["sg-1"],
    "NetworkInterfaces": None,
}
SPOT = {"InstanceMarketOptions": {"MarketType": "spot"}}
LOOKED_UP = {"Fn::GetAtt": ["Size", "DesiredSize"]}


def launch_template(**changes: Any) -> dict[str, Any]:
    data = {"LaunchTemplateData": TEMPLATE_DATA | changes}
    return resource("AWS::EC2::LaunchTemplate", data)


def interfaces(*found: dict[str, Any]) -> dict[str, Any]:
    return launch_template(NetworkInterfaces=list(found))


def node_group(**changes: Any) -> dict[str, Any]:
    return resource("AWS::EKS::Nodegroup", NODE_GROUP | changes)


def block_group(**changes: Any) -> dict[str, Any]:
    """Return the managed node group of a Capacity Block."""
    body = node_group(**{"Subnets": ["subnet-b"], "LaunchTemplate": {"Id": {"Ref": "Template"}}})
    return {**body, "Properties": body["Properties"] | changes, "Launches": BLOCK}


def scaling_group(launches: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """Return a self-managed group that is launched from ``launches``."""
    reference = {"LaunchTemplateId": {"Ref": "Template"}}
    properties = SCALING_GROUP | {"LaunchTemplate": reference} | changes
    if "MixedInstancesPolicy" in changes:
        del properties["LaunchTemplate"]
    body = resource("AWS::AutoScaling::AutoScalingGroup", properties)
    return {**body, "Launches": SELF_MANAGED if launches is None else SELF_MANAGED | launches}


def judged(body: dict[str, Any]) -> list[str]:
    """Return the rules that ``body`` breaks; what it launches is a template beside it."""
    alone = {key: value for key, value in body.items() if key != "Launches"}
    return broken_by(alone, Template=launch_template(**body.get("Launches", {})))


# What breaks a rule in words, and the resource that does, by rule.
BAD: dict[str, dict[str, dict[str, Any]]] = {
    "EfaLayout": {
        "no primary": interfaces(EFA),
        "efa-only primary": interfaces(ENA | {"InterfaceType": "efa-only"}),
        "place taken twice": interfaces(ENA, EFA, EFA),
        "efa takes addresses": interfaces(ENA, EFA | {"InterfaceType": "efa"}),
        "interface without groups": interfaces(ENA, EFA | {"Groups": []}),
    },
    "CapacityBlockPlacementGroup": {"both": launch_template(**BLOCK, Placement=CLOSE)},
    "CapacityBlockTarget": {
        "no target": launch_template(InstanceMarketOptions=BLOCK["InstanceMarketOptions"]),
        "preference alone": launch_template(**BLOCK | reservation("open", target=None)),
    },
    "CapacityReservationPreference": {
        "open beside a target": launch_template(**reservation("open")),
    },
    "CapacityBlockSubnet": {
        "two": block_group(Subnets=TWO_SUBNETS),
        "none": block_group(Subnets=[]),
        "two, self-managed": scaling_group(BLOCK, VPCZoneIdentifier=TWO_SUBNETS),
    },
    "CapacityBlockSize": {
        "desired": block_group(ScalingConfig={"DesiredSize": 4, "MaxSize": 4}),
        "minimum": block_group(ScalingConfig={"MinSize": 1, "MaxSize": 4}),
        "desired, self-managed": scaling_group(BLOCK, DesiredCapacity="4"),
        "minimum, self-managed": scaling_group(BLOCK, MinSize="1"),
    },
    "CapacityBlockDrain": {
        "no hook": scaling_group(BLOCK, LifecycleHookSpecificationList=None),
        "hook at launch": scaling_group(BLOCK, LifecycleHookSpecificationList=[AT_LAUNCH]),
    },
    "SpotTypes": {
        "two": node_group(CapacityType="SPOT", InstanceTypes=["g6.12xlarge", "g5.12xlarge"]),
        "in the template": node_group(CapacityType="SPOT"),
    },
    "SpotMarket": {"Spot asked for twice": scaling_group(SPOT, MixedInstancesPolicy=MIXED)},
    "NodeGroupTemplate": {
        "instance profile": {
            **block_group(),
            "Launches": BLOCK | {"IamInstanceProfile": {"Arn": "arn"}},
        },
        "Spot options": {**block_group(), "Launches": SPOT},
    },
    "SelfManagedTemplate": {
        **{
            f"no {key}": scaling_group({key: None})
            for key in ("ImageId", "IamInstanceProfile", "UserData", "SecurityGroupIds")
        },
        "template of another stack": resource("AWS::AutoScaling::AutoScalingGroup", SCALING_GROUP),
    },
    "RunningNodes": {
        "rolling update": {
            **scaling_group(),
            "UpdatePolicy": {"AutoScalingRollingUpdate": {"MaxBatchSize": 1}},
        },
        "replacement": {
            **scaling_group(),
            "UpdatePolicy": {"AutoScalingReplacingUpdate": {"WillReplace": True}},
        },
    },
    "InstanceMetadata": {
        "tokens optional": launch_template(MetadataOptions=METADATA | {"HttpTokens": "optional"}),
        "pods reach it": launch_template(MetadataOptions=METADATA | {"HttpPutResponseHopLimit": 2}),
        "nothing said": launch_template(MetadataOptions=None),
    },
    "DiskEncryption": {
        "plain disk": launch_template(BlockDeviceMappings=[{"Ebs": {"Encrypted": False}}]),
        "one of two plain": launch_template(BlockDeviceMappings=[*DISKS, {"Ebs": {}}]),
        "the image's own disk": launch_template(BlockDeviceMappings=None),
    },
    "NoSsh": {
        "key in the template": launch_template(KeyName="mine"),
        "remote access": node_group(RemoteAccess={"Ec2SshKey": "mine"}),
    },
    "NodeGroupName": {"named": node_group(NodegroupName="train")},
    "NodeGroupMaxSize": {
        "zero": node_group(ScalingConfig={"MinSize": 0, "MaxSize": 0}),
        "zero in text": node_group(ScalingConfig={"MaxSize": "0"}),
        "zero, self-managed": scaling_group(MaxSize="0"),
    },
}

GOOD: dict[str, dict[str, Any]] = {
    "launch template": launch_template(),
    "launch template without interfaces": launch_template(NetworkInterfaces=None),
    "launch template of a block": launch_template(**BLOCK),
    "launch template in a placement group": launch_template(Placement=CLOSE),
    "launch template of a reservation": launch_template(
        **reservation("capacity-reservations-only")
    ),
    "launch template that avoids reservations": launch_template(**reservation("none", target=None)),
    "node group": node_group(),
    "node group of Spot": node_group(CapacityType="SPOT", InstanceTypes=["a", "b", "c"]),
    "node group of a block": block_group(),
    "node group of a block with a size that is looked up": block_group(
        ScalingConfig={"MinSize": 0, "DesiredSize": LOOKED_UP, "MaxSize": 4}
    ),
    "self-managed group": scaling_group(),
    "self-managed group of a size": scaling_group(MinSize="2", DesiredCapacity="4"),
    "self-managed group of a block": scaling_group(BLOCK),
    "self-managed group with interfaces": scaling_group(
        {"SecurityGroupIds": None, "NetworkInterfaces": [ENA]}
    ),
    "self-managed group in several zones, without a hook": scaling_group(
        VPCZoneIdentifier=TWO_SUBNETS, LifecycleHookSpecificationList=None
    ),
}


@for_each(
    {f"{rule}: {words}": (rule, b) for rule, cases in BAD.items() for words, b in cases.items()}
)
def test_a_rule_fires_on_what_it_is_for_and_no_other_does(rule: str, body: dict[str, Any]) -> None:
    assert judged(body) == [rule]


@for_each(GOOD)
def test_no_rule_fires_on_what_is_right(body: dict[str, Any]) -> None:
    assert judged(body) == []


def test_every_type_that_a_rule_looks_at_has_a_case_that_breaks_it() -> None:
    seen = {(rule, body["Type"]) for rule, cases in BAD.items() for body in cases.values()}

    assert {(rule.name, kind) for rule in NODE_RULES for kind in rule.types} <= seen
    assert BAD.keys() == {rule.name for rule in NODE_RULES}
