"""Our own rules for nodes: each fires on what it is for, and on nothing else."""

from typing import Any

import pytest

from tests.support.rule_cases import broken_by, resource
from ultrascale_stacks.rules import NODE_RULES

ENA = {"NetworkCardIndex": 0, "DeviceIndex": 0, "InterfaceType": "interface", "Groups": ["sg-1"]}
EFA = {"NetworkCardIndex": 0, "DeviceIndex": 1, "InterfaceType": "efa-only", "Groups": ["sg-1"]}
BLOCK = {
    "InstanceMarketOptions": {"MarketType": "capacity-block"},
    "CapacityReservationSpecification": {
        "CapacityReservationTarget": {"CapacityReservationId": "cr-0123456789abcdef0"}
    },
}
TEMPLATE_DATA: dict[str, Any] = {
    "NetworkInterfaces": [ENA, EFA],
    "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 1},
    "BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"Encrypted": True}}],
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


# Rule, what breaks it in words, and the resource that does.
BAD: list[tuple[str, str, dict[str, Any]]] = [
    ("EfaLayout", "no primary", interfaces(EFA)),
    ("EfaLayout", "efa-only primary", interfaces(ENA | {"InterfaceType": "efa-only"})),
    ("EfaLayout", "place taken twice", interfaces(ENA, EFA, EFA)),
    ("EfaLayout", "efa takes addresses", interfaces(ENA, EFA | {"InterfaceType": "efa"})),
    ("EfaLayout", "interface without groups", interfaces(ENA, EFA | {"Groups": []})),
    (
        "CapacityBlockPlacementGroup",
        "both",
        launch_template(**BLOCK, Placement={"GroupName": "close"}),
    ),
    (
        "CapacityBlockTarget",
        "no target",
        launch_template(InstanceMarketOptions=BLOCK["InstanceMarketOptions"]),
    ),
    (
        "CapacityBlockTarget",
        "preference alone",
        launch_template(
            **BLOCK
            | {"CapacityReservationSpecification": {"CapacityReservationPreference": "open"}}
        ),
    ),
    (
        "CapacityReservationPreference",
        "open beside a target",
        launch_template(
            CapacityReservationSpecification={
                "CapacityReservationPreference": "open",
                "CapacityReservationTarget": {"CapacityReservationId": "cr-1"},
            }
        ),
    ),
    ("CapacityBlockSubnet", "two", block_group(Subnets=["subnet-b", "subnet-c"])),
    ("CapacityBlockSubnet", "none", block_group(Subnets=[])),
    (
        "CapacityBlockSubnet",
        "two, self-managed",
        scaling_group(BLOCK, VPCZoneIdentifier=["subnet-b", "subnet-c"]),
    ),
    ("CapacityBlockSize", "desired", block_group(ScalingConfig={"DesiredSize": 4, "MaxSize": 4})),
    ("CapacityBlockSize", "minimum", block_group(ScalingConfig={"MinSize": 1, "MaxSize": 4})),
    ("CapacityBlockSize", "desired, self-managed", scaling_group(BLOCK, DesiredCapacity="4")),
    ("CapacityBlockSize", "minimum, self-managed", scaling_group(BLOCK, MinSize="1")),
    ("CapacityBlockDrain", "no hook", scaling_group(BLOCK, LifecycleHookSpecificationList=None)),
    (
        "CapacityBlockDrain",
        "hook at launch",
        scaling_group(
            BLOCK,
            LifecycleHookSpecificationList=[
                {"LifecycleTransition": "autoscaling:EC2_INSTANCE_LAUNCHING"}
            ],
        ),
    ),
    (
        "SpotTypes",
        "two",
        node_group(CapacityType="SPOT", InstanceTypes=["g6.12xlarge", "g5.12xlarge"]),
    ),
    ("SpotTypes", "in the template", node_group(CapacityType="SPOT")),
    (
        "SpotMarket",
        "Spot asked for twice",
        scaling_group(
            SPOT,
            MixedInstancesPolicy={
                "LaunchTemplate": {
                    "LaunchTemplateSpecification": {"LaunchTemplateId": {"Ref": "Template"}}
                }
            },
        ),
    ),
    (
        "NodeGroupTemplate",
        "instance profile",
        {**block_group(), "Launches": BLOCK | {"IamInstanceProfile": {"Arn": "arn"}}},
    ),
    ("NodeGroupTemplate", "Spot options", {**block_group(), "Launches": SPOT}),
    *(
        ("SelfManagedTemplate", f"no {key}", scaling_group({key: None}))
        for key in ("ImageId", "IamInstanceProfile", "UserData", "SecurityGroupIds")
    ),
    (
        "SelfManagedTemplate",
        "template of another stack",
        resource("AWS::AutoScaling::AutoScalingGroup", SCALING_GROUP),
    ),
    (
        "RunningNodes",
        "rolling update",
        {**scaling_group(), "UpdatePolicy": {"AutoScalingRollingUpdate": {"MaxBatchSize": 1}}},
    ),
    (
        "RunningNodes",
        "replacement",
        {**scaling_group(), "UpdatePolicy": {"AutoScalingReplacingUpdate": {"WillReplace": True}}},
    ),
    (
        "InstanceMetadata",
        "tokens optional",
        launch_template(MetadataOptions={"HttpTokens": "optional", "HttpPutResponseHopLimit": 1}),
    ),
    (
        "InstanceMetadata",
        "pods reach it",
        launch_template(MetadataOptions={"HttpTokens": "required", "HttpPutResponseHopLimit": 2}),
    ),
    ("InstanceMetadata", "nothing said", launch_template(MetadataOptions=None)),
    (
        "DiskEncryption",
        "plain disk",
        launch_template(BlockDeviceMappings=[{"Ebs": {"Encrypted": False}}]),
    ),
    (
        "DiskEncryption",
        "one of two plain",
        launch_template(BlockDeviceMappings=[{"Ebs": {"Encrypted": True}}, {"Ebs": {}}]),
    ),
    ("DiskEncryption", "the image's own disk", launch_template(BlockDeviceMappings=None)),
    ("NoSsh", "key in the template", launch_template(KeyName="mine")),
    ("NoSsh", "remote access", node_group(RemoteAccess={"Ec2SshKey": "mine"})),
    ("NodeGroupName", "named", node_group(NodegroupName="train")),
    ("NodeGroupMaxSize", "zero", node_group(ScalingConfig={"MinSize": 0, "MaxSize": 0})),
    ("NodeGroupMaxSize", "zero in text", node_group(ScalingConfig={"MaxSize": "0"})),
    ("NodeGroupMaxSize", "zero, self-managed", scaling_group(MaxSize="0")),
]

GOOD: list[tuple[str, dict[str, Any]]] = [
    ("launch template", launch_template()),
    ("launch template without interfaces", launch_template(NetworkInterfaces=None)),
    ("launch template of a block", launch_template(**BLOCK)),
    ("launch template in a placement group", launch_template(Placement={"GroupName": "close"})),
    ("node group", node_group()),
    ("node group of Spot", node_group(CapacityType="SPOT", InstanceTypes=["a", "b", "c"])),
    ("node group of a block", block_group()),
    (
        "node group of a block with a size that is looked up",
        block_group(ScalingConfig={"MinSize": 0, "DesiredSize": LOOKED_UP, "MaxSize": 4}),
    ),
    ("self-managed group", scaling_group()),
    ("self-managed group of a size", scaling_group(MinSize="2", DesiredCapacity="4")),
    ("self-managed group of a block", scaling_group(BLOCK)),
    (
        "self-managed group with interfaces",
        scaling_group({"SecurityGroupIds": None, "NetworkInterfaces": [ENA]}),
    ),
    (
        "self-managed group in several zones, without a hook",
        scaling_group(
            VPCZoneIdentifier=["subnet-b", "subnet-c"], LifecycleHookSpecificationList=None
        ),
    ),
    (
        "launch template of a reservation",
        launch_template(
            CapacityReservationSpecification={
                "CapacityReservationPreference": "capacity-reservations-only",
                "CapacityReservationTarget": {"CapacityReservationId": "cr-1"},
            }
        ),
    ),
    (
        "launch template that avoids reservations",
        launch_template(CapacityReservationSpecification={"CapacityReservationPreference": "none"}),
    ),
]


@pytest.mark.parametrize(
    ("rule", "body"),
    [(rule, body) for rule, _, body in BAD],
    ids=[f"{rule}: {words}" for rule, words, _ in BAD],
)
def test_a_rule_fires_on_what_it_is_for_and_no_other_does(rule: str, body: dict[str, Any]) -> None:
    assert judged(body) == [rule]


@pytest.mark.parametrize("body", [body for _, body in GOOD], ids=[name for name, _ in GOOD])
def test_no_rule_fires_on_what_is_right(body: dict[str, Any]) -> None:
    assert judged(body) == []


def test_every_rule_has_a_case_that_breaks_it() -> None:
    assert {rule for rule, _, _ in BAD} == {rule.name for rule in NODE_RULES}


def test_every_type_that_a_rule_looks_at_has_a_case() -> None:
    seen = {(rule, body["Type"]) for rule, _, body in BAD}

    assert {(rule.name, kind) for rule in NODE_RULES for kind in rule.types} <= seen
