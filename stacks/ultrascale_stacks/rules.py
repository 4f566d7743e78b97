"""Our own rules over CloudFormation templates: mistakes that no general linter knows.

cdk-nag's EKS rules know only the custom-resource cluster of `aws_eks`; the first rules here replace
them. The other rules find mistakes about accelerators that cost money, lose data, or slow the
network.
"""

from collections.abc import Iterator, Mapping

from ultrascale.documents import mapping, sequence
from ultrascale_stacks.node_rules import NODE_RULES
from ultrascale_stacks.rule import Resource, Rule, at, resources

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
        public and (not cidrs or "0.0.0.0/0" in cidrs)
    )


def _open_to_the_world(resource: Resource) -> bool:
    inline = sequence(resource.properties.get("SecurityGroupIngress"))
    rules = [resource.properties, *(mapping(rule) for rule in inline)]
    return any(
        rule.get("CidrIp") == "0.0.0.0/0" or rule.get("CidrIpv6") == "::/0" for rule in rules
    )


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
