"""The Amazon EKS add-ons that we install: version per Kubernetes minor, IAM, configuration keys.

EKS publishes add-on versions through `DescribeAddonVersions` alone, per Kubernetes minor and
Region, and moves its defaults every few weeks. The pins here are the defaults of autumn 2026 as
public configurations recorded them from that call: a pin's source is the page from which its
version was read. An entry of the cluster file's `kubernetes.addons` replaces a pin.

EKS checks configuration values against a JSON schema of the add-on's own version, at deploy time:
an unknown key fails the stack. `Addon.configuration` therefore lists every key that we may write.

The pins stand in `addons.json`. The source of a pin without a page of its own is a search of the
public code that names it. kro-crossplane-eks-idp-lab states what the API resolved for a cluster of
1.36, and what then ran on it; global-capacity-orchestrator-on-aws is a sample of AWS's own, whose
dependency scan compares its pins with `DescribeAddonVersions` for 1.36. A source that bears no
date was read on 2026-11-21.

Source: https://docs.aws.amazon.com/eks/latest/userguide/workloads-add-ons-available-eks.html
"""

import re
from collections.abc import Mapping
from datetime import date
from functools import cache
from types import MappingProxyType

from ultrascale.catalog import upgrades
from ultrascale.catalog.tables import Row, read_document
from ultrascale.errors import CatalogError

Release = tuple[int, int, int]

_VERSION = re.compile(r"v([0-9]+)\.([0-9]+)\.([0-9]+)-eksbuild\.[0-9]+")

GOVERNANCE_ADDON = "amazon-sagemaker-hyperpod-taskgovernance"
CLOUDWATCH_OBSERVABILITY = "amazon-cloudwatch-observability"
HYPERPOD_OBSERVABILITY = "amazon-sagemaker-hyperpod-observability"
INFERENCE_OPERATOR = "amazon-sagemaker-hyperpod-inference"
TRAINING_OPERATOR = "amazon-sagemaker-hyperpod-training-operator"
CERT_MANAGER = "cert-manager"
MONITORING_AGENT = "eks-node-monitoring-agent"

# Source: https://github.com/kubernetes-sigs/aws-ebs-csi-driver/blob/master/docs/parameters.md
EBS_VOLUME_PROVISIONER = "ebs.csi.aws.com"


class AddonVersion(Row, frozen=True, kw_only=True):
    """A pinned version of an EKS add-on."""

    version: str
    """Value of the add-on's `AddonVersion` property, ``vX.Y.Z-eksbuild.N``."""
    source: str
    """Page that states the pin, or a search of the public code that names it."""
    seen: date
    """Day of the source, or the day on which an undated source was read."""


class BadReleases(Row, frozen=True, kw_only=True):
    """Releases of an EKS add-on that harm a cluster of ours, or cannot be installed in it."""

    since: Release = (0, 0, 0)
    """The first of them; without it they have a floor above them."""
    before: Release
    """The first release after them."""
    why: str
    """Their fault, after "that one"."""
    source: str
    """Page or issue that states it."""
    seen: date
    """Day of the source, or the day on which an undated source was read."""


class Addon(Row, frozen=True, kw_only=True):
    """An EKS add-on."""

    name: str
    """The add-on's name at EKS."""
    sources: tuple[str, ...] = ()
    """Pages with its documentation."""
    namespace: str = "kube-system"
    """Namespace of its pods."""
    service_account: str | None = None
    """The service account that takes AWS permissions, if any."""
    managed_policy: str | None = None
    """AWS managed policy for the role of `service_account`, with its path after ``policy/``."""
    makes_volumes: bool = False
    """Whether its pods make EBS volumes."""
    own_association: bool = True
    """Whether EKS takes the Pod Identity association of `service_account` as part of the add-on."""
    needs_schedulable_node: bool
    """Whether the add-on stays DEGRADED until its Deployment finds a node; a waiting stack times
    out.

    DaemonSets are ACTIVE with no node at all.
    """
    daemon_sets: tuple[str, ...] = ()
    """DaemonSets of the add-on, each with a pod on every node that its placement allows."""
    serves: str = ""
    """Purpose that the add-on serves for running pods; empty if they do not need it."""
    is_kubernetes: bool = False
    """Whether the add-on's releases are Kubernetes' own.

    They are never newer than the API server's, and no more minors behind than a kubelet.

    Source: https://kubernetes.io/releases/version-skew-policy/#kube-proxy
    """
    never: tuple[BadReleases, ...] = ()
    """Releases that nobody gets, the earliest first."""
    configuration: tuple[str, ...] = ()
    """JSON key paths of the configuration values we may write."""
    versions: dict[str, AddonVersion]
    """Pins by Kubernetes minor."""
    versions_note: str = ""
    """Reason for the pins."""


REFUSED: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        INFERENCE_OPERATOR: (
            "HyperPod's inference operator, which cannot run services of this file",
            "write jobs of kind: service, and see "
            "docs/decisions/0011-hyperpod-inference-operator.md",
        )
    }
)
"""Add-ons of EKS that no cluster gets, each with the reason and the remedy."""


@cache
def known_addons() -> Mapping[str, Addon]:
    """Return the add-ons that we install, by name."""
    return {addon.name: addon for addon in read_document("addons.json", tuple[Addon, ...])}


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


def addon(name: str) -> Addon:
    """Return the add-on that EKS calls ``name``.

    Raises:
        CatalogError: We install no such add-on.
    """
    known = known_addons()
    if name not in known:
        message = f"unknown EKS add-on, got {name!r}; choose one of {', '.join(known)}"
        raise CatalogError(message)
    return known[name]


def version(name: str, kubernetes_version: str) -> AddonVersion:
    """Return the pinned version of an add-on for a Kubernetes minor such as ``1.35``.

    Raises:
        CatalogError: We install no such add-on, or no source states a version of it for that minor.
    """
    pins = addon(name).versions
    if kubernetes_version not in pins:
        message = (
            f"no pinned version of the EKS add-on {name} for this Kubernetes version, "
            f"got {kubernetes_version!r} (pinned: {', '.join(pins) or 'none'}); "
            f"set kubernetes.addons.{name} to a version that "
            f"`aws eks describe-addon-versions --addon-name {name} "
            f"--kubernetes-version {kubernetes_version}` lists"
        )
        raise CatalogError(message)
    return pins[kubernetes_version]


def chosen_version(name: str, version: str, kubernetes_version: str) -> str:
    """Return a user's version of an add-on, checked by its form, known faults and the cluster.

    Raises:
        CatalogError: The add-on is unknown, or ``version`` is malformed, known to be bad, or of
            a Kubernetes release that does not fit the cluster's.
    """
    known, release = addon(name), parse_release(version)
    faults = [bad for bad in known.never if bad.since <= release < bad.before]
    if faults:
        bad = max(faults, key=lambda bad: bad.before)
        sound = ".".join(map(str, bad.before))
        message = (
            f"the EKS add-on {name} must be v{sound} or later, got {version!r}; that one {bad.why} "
            f"({bad.source}, {bad.seen})"
        )
        raise CatalogError(message)
    newest = upgrades.minor(kubernetes_version)
    oldest = newest - upgrades.KUBELET_MINORS_BEHIND
    if known.is_kubernetes and not (1, oldest) <= release[:2] <= (1, newest):
        message = (
            f"the EKS add-on {name} of Kubernetes {kubernetes_version} must be v1.{oldest} to "
            f"v1.{newest}, got {version!r}"
        )
        raise CatalogError(message)
    return version
