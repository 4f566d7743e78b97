"""EKS add-ons: their properties and the pins of their versions."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType
from urllib.parse import quote

from ultrascale.errors import CatalogError

Release = tuple[int, int, int]

_VERSION = re.compile(r"v([0-9]+)\.([0-9]+)\.([0-9]+)-eksbuild\.[0-9]+")


def parse_release(version: str) -> Release:
    """Return (major, minor, patch) of an EKS add-on version.

    Raises:
        CatalogError: ``version`` is not of the form ``vX.Y.Z-eksbuild.N``.
    """
    match = _VERSION.fullmatch(version)
    if match is None:
        raise CatalogError(f"an EKS add-on version is written vX.Y.Z-eksbuild.N, got {version!r}")
    major, minor, patch = match.groups()
    return int(major), int(minor), int(patch)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddonVersion:
    """A pinned version of an EKS add-on.

    Attributes:
        version: What `AddonVersion` takes, ``vX.Y.Z-eksbuild.N``.
        source: Where the pin was read.
        seen: When the source said so, or when it was read if it bears no date.
    """

    version: str
    source: str
    seen: date


@dataclass(frozen=True, slots=True, kw_only=True)
class Addon:
    """An EKS add-on.

    Attributes:
        name: EKS's name for it.
        namespace: Where its pods run.
        service_account: The service account that takes AWS permissions, if any.
        managed_policy: AWS managed policy for that account's role, with its path after ``policy/``.
        makes_volumes: Whether its pods make EBS volumes.
        own_association: Whether EKS takes the association of that account with the add-on.
        needs_schedulable_node: It stays DEGRADED until its Deployment finds a node, and a stack
            that waits for it times out. DaemonSets are ACTIVE with no node at all.
        daemon_sets: Its DaemonSets, each with a pod on the nodes that it is placed on.
        serves: What pods that run use it for; empty where they do without it.
        is_kubernetes: Its releases are Kubernetes' own: never newer than the API server's, and no
            more minors behind than a kubelet.
            Source: https://kubernetes.io/releases/version-skew-policy/#kube-proxy
        floor: Lowest release that works for us.
        configuration: JSON key paths of the configuration values we may write.
        versions: Pins by Kubernetes minor.
    """

    name: str
    namespace: str = "kube-system"
    service_account: str | None = None
    managed_policy: str | None = None
    makes_volumes: bool = False
    own_association: bool = True
    needs_schedulable_node: bool
    daemon_sets: tuple[str, ...] = ()
    serves: str = ""
    is_kubernetes: bool = False
    floor: Release | None = None
    configuration: tuple[str, ...] = ()
    versions: Mapping[str, AddonVersion]


# What the API resolved for a cluster of 1.36, and what then ran on it.
CLUSTER_136 = (
    "https://github.com/suzuki0430/kro-crossplane-eks-idp-lab/blob/main/docs/verification.md"
)
# AWS's own sample, whose dependency scan compares its pins with DescribeAddonVersions for 1.36.
CAPACITY_ORCHESTRATOR = (
    "https://github.com/aws-solutions-library-samples/"
    "global-capacity-orchestrator-on-aws/blob/main/gco/stacks/constants.py"
)
# For sources that bear no date.
READ = date(2026, 11, 21)


def pin(version: str, seen: date, source: str | None = None) -> AddonVersion:
    """Return a pin; without a page of its own, its source is the public code that names it."""
    code_search = "https://github.com/search?type=code&q=" + quote(f'"{version}"')
    return AddonVersion(version=version, source=source or code_search, seen=seen)


def on_every_minor(version: AddonVersion) -> Mapping[str, AddonVersion]:
    """Return the pins of an add-on of which public code runs one build on both minors."""
    return MappingProxyType(dict.fromkeys(("1.35", "1.36"), version))
