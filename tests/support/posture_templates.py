"""The security of what CloudFormation makes: each rule yields its findings as sentences."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from tests.support.posture_iam import Document, listed, resources, text

# What goes when nothing else holds it.
_DATA = (
    "AWS::S3::Bucket",
    "AWS::FSx::FileSystem",
    "AWS::RDS::DBCluster",
    "AWS::KMS::Key",
    "AWS::ECR::Repository",
)
_PROTECTED = ("AWS::EKS::Cluster", "AWS::RDS::DBCluster")
# Lambda supports them into 2028 at least.
# Source: https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtimes.html
RUNTIMES = frozenset({"python3.13", "python3.14", "nodejs24.x"})
_ANYWHERE = ("0.0.0.0/0", "::/0")


def at(value: object, *path: str) -> Any:
    """Return what stands at ``path`` in mappings, None where nothing does."""
    for key in path:
        value = cast("Document", value).get(key) if isinstance(value, Mapping) else None
    return value


def _all(value: object, *path: str) -> list[Any]:
    """Return the list at ``path``, an empty one where there is none."""
    return at(value, *path) or []


def named_in(value: object) -> Iterator[str]:
    """Yield every part of a template that a `Ref` or a `Fn::GetAtt` names."""
    if isinstance(value, list):
        for each in cast("list[object]", value):
            yield from named_in(each)
    elif isinstance(value, dict):
        items = cast("dict[str, Any]", value)
        named = items.get("Ref") or items.get("Fn::GetAtt")
        if len(items) == 1 and named and not str(named).startswith("AWS::"):
            yield named[0] if isinstance(named, list) else named.partition(".")[0]
        for each in items.values():
            yield from named_in(each)


def encryption_findings(template: Document) -> Iterator[str]:
    """Find what would hold data in the clear, or by a key that nobody chose where one should."""
    for logical_id, kind, properties in resources(template):
        if kind in _ENCRYPTED and not _ENCRYPTED[kind](properties):
            yield f"{logical_id}: {kind} is not encrypted as it has to be"


def _bucket(properties: Document) -> bool:
    rules = _all(properties, "BucketEncryption", "ServerSideEncryptionConfiguration")
    kinds = [at(rule, "ServerSideEncryptionByDefault", "SSEAlgorithm") for rule in rules]
    return bool(kinds) and {*kinds} <= {"aws:kms", "aws:kms:dsse", "AES256"}


def _disks(properties: Document) -> bool:
    disks = _all(properties, "LaunchTemplateData", "BlockDeviceMappings")
    return bool(disks) and all(at(disk, "Ebs", "Encrypted") is True for disk in disks)


def _repository(properties: Document) -> bool:
    """Return whether a repository has a key of ours; a cache holds what is public anyway."""
    cached = properties.get("EmptyOnDelete") is True
    return cached or at(properties, "EncryptionConfiguration", "EncryptionType") == "KMS"


def _secrets(properties: Document) -> bool:
    configured = _all(properties, "EncryptionConfig")
    return any(
        at(each, "Provider", "KeyArn") and "secrets" in each["Resources"] for each in configured
    )


# By the type: whether a resource's properties have it encrypted. CodeBuild and CloudWatch Logs
# encrypt by keys of AWS's where none is named, and SQS does so by default.
_ENCRYPTED: Mapping[str, Callable[[Document], bool]] = {
    "AWS::S3::Bucket": _bucket,
    "AWS::EC2::LaunchTemplate": _disks,
    "AWS::EC2::Volume": lambda p: p.get("Encrypted") is True,
    "AWS::ECR::Repository": _repository,
    "AWS::EKS::Cluster": _secrets,
    "AWS::FSx::FileSystem": lambda p: "KmsKeyId" in p,
    "AWS::RDS::DBCluster": lambda p: p.get("StorageEncrypted") is True and "KmsKeyId" in p,
    "AWS::RDS::DBInstance": lambda p: (
        # An instance of a cluster has the cluster's storage.
        "DBClusterIdentifier" in p or (p.get("StorageEncrypted") is True and "KmsKeyId" in p)
    ),
    "AWS::SNS::Topic": lambda p: "KmsMasterKeyId" in p,
    "AWS::SQS::Queue": lambda p: p.get("SqsManagedSseEnabled") is True or "KmsMasterKeyId" in p,
    "AWS::CodeBuild::Project": lambda p: (
        at(p, "Artifacts", "EncryptionDisabled") is not True
        and at(p, "LogsConfig", "S3Logs", "EncryptionDisabled") is not True
    ),
    "AWS::KMS::Key": lambda p: p.get("EnableKeyRotation") is True,
}


_POLICIES = {
    "AWS::S3::BucketPolicy": ("Bucket", "AWS::S3::Bucket", "s3:*"),
    "AWS::SQS::QueuePolicy": ("Queues", "AWS::SQS::Queue", "sqs:*"),
    "AWS::SNS::TopicPolicy": ("Topics", "AWS::SNS::Topic", "sns:Publish"),
}


def transport_findings(template: Document) -> Iterator[str]:
    """Find buckets, queues and topics that take requests which are not encrypted on their way."""
    closed: set[str] = set()
    for _, kind, properties in resources(template):
        if kind not in _POLICIES:
            continue
        names, _, action = _POLICIES[kind]
        if any(_denies_http(each, action) for each in properties["PolicyDocument"]["Statement"]):
            closed |= {text(each) for each in listed(properties[names])}
    for logical_id, kind, properties in resources(template):
        if (
            kind in {wanted for _, wanted, _ in _POLICIES.values()}
            and f"<{logical_id}>" not in closed
        ):
            yield f"{logical_id}: {kind} answers without TLS"
        parameters = properties.get("Parameters", {})
        if kind == "AWS::RDS::DBClusterParameterGroup" and not {
            "1",
            "ON",
        } & {str(parameters.get(key)) for key in ("rds.force_ssl", "require_secure_transport")}:
            yield f"{logical_id}: the database answers without TLS"


def _denies_http(statement: Document, action: str) -> bool:
    return (
        statement["Effect"] == "Deny"
        and statement.get("Principal") in ("*", {"AWS": "*"})
        and action in listed(statement["Action"])
        and at(statement, "Condition", "Bool", "aws:SecureTransport") in ("false", False)
    )


def ingress_findings(template: Document) -> Iterator[str]:
    """Find what the internet reaches: security groups, balancers, instances with its addresses."""
    for logical_id, kind, properties in resources(template):
        rules = [*listed(properties.get("SecurityGroupIngress", []))]
        if kind == "AWS::EC2::SecurityGroupIngress":
            rules.append(properties)
        if any({at(rule, "CidrIp"), at(rule, "CidrIpv6")} & {*_ANYWHERE} for rule in rules):
            yield f"{logical_id}: is open to the internet"
        if kind in _CLOSED and not _CLOSED[kind](properties):
            yield f"{logical_id}: {kind} is within reach of the internet"


def _private_nodes(properties: Document) -> bool:
    nics = _all(properties, "LaunchTemplateData", "NetworkInterfaces")
    return not any(at(nic, "AssociatePublicIpAddress") is True for nic in nics)


# By the type: whether the internet is kept from it.
_CLOSED: Mapping[str, Callable[[Document], bool]] = {
    "AWS::EC2::LaunchTemplate": _private_nodes,
    "AWS::EC2::Subnet": lambda p: p.get("MapPublicIpOnLaunch") is not True,
    "AWS::RDS::DBInstance": lambda p: p.get("PubliclyAccessible") is False,
    "AWS::S3::Bucket": lambda p: (
        [*(p.get("PublicAccessBlockConfiguration", {})).values()] == [True] * 4
    ),
    "AWS::ElasticLoadBalancingV2::LoadBalancer": lambda p: p.get("Scheme") == "internal",
}


def endpoint_findings(template: Document, *, public_cidrs: tuple[str, ...]) -> Iterator[str]:
    """Find API servers that answer publicly where the file does not ask, or at other ranges."""
    for logical_id, kind, properties in resources(template):
        if kind != "AWS::EKS::Cluster":
            continue
        vpc = properties["ResourcesVpcConfig"]
        if vpc.get("EndpointPrivateAccess") is not True:
            yield f"{logical_id}: does not answer inside the VPC"
        if vpc.get("EndpointPublicAccess") is not bool(public_cidrs):
            yield f"{logical_id}: its public endpoint is not what the file asks for"
        if tuple(vpc.get("PublicAccessCidrs", ())) != public_cidrs:
            yield f"{logical_id}: answers at other ranges than the file names"


def metadata_findings(template: Document) -> Iterator[str]:
    """Find nodes whose credentials a pod, or a forged request, could take."""
    for logical_id, kind, properties in resources(template):
        if kind == "AWS::EC2::LaunchTemplate":
            options = at(properties, "LaunchTemplateData", "MetadataOptions")
            if at(options, "HttpTokens") != "required":
                yield f"{logical_id}: instance metadata answers without a token"
            if at(options, "HttpPutResponseHopLimit") != 1:
                yield f"{logical_id}: pods reach the instance metadata"
        if kind in ("AWS::EC2::Instance", "AWS::AutoScaling::LaunchConfiguration"):
            yield f"{logical_id}: {kind} is made without a launch template"


def retention_findings(template: Document, *, lost: tuple[str, ...] = ()) -> Iterator[str]:
    """Find data that goes with its stack, and what a single request deletes.

    Args:
        template: The template.
        lost: Beginnings of logical ids whose data is a copy, or is made anew by each deploy.
    """
    for logical_id, kind, properties in resources(template):
        body = template["Resources"][logical_id]
        kept = (
            body.get("DeletionPolicy") in ("Retain", "RetainExceptOnCreate")
            and body.get("UpdateReplacePolicy") == "Retain"
        )
        if kind in _DATA and not kept and not logical_id.startswith(lost or ("-",)):
            yield f"{logical_id}: {kind} goes with its stack"
        if kind in _PROTECTED and properties.get("DeletionProtection") is not True:
            yield f"{logical_id}: {kind} is deleted by one request"


def runtime_findings(template: Document) -> Iterator[str]:
    """Find functions on a runtime that gets no more security updates, or soon will not."""
    for logical_id, kind, properties in resources(template):
        if kind == "AWS::Lambda::Function" and properties.get("Runtime") not in RUNTIMES:
            yield f"{logical_id}: runs on {properties.get('Runtime')}"


def image_findings(template: Document) -> Iterator[str]:
    """Find repositories of ours whose tags can come to mean another image."""
    for logical_id, kind, properties in resources(template):
        if (
            kind == "AWS::ECR::Repository"
            and properties.get("ImageTagMutability") != "IMMUTABLE"
            # A cache has its upstream's tags as they are.
            and properties.get("EmptyOnDelete") is not True
        ):
            yield f"{logical_id}: its tags can be moved"


def build_findings(template: Document, *, privileged: tuple[str, ...]) -> Iterator[str]:
    """Find builds that are root on their host, or that build what anyone sends them.

    Args:
        template: The template.
        privileged: Beginnings of logical ids of the builds that need it.
    """
    for logical_id, kind, properties in resources(template):
        if kind != "AWS::CodeBuild::Project":
            continue
        root = at(properties, "Environment", "PrivilegedMode") is True
        if root and not logical_id.startswith(privileged):
            yield f"{logical_id}: is root on its host"
        if properties.get("Visibility", "PRIVATE") != "PRIVATE":
            yield f"{logical_id}: its logs are public"
