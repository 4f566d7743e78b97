"""Our own rules: each fires on what it is for, and on nothing else."""

from typing import Any

from tests.support.cases import for_each
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


def cluster(**changes: Any) -> dict[str, Any]:
    return resource("AWS::EKS::Cluster", CLUSTER | changes)


def endpoint(**changes: Any) -> dict[str, Any]:
    return cluster(ResourcesVpcConfig=CLUSTER["ResourcesVpcConfig"] | changes)


def group(*rules: dict[str, Any]) -> dict[str, Any]:
    return resource("AWS::EC2::SecurityGroup", {"SecurityGroupIngress": list(rules)})


def manifest(text: object) -> dict[str, Any]:
    return resource("Custom::AWSCDK-EKS-KubernetesResource", {"Manifest": text})


def joined(size: int) -> dict[str, Any]:
    return {"Fn::Join": ["", ["x" * size, {"Ref": "FileSystem"}, "x" * size]]}


OTHERS = [rule for rule in RULES if rule not in NODE_RULES]
# What breaks a rule in words, and the resource that does, by rule.
BAD: dict[str, dict[str, dict[str, Any]]] = {
    "EksEndpoint": {
        "private endpoint off": endpoint(EndpointPrivateAccess=False),
        "public by default": endpoint(EndpointPublicAccess=None),
        "public without ranges": endpoint(EndpointPublicAccess=True),
        "public to everyone": endpoint(
            EndpointPublicAccess=True, PublicAccessCidrs=["203.0.113.0/24", "0.0.0.0/0"]
        ),
        "nothing said": cluster(ResourcesVpcConfig={}),
    },
    "EksEncryption": {"no key": cluster(EncryptionConfig=[])},
    "EksDeletionProtection": {
        "off": cluster(DeletionProtection=False),
        "nothing said": cluster(DeletionProtection=None),
    },
    "EksAuthentication": {
        "config map": cluster(
            AccessConfig=CLUSTER["AccessConfig"] | {"AuthenticationMode": "CONFIG_MAP"}
        ),
        "creator": cluster(AccessConfig={"AuthenticationMode": "API"}),
    },
    "EksCustomResourceCluster": {"any": resource("Custom::AWSCDK-EKS-Cluster", {})},
    "Retained": {
        "file system": resource("AWS::FSx::FileSystem", {}),
        "key": resource("AWS::KMS::Key", {}, DeletionPolicy="Delete"),
        "on deletion alone": resource("AWS::KMS::Key", {}, DeletionPolicy="Retain"),
        "on replacement alone": resource("AWS::ECR::Repository", {}, UpdateReplacePolicy="Retain"),
        "snapshot": resource(
            "AWS::S3::Bucket", {}, DeletionPolicy="Snapshot", UpdateReplacePolicy="Retain"
        ),
    },
    "OpenIngress": {
        "inline": group(HTTPS | {"CidrIp": "10.0.0.0/8"}, {"CidrIp": "0.0.0.0/0"}),
        "inline, IPv6": group(HTTPS | {"CidrIpv6": "::/0"}),
        "rule of its own": resource(
            "AWS::EC2::SecurityGroupIngress", HTTPS | {"CidrIp": "0.0.0.0/0"}
        ),
    },
    "ManifestSize": {
        "text": manifest("x" * 100_001),
        "text with references": manifest(joined(60_000)),
    },
}

GOOD: dict[str, dict[str, Any]] = {
    "cluster": cluster(),
    "cluster with named networks": endpoint(
        EndpointPublicAccess=True, PublicAccessCidrs=["203.0.113.0/24"]
    ),
    **{
        kind: resource(kind, {}, **RETAINED)
        for kind in (
            *("AWS::KMS::Key", "AWS::S3::Bucket", "AWS::FSx::FileSystem", "AWS::ECR::Repository"),
        )
    },
    "group of the VPC": group(HTTPS | {"CidrIp": "10.0.0.0/16"}),
    "group open to a group": group({"IpProtocol": "-1", "SourceSecurityGroupId": "sg-1"}),
    "small manifest": manifest(joined(49_000)),
    "what no rule looks at": resource("AWS::SNS::Topic", {"KeyName": "x"}),
}


@for_each(
    {f"{rule}: {words}": (rule, b) for rule, cases in BAD.items() for words, b in cases.items()}
)
def test_a_rule_fires_on_what_it_is_for_and_no_other_does(rule: str, body: dict[str, Any]) -> None:
    assert broken_by(body) == [rule]


@for_each(GOOD)
def test_no_rule_fires_on_what_is_right(body: dict[str, Any]) -> None:
    assert broken_by(body) == []


def test_every_type_that_a_rule_looks_at_has_a_case_that_breaks_it() -> None:
    seen = {(rule, body["Type"]) for rule, cases in BAD.items() for body in cases.values()}

    assert {(rule.name, kind) for rule in OTHERS for kind in rule.types} <= seen
    assert BAD.keys() == {rule.name for rule in OTHERS}


def test_every_resource_of_a_template_is_judged() -> None:
    first, third = cluster(DeletionProtection=False), resource("AWS::KMS::Key", {})
    template = {"Resources": {"First": first, "Second": cluster(), "Third": third}}

    found = [(rule.name, resource.logical_id) for rule, resource in violations(template)]

    assert found == [("EksDeletionProtection", "First"), ("Retained", "Third")]
    assert [*violations({"Outputs": {}})] == []
