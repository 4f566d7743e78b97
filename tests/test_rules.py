"""Our own rules: each fires on what it is for, and on nothing else."""

from typing import Any

import pytest

from stacks.rules import RULES, violations

CLUSTER: dict[str, Any] = {
    "ResourcesVpcConfig": {"EndpointPrivateAccess": True, "EndpointPublicAccess": False},
    "Logging": {
        "ClusterLogging": {
            "EnabledTypes": [
                {"Type": name}
                for name in ("api", "audit", "authenticator", "controllerManager", "scheduler")
            ]
        }
    },
    "EncryptionConfig": [{"Provider": {"KeyArn": "arn"}, "Resources": ["secrets"]}],
    "DeletionProtection": True,
    "AccessConfig": {
        "AuthenticationMode": "API",
        "BootstrapClusterCreatorAdminPermissions": False,
    },
}
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
HTTPS = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443}
RETAINED = {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"}
MANIFEST = "Custom::AWSCDK-EKS-KubernetesResource"


def resource(kind: str, properties: dict[str, Any], **attributes: str) -> dict[str, Any]:
    return {"Type": kind, "Properties": properties, **attributes}


def cluster(**changes: Any) -> dict[str, Any]:
    return resource("AWS::EKS::Cluster", CLUSTER | changes)


def endpoint(**changes: Any) -> dict[str, Any]:
    return cluster(ResourcesVpcConfig=CLUSTER["ResourcesVpcConfig"] | changes)


def launch_template(**changes: Any) -> dict[str, Any]:
    data = {"LaunchTemplateData": TEMPLATE_DATA | changes}
    return resource("AWS::EC2::LaunchTemplate", data)


def interfaces(*found: dict[str, Any]) -> dict[str, Any]:
    return launch_template(NetworkInterfaces=list(found))


def node_group(**changes: Any) -> dict[str, Any]:
    return resource("AWS::EKS::Nodegroup", NODE_GROUP | changes)


def group(*rules: dict[str, Any]) -> dict[str, Any]:
    return resource("AWS::EC2::SecurityGroup", {"SecurityGroupIngress": list(rules)})


def manifest(text: object) -> dict[str, Any]:
    return resource(MANIFEST, {"Manifest": text})


# Rule, what breaks it in words, and the resource that does.
BAD: list[tuple[str, str, dict[str, Any]]] = [
    ("EksEndpoint", "private endpoint off", endpoint(EndpointPrivateAccess=False)),
    ("EksEndpoint", "public by default", endpoint(EndpointPublicAccess=None)),
    ("EksEndpoint", "public without ranges", endpoint(EndpointPublicAccess=True)),
    (
        "EksEndpoint",
        "public to everyone",
        endpoint(EndpointPublicAccess=True, PublicAccessCidrs=["203.0.113.0/24", "0.0.0.0/0"]),
    ),
    ("EksEndpoint", "nothing said", cluster(ResourcesVpcConfig={})),
    ("EksLogs", "no log", cluster(Logging={})),
    (
        "EksLogs",
        "one log",
        cluster(Logging={"ClusterLogging": {"EnabledTypes": [{"Type": "audit"}]}}),
    ),
    ("EksEncryption", "no key", cluster(EncryptionConfig=[])),
    ("EksDeletionProtection", "off", cluster(DeletionProtection=False)),
    ("EksDeletionProtection", "nothing said", cluster(DeletionProtection=None)),
    (
        "EksAuthentication",
        "config map",
        cluster(AccessConfig=CLUSTER["AccessConfig"] | {"AuthenticationMode": "CONFIG_MAP"}),
    ),
    ("EksAuthentication", "creator", cluster(AccessConfig={"AuthenticationMode": "API"})),
    ("EksCustomResourceCluster", "any", resource("Custom::AWSCDK-EKS-Cluster", {})),
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
    ("Retained", "file system", resource("AWS::FSx::FileSystem", {})),
    ("Retained", "key", resource("AWS::KMS::Key", {}, DeletionPolicy="Delete")),
    ("Retained", "on deletion alone", resource("AWS::KMS::Key", {}, DeletionPolicy="Retain")),
    (
        "Retained",
        "on replacement alone",
        resource("AWS::ECR::Repository", {}, UpdateReplacePolicy="Retain"),
    ),
    (
        "Retained",
        "snapshot",
        resource("AWS::S3::Bucket", {}, DeletionPolicy="Snapshot", UpdateReplacePolicy="Retain"),
    ),
    ("OpenIngress", "inline", group(HTTPS | {"CidrIp": "10.0.0.0/8"}, {"CidrIp": "0.0.0.0/0"})),
    ("OpenIngress", "inline, IPv6", group(HTTPS | {"CidrIpv6": "::/0"})),
    (
        "OpenIngress",
        "rule of its own",
        resource("AWS::EC2::SecurityGroupIngress", HTTPS | {"CidrIp": "0.0.0.0/0"}),
    ),
    ("ManifestSize", "text", manifest("x" * 100_001)),
    (
        "ManifestSize",
        "text with references",
        manifest({"Fn::Join": ["", ["x" * 60_000, {"Ref": "FileSystem"}, "x" * 60_000]]}),
    ),
]

GOOD: list[tuple[str, dict[str, Any]]] = [
    ("cluster", cluster()),
    (
        "cluster with named networks",
        endpoint(EndpointPublicAccess=True, PublicAccessCidrs=["203.0.113.0/24"]),
    ),
    ("launch template", launch_template()),
    ("launch template without interfaces", launch_template(NetworkInterfaces=None)),
    ("launch template of a block", launch_template(**BLOCK)),
    ("launch template in a placement group", launch_template(Placement={"GroupName": "close"})),
    ("node group", node_group()),
    *((kind, resource(kind, {}, **RETAINED)) for kind in ("AWS::KMS::Key", "AWS::S3::Bucket")),
    *(
        (kind, resource(kind, {}, **RETAINED))
        for kind in ("AWS::FSx::FileSystem", "AWS::ECR::Repository")
    ),
    ("group of the VPC", group(HTTPS | {"CidrIp": "10.0.0.0/16"})),
    ("group open to a group", group({"IpProtocol": "-1", "SourceSecurityGroupId": "sg-1"})),
    ("small manifest", manifest({"Fn::Join": ["", ["x" * 49_000, {"Ref": "R"}, "x" * 49_000]]})),
    ("what no rule looks at", resource("AWS::SNS::Topic", {"KeyName": "x"})),
]


def broken_by(body: dict[str, Any]) -> list[str]:
    found = violations({"Resources": {"It": body}})
    return [rule.name for rule, resource in found if resource.logical_id == "It"]


@pytest.mark.parametrize(
    ("rule", "body"),
    [(rule, body) for rule, _, body in BAD],
    ids=[f"{rule}: {words}" for rule, words, _ in BAD],
)
def test_a_rule_fires_on_what_it_is_for_and_no_other_does(rule: str, body: dict[str, Any]) -> None:
    assert broken_by(body) == [rule]


@pytest.mark.parametrize("body", [body for _, body in GOOD], ids=[name for name, _ in GOOD])
def test_no_rule_fires_on_what_is_right(body: dict[str, Any]) -> None:
    assert broken_by(body) == []


def test_every_rule_has_a_case_that_breaks_it() -> None:
    assert {rule for rule, _, _ in BAD} == {rule.name for rule in RULES}


def test_every_type_that_a_rule_looks_at_has_a_case() -> None:
    seen = {(rule, body["Type"]) for rule, _, body in BAD}

    assert {(rule.name, kind) for rule in RULES for kind in rule.types} <= seen


def test_every_resource_of_a_template_is_judged() -> None:
    template = {"Resources": {"First": node_group(NodegroupName="x"), "Second": launch_template()}}
    template["Resources"]["Third"] = launch_template(KeyName="mine")

    found = [(rule.name, resource.logical_id) for rule, resource in violations(template)]

    assert found == [("NodeGroupName", "First"), ("NoSsh", "Third")]


def test_a_template_without_resources_breaks_nothing() -> None:
    assert list(violations({"Outputs": {}})) == []
