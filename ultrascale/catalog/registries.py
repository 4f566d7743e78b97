"""Amazon ECR registries: an account's own, and the registries of Amazon EKS's images by Region.

Source: https://docs.aws.amazon.com/eks/latest/userguide/add-ons-images.html
Source: https://github.com/awslabs/amazon-eks-ami/blob/main/nodeadm/internal/aws/ecr/ecr.go
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from ultrascale.errors import CatalogError

# Regions that every account has from the start share one registry account; others have their own.
_SHARED_ACCOUNT = "602401143452"
_SHARED_REGIONS = (
    "ap-northeast-1",
    "ap-northeast-2",
    "ap-northeast-3",
    "ap-south-1",
    "ap-southeast-1",
    "ap-southeast-2",
    "ca-central-1",
    "eu-central-1",
    "eu-north-1",
    "eu-west-1",
    "eu-west-2",
    "eu-west-3",
    "sa-east-1",
    "us-east-1",
    "us-east-2",
    "us-west-1",
    "us-west-2",
)

EKS_REGISTRY_ACCOUNTS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(_SHARED_REGIONS, _SHARED_ACCOUNT),
        "af-south-1": "877085696533",
        "ap-east-1": "800184023465",
        # The user guide shows this account with ap-east-1's host name; GuardDuty's list of the
        # same images has the host name below.
        "ap-east-2": "533267051163",
        "ap-south-2": "900889452093",
        "ap-southeast-3": "296578399912",
        "ap-southeast-4": "491585149902",
        "ap-southeast-5": "151610086707",
        "ap-southeast-6": "333609536671",
        "ap-southeast-7": "121268973566",
        "ca-west-1": "761377655185",
        "cn-north-1": "918309763551",
        "cn-northwest-1": "961992271922",
        "eu-central-2": "900612956339",
        "eu-south-1": "590381155156",
        "eu-south-2": "455263428931",
        "eusc-de-east-1": "877088126301",
        "il-central-1": "066635153087",
        "me-central-1": "759879836304",
        "me-south-1": "558608220178",
        "mx-central-1": "730335286997",
        "us-gov-east-1": "151742754352",
        "us-gov-west-1": "013241004608",
    }
)

_DOMAINS: Mapping[str, str] = MappingProxyType({"cn": "amazonaws.com.cn", "eusc": "amazonaws.eu"})

Upstream = Literal["public.ecr.aws", "registry.k8s.io", "quay.io"]

CredentialedUpstream = Literal["docker.io"]

# Name of each registry in the API of pull through cache rules. ECR caches no image of nvcr.io; of
# the registries that demand credentials, the platform has images only from Docker Hub.
# Source: https://docs.aws.amazon.com/AmazonECR/latest/userguide/pull-through-cache.html
ANONYMOUS: Mapping[Upstream, str] = MappingProxyType(
    {"public.ecr.aws": "ecr-public", "registry.k8s.io": "k8s", "quay.io": "quay"}
)
CREDENTIALED: Mapping[CredentialedUpstream, str] = MappingProxyType({"docker.io": "docker-hub"})
PULL_THROUGH: Mapping[str, str] = MappingProxyType({**ANONYMOUS, **CREDENTIALED})
# Hosts whose name in a rule differs from their name in images.
# Source: https://docs.aws.amazon.com/AmazonECR/latest/APIReference/API_CreatePullThroughCacheRule.html
UPSTREAM_URLS: Mapping[str, str] = MappingProxyType({"docker.io": "registry-1.docker.io"})
# Prefix of the name of the secret with the credentials.
# Source: https://docs.aws.amazon.com/AmazonECR/latest/userguide/pull-through-cache-creating-secret.html
SECRET_PREFIX = "ecr-pullthroughcache/"
# Pulls from one address in six hours, without credentials.
# Source: https://docs.docker.com/docker-hub/usage/
DOCKER_HUB_SOURCE = "https://docs.docker.com/docker-hub/usage/"
DOCKER_HUB_PULLS_IN_SIX_HOURS = 100
DOCKER, NVIDIA, ECR_PUBLIC = "docker.io", "nvcr.io", "public.ecr.aws"


def eks_registry(region: str) -> str:
    """Return the host name of the registry with Amazon EKS's images for nodes in ``region``.

    Raises:
        CatalogError: The registry of that Region is not known.
    """
    account = EKS_REGISTRY_ACCOUNTS.get(region)
    if account is None:
        message = (
            f"the registry of Amazon EKS's images is not known for this Region, got {region!r}; "
            "set images.eks_registry to its host name"
        )
        raise CatalogError(message)
    return ecr_registry(account, region)


def ecr_registry(account: str, region: str) -> str:
    """Return the host name of the private registry of ``account`` in ``region``.

    Source: https://docs.aws.amazon.com/AmazonECR/latest/userguide/Registries.html
    """
    return f"{account}.dkr.ecr.{region}.{domain(region)}"


def domain(region: str) -> str:
    """Return the domain of AWS's host names in ``region``."""
    return _DOMAINS.get(region.partition("-")[0], "amazonaws.com")


# Compiled at first use, as the next pattern: many files name neither host.
_ECR = r"(?P<account>\d{12})\.dkr[.-]ecr(?:-fips)?\.(?P<region>[a-z0-9-]+)\.[a-z.-]+"


def parse_ecr_registry(host: str) -> tuple[str, str] | None:
    """Return the account and the Region of a private registry of ECR; None for another host."""
    found = re.fullmatch(_ECR, host)
    return None if found is None else (found["account"], found["region"])


# Source: https://docs.aws.amazon.com/codeartifact/latest/ug/python-configure-pip.html
# Source: https://docs.aws.amazon.com/codeartifact/latest/ug/dualstack-endpoints.html
_CODE_ARTIFACT = (
    r"https://(?P<domain>[a-z][a-z0-9-]*[a-z0-9])-(?P<owner>\d{12})\.d\.codeartifact\."
    r"(?P<region>[a-z0-9-]+)\.(?:amazonaws\.com|on\.aws)/pypi/(?P<repository>[^/]+)/simple/?"
)
CODE_ARTIFACT_HOST = re.compile(r"https://[^/]+\.d\.codeartifact\.")
"""Prefix of the URLs of AWS CodeArtifact."""


def parse_code_artifact(url: str) -> Mapping[str, str] | None:
    """Return ``domain``, ``owner``, ``region`` and ``repository`` of pip's CodeArtifact index.

    None for another URL.
    """
    found = re.fullmatch(_CODE_ARTIFACT, url)
    return None if found is None else found.groupdict()
