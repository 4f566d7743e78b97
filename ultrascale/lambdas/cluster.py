"""Endpoint and certificate authority of an EKS cluster, read from EKS at the time of the call.

EKS rotates the authority of a cluster: with an authority frozen in a template, all calls fail.

Sources:
    https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeCluster.html
    https://docs.aws.amazon.com/eks/latest/APIReference/API_Certificate.html
"""

from dataclasses import dataclass

import boto3


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiServer:
    """The API server of a cluster."""

    endpoint: str  # Its URL
    certificate_authority: str  # Its certificate authority, in base64


def look_up(name: str) -> ApiServer:
    """Return the API server of the cluster ``name``.

    Raises:
        ClientError: EKS refused.
    """
    cluster = boto3.client("eks").describe_cluster(name=name)["cluster"]
    return ApiServer(
        endpoint=cluster["endpoint"],
        certificate_authority=cluster["certificateAuthority"]["data"],
    )
