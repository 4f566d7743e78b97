"""Types of boto3's clients for which the project has no stubs."""

from collections.abc import Sequence
from datetime import datetime
from typing import NotRequired, TypedDict

from botocore.client import BaseClient


class RenewalSummary(TypedDict):
    """The renewal of a certificate that ACM manages."""

    RenewalStatus: str


class Certificate(TypedDict):
    """A certificate in the answer of ``DescribeCertificate``."""

    DomainName: str
    Status: str
    Type: str
    KeyAlgorithm: str
    NotAfter: NotRequired[datetime]
    RenewalSummary: NotRequired[RenewalSummary]


class DescribedCertificate(TypedDict):
    """The answer of ``DescribeCertificate``."""

    Certificate: Certificate


class CertificateManagerClient(BaseClient):
    """The part of boto3's Certificate Manager client that the product uses."""

    def describe_certificate(
        self,
        *,
        CertificateArn: str,  # noqa: N803 the API's own name
    ) -> DescribedCertificate:
        """Return a certificate."""
        ...


class LoadBalancer(TypedDict):
    """A load balancer in the answer of ``DescribeLoadBalancers``."""

    Type: str


class LoadBalancerPage(TypedDict):
    """A page of the answer of ``DescribeLoadBalancers``."""

    LoadBalancers: Sequence[LoadBalancer]


class TargetGroup(TypedDict):
    """A target group in the answer of ``DescribeTargetGroups``."""

    TargetGroupArn: str


class TargetGroupPage(TypedDict):
    """A page of the answer of ``DescribeTargetGroups``."""

    TargetGroups: Sequence[TargetGroup]


class LoadBalancingClient(BaseClient):
    """The part of boto3's Elastic Load Balancing client that the product uses."""

    def describe_load_balancers(self) -> LoadBalancerPage:
        """Return the Region's load balancers, except Classic Load Balancers."""
        ...

    def describe_target_groups(self) -> TargetGroupPage:
        """Return the target groups of the Region."""
        ...
