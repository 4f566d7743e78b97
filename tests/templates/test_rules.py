"""Our own rules: each fires on what it is for, and on nothing else."""

from typing import Any

import pytest

from tests.support.rule_cases import broken_by, resource
from ultrascale_stacks.rules import NODE_RULES, RULES, violations

CLUSTER: dict[str, Any] = {
    "ResourcesVpcConfig": {"EndpointPrivateAccess": True, "EndpointPublicAccess": False},
    "EncryptionConfig": [{"Provider": {"KeyArn": "arn"}, "Resources": ["secrets"]}],
    "DeletionProtection": True,
    "AccessConfig": {"AuthenticationMode": "API", "BootstrapClusterCreatorAdminPermissions": False},
}
HTTPS = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443}
RETAINED = {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"}
MANIFEST = "Custom::AWSCDK-EKS-KubernetesResource"


def cluster(**changes: Any) -> dict[str, Any]:
    return resource("AWS::EKS::Cluster", CLUSTER | changes)


def endpoint(**changes: Any) -> dict[str, Any]:
    return cluster(ResourcesVpcConfig=CLUSTER["ResourcesVpcConfig"] | changes)


def group(*rules: dict[str, Any]) -> dict[str, Any]:
    return resource("AWS::EC2::SecurityGroup", {"SecurityGroupIngress": list(rules)})


def manifest(text: object) -> dict[str, Any]:
    return resource(MANIFEST, {"Manifest": text})


OTHERS = [rule for rule in RULES if rule not in NODE_RULES]
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
    assert {rule for rule, _, _ in BAD} == {rule.name for rule in OTHERS}


def test_every_type_that_a_rule_looks_at_has_a_case() -> None:
    seen = {(rule, body["Type"]) for rule, _, body in BAD}

    assert {(rule.name, kind) for rule in OTHERS for kind in rule.types} <= seen


def test_every_resource_of_a_template_is_judged() -> None:
    unprotected = cluster(DeletionProtection=False)
    template = {
        "Resources": {
            "First": unprotected,
            "Second": cluster(),
            "Third": resource("AWS::KMS::Key", {}),
        }
    }

    found = [(rule.name, resource.logical_id) for rule, resource in violations(template)]

    assert found == [("EksDeletionProtection", "First"), ("Retained", "Third")]


def test_a_template_without_resources_breaks_nothing() -> None:
    assert list(violations({"Outputs": {}})) == []
