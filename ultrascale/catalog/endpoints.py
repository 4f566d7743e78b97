"""VPC endpoints of AWS services, and the services that each part of a cluster calls in its VPC.

Sources:
    https://docs.aws.amazon.com/vpc/latest/privatelink/aws-services-privatelink-support.html
    https://docs.aws.amazon.com/general/latest/gr/aws-service-information.html (hosts)
    https://github.com/awsdocs/amazon-eks-user-guide/blob/101184ec/latest/ug/clusters/private-clusters.adoc
    (EKS and its nodes)
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Literal, get_args

from ultrascale.catalog.tables import Row, read_document

Kind = Literal["interface", "gateway"]
Feature = Literal[
    "nodes",
    "session-manager",
    "pod-identity",
    "functions",
    "karpenter",
    "cluster-autoscaler",
    "load-balancer-controller",
    "termination-handler",
    "vpc-cni",
    "ebs-csi",
    "fsx-csi",
    "mountpoint-s3",
    "s3-output",
    "cloudwatch",
    "node-pool-calendars",
    "ledger",
    "hyperpod",
    "hyperpod-chart",
    "hyperpod-metrics",
    "backend",
]
"""Part of a cluster that makes the calls."""
FEATURES: tuple[Feature, ...] = get_args(Feature)


class Service(Row, frozen=True, kw_only=True):
    """An AWS service that has VPC endpoints."""

    name: str
    """Short name of the endpoint, which follows ``com.amazonaws.REGION.``."""
    hosts: tuple[str, ...]
    """DNS names that an endpoint with private DNS answers for.

    ``*`` stands for any first label, ``REGION`` for the Region.
    """
    actions: tuple[str, ...]
    """Prefixes of the service's IAM actions."""
    kind: Kind = "interface"
    """Kind of the endpoint: network interfaces, or an entry in route tables."""
    source: str = ""
    """Page of the service itself, beside the pages above."""


class Call(Row, frozen=True, kw_only=True):
    """Calls of a service by a part of a cluster."""

    service: str
    """Short name of the service's endpoint."""
    why: str
    """Purpose of the calls, as the end of a sentence whose subject is the part."""
    required: bool = True
    """Whether the part always fails without the calls; otherwise it fails only in rare cases."""


class FeatureCalls(Row, frozen=True, kw_only=True):
    """Calls of all services by a part of a cluster."""

    feature: Feature
    """Part of the cluster that makes the calls."""
    title: str
    """The part's name in a sentence."""
    sources: tuple[str, ...] = ()
    """Pages that document the calls."""
    calls: tuple[Call, ...]
    """Calls of the part, by service."""


class _Document(Row, frozen=True, kw_only=True):
    services: tuple[Service, ...]
    features: tuple[FeatureCalls, ...]


@cache
def services() -> Mapping[str, Service]:
    """Return the services by the short names of their endpoints."""
    return {row.name: row for row in _document().services}


@cache
def features() -> Mapping[Feature, FeatureCalls]:
    """Return the calls of each part of a cluster."""
    return {row.feature: row for row in _document().features}


@cache
def _document() -> _Document:
    return read_document("endpoints.json", _Document)


def called_by_interface() -> frozenset[str]:
    """Return the services that any cluster may call through an interface endpoint."""
    called = {call.service for row in features().values() for call in row.calls}
    return frozenset(name for name in called if services()[name].kind == "interface")


OF_OUR_VPC = (
    *("ec2", "ecr.api", "ecr.dkr", "sts", "logs", "monitoring", "ssm", "ssmmessages"),
    *("ec2messages", "eks", "eks-auth", "elasticloadbalancing", "autoscaling", "kms"),
)
"""Interface endpoints of each VPC that we make, whatever is deployed.

With the endpoints, nodes join, pull images, log and can be reached when the VPC's NAT gateways
fail; later jobs and load balancers can use them too.
"""

LAYER_BUCKET = "prod-REGION-starport-layer-bucket"
"""Bucket that holds the image layers of ECR; only the S3 endpoint of the Region leads there."""

S3_GATEWAY_BUCKETS = (
    (LAYER_BUCKET, "layers of images in ECR"),
    ("al2023-repos-REGION-de612dc2", "packages of Amazon Linux 2023"),
    ("cdk-*-assets-*-REGION", "assets of the CDK: functions, charts, sources of builds"),
    ("cloudformation-custom-resource-response-*", "answers of custom resources"),
)
"""Buckets that a policy of the S3 endpoint must allow, beside the cluster's own buckets.

Sources:
    https://docs.aws.amazon.com/AmazonECR/latest/userguide/vpc-endpoints.html#ecr-minimum-s3-perms
    https://docs.aws.amazon.com/linux/al2023/ug/deterministic-upgrades-usage.html
    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cfn-vpce-bucketnames.html
"""

SOURCE = "https://docs.aws.amazon.com/vpc/latest/privatelink/aws-services-privatelink-support.html"
S3_POLICY_SOURCE = "https://docs.aws.amazon.com/vpc/latest/privatelink/vpc-endpoints-s3.html"

_LONG_NAME = re.compile(r"(?:com\.amazonaws|aws\.api|aws\.sagemaker)\.[a-z0-9-]+\.(.+)")


def short_name(service: str) -> str:
    """Return the short name of an endpoint: ``ec2`` of ``com.amazonaws.us-east-1.ec2``."""
    long = _LONG_NAME.fullmatch(service)
    return long[1] if long is not None else service


def kind_of(service: str) -> Kind:
    """Return the kind of ``service``'s endpoint; an unknown service has network interfaces."""
    known = services().get(service)
    return "interface" if known is None else known.kind


def services_of_action(action: str) -> tuple[str, ...]:
    """Return the endpoints for an IAM action, such as ``ecr.api`` for ``ecr:BatchGetImage``.

    Empty for a service without endpoints, such as IAM.
    """
    prefix = action.partition(":")[0]
    return tuple(name for name, service in services().items() if prefix in service.actions)


def service_of_host(host: str, region: str) -> str | None:
    """Return the service whose endpoint answers for ``host`` in ``region``; None without one."""
    for name, service in services().items():
        for pattern in service.hosts:
            known = pattern.replace("REGION", region)
            if host == known or (known.startswith("*.") and host.endswith(known[1:])):
                return name
    return None
