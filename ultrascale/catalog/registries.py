"""Registries of images, references of images, and images of Helm charts.

Source: https://docs.aws.amazon.com/eks/latest/userguide/add-ons-images.html
Source: https://github.com/awslabs/amazon-eks-ami/blob/main/nodeadm/internal/aws/ecr/ecr.go
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from ultrascale.catalog import karpenter
from ultrascale.core.table import all_parts
from ultrascale.errors import CatalogError
from ultrascale.frozen import Frozen

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


# --- References of container images, in the grammar of container runtimes and the kubelet ---------
# Source: https://github.com/distribution/reference/blob/v0.6.0/reference.go


_DOMAIN_PART = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_PATH_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
# Compiled at the first use: many cluster files name no image.
_HOST = rf"{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*(?::(?P<port>[0-9]{{1,5}}))?"
_TAG = "[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127}"
# Algorithms that the runtimes know, with the length of each digest.
# Source: https://github.com/opencontainers/image-spec/blob/v1.1.1/descriptor.md#registered-algorithms
_DIGEST = "sha256:[a-f0-9]{64}|sha512:[a-f0-9]{128}"
_IN_REGISTRY = (
    rf"(?P<repository>{_PATH_PART}(?:/{_PATH_PART})*)"
    rf"(?::(?P<tag>{_TAG}))?(?:@(?P<digest>{_DIGEST}))?"
)
PATTERN = (
    rf"^(?:{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*(?::[0-9]{{1,5}})?/)?{_PATH_PART}(?:/{_PATH_PART})*"
    rf"(?::{_TAG})?(?:@(?:{_DIGEST}))?$"
)
"""Pattern that matches every reference, for JSON Schemas."""
_LONGEST_NAME = 255
_HIGHEST_PORT = 65_535


class ImageReference(Frozen):
    """Parts of an image reference."""

    host: str | None  # Registry, with its port; None where the reference begins with a repository
    repository: str  # Repository within the registry
    tag: str | None  # Tag; None without one
    digest: str | None  # Digest; None without one


def parse_reference(text: str) -> ImageReference | None:
    """Return the parts of ``text``; None if it is no image reference.

    The first part is a registry if it has a dot or a colon; `localhost` is no registry.
    """
    host, slash, rest = text.partition("/")
    if not (slash and ("." in host or ":" in host)):
        host, rest = "", text
    registry, found = re.fullmatch(_HOST, host), re.fullmatch(_IN_REGISTRY, rest)
    if found is None or len(host) + len(found["repository"]) >= _LONGEST_NAME:
        return None
    if host and (registry is None or int(registry["port"] or 0) > _HIGHEST_PORT):
        return None
    return ImageReference(
        host=host or None,
        repository=found["repository"],
        tag=found["tag"],
        digest=found["digest"],
    )


# --- Images of Helm charts with this product's values ---------------------------------------------
# Our values turn on no other container of these charts: KEDA has three programs, the others have
# one container. Parts have rows of their own. `tests/parts/mirror/test_chart_images.py` compares a
# chart's source with its row by `helm template`, as done with Karpenter 1.14.1, LeaderWorkerSet
# 0.10.0 and KEDA 2.20.2.
#
# Sources:
#     https://github.com/aws/karpenter-provider-aws/blob/v1.14.1/charts/karpenter/templates/deployment.yaml
#     https://github.com/kubernetes-sigs/lws/blob/v0.10.0/charts/lws/templates/manager/deployment.yaml
#     https://github.com/kedacore/charts/tree/1444d00/keda/templates


_IMAGES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        # Custom resource definitions alone.
        karpenter.CRD_CHART: (),
        karpenter.CHART: (f"{karpenter.CONTROLLER_IMAGE}:",),
    }
)


def chart_images(chart: str, version: str) -> tuple[str, ...]:
    """Return the images of a chart.

    Args:
        chart: Its published location, ``oci://HOST/PATH`` or ``https://HOST/PATH``; the part
            before the path does not matter.
        version: Its version, which completes the tags.

    Raises:
        CatalogError: The images of that chart are not known.
    """
    of_parts = {each.location: each.images for part in all_parts() for each in part.charts}
    known = {
        location.partition("://")[2]: images for location, images in {**_IMAGES, **of_parts}.items()
    }
    try:
        return tuple(
            f"{image}{version}" if image.endswith((":", ":v")) else image
            for image in known[chart.partition("://")[2]]
        )
    except KeyError:
        message = f"no list of the images of {chart}; add it to ultrascale/catalog/registries.py"
        raise CatalogError(message) from None
