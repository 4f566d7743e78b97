"""The Amazon EKS add-ons we install: version per Kubernetes minor, IAM, and configuration keys.

EKS publishes add-on versions through `DescribeAddonVersions` alone, per Kubernetes minor and
Region, and moves its defaults every few weeks. The pins here are the defaults of autumn 2026 as
public configurations recorded them from that call: a pin's source is where its version was read.
An entry of the cluster file's `kubernetes.addons` takes the place of a pin.

EKS checks configuration values against a JSON schema of the add-on's own version, at deploy time:
one key too many fails the stack. `Addon.configuration` therefore lists every key we may write.

Source: https://docs.aws.amazon.com/eks/latest/userguide/workloads-add-ons-available-eks.html
"""

from collections.abc import Mapping
from datetime import date
from types import MappingProxyType

from ultrascale.catalog._addon import (
    CLUSTER_136,
    Addon,
    AddonVersion,
    Release,
    on_every_minor,
    parse_release,
    pin,
)
from ultrascale.catalog._service_addons import (
    CLOUDWATCH_OBSERVABILITY,
    GOVERNANCE_ADDON,
    HYPERPOD_OBSERVABILITY,
    SERVICES,
)
from ultrascale.errors import CatalogError

__all__ = [
    "ADDONS",
    "CLOUDWATCH_OBSERVABILITY",
    "EBS_VOLUME_PROVISIONER",
    "GOVERNANCE_ADDON",
    "HYPERPOD_OBSERVABILITY",
    "Addon",
    "AddonVersion",
    "Release",
    "addon",
    "chosen_version",
    "parse_release",
    "version",
]

# Source: https://github.com/kubernetes-sigs/aws-ebs-csi-driver/blob/master/docs/parameters.md
EBS_VOLUME_PROVISIONER = "ebs.csi.aws.com"

# Every value is a string, numbers and booleans too: "true", "1". The schema refuses others.
# Source: https://docs.aws.amazon.com/cli/latest/reference/eks/describe-addon-configuration.html
_VPC_CNI = Addon(
    name="vpc-cni",
    service_account="aws-node",
    managed_policy="AmazonEKS_CNI_Policy",
    needs_schedulable_node=False,
    # The first release that passes over interfaces without addresses, as efa-only ones are.
    # Source: https://github.com/aws/amazon-vpc-cni-k8s/releases/tag/v1.18.5
    floor=(1, 18, 5),
    configuration=(
        "enableNetworkPolicy",
        "env.ENABLE_PREFIX_DELEGATION",
        "env.MINIMUM_IP_TARGET",
        "env.WARM_ENI_TARGET",
        "env.WARM_IP_TARGET",
        "env.WARM_PREFIX_TARGET",
    ),
    versions=on_every_minor(pin("v1.22.4-eksbuild.3", date(2026, 9, 20))),
)

_KUBE_PROXY = Addon(
    name="kube-proxy",
    needs_schedulable_node=False,
    # Source: https://github.com/bottlerocket-os/bottlerocket/issues/4548
    configuration=("mode",),
    versions=MappingProxyType(
        {
            "1.34": pin("v1.34.6-eksbuild.29", date(2026, 9, 24)),
            "1.35": pin("v1.35.3-eksbuild.29", date(2026, 10, 2)),
            "1.36": pin("v1.36.0-eksbuild.25", date(2026, 10, 2), CLUSTER_136),
        }
    ),
)

# autoScaling's bounds are 2 to 1000. Tolerations given here take the place of the defaults, among
# them CriticalAddonsOnly.
# Source: https://docs.aws.amazon.com/eks/latest/userguide/coredns-autoscaling.html
# Source: https://github.com/cloudbees/terraform-aws-cloudbees-ci-eks-addon (the printed schema)
_COREDNS = Addon(
    name="coredns",
    needs_schedulable_node=True,
    configuration=(
        "affinity",
        "autoScaling.enabled",
        "autoScaling.maxReplicas",
        "autoScaling.minReplicas",
        "corefile",
        "nodeSelector",
        "podDisruptionBudget",
        "replicaCount",
        "resources",
        "tolerations",
        "topologySpreadConstraints",
    ),
    versions=MappingProxyType(
        {
            "1.34": pin("v1.12.4-eksbuild.38", date(2026, 9, 20)),
            "1.35": pin("v1.13.2-eksbuild.31", date(2026, 10, 2)),
            "1.36": pin("v1.14.3-eksbuild.23", date(2026, 9, 24)),
        }
    ),
)

_POD_IDENTITY_AGENT = Addon(
    name="eks-pod-identity-agent",
    needs_schedulable_node=False,
    versions=on_every_minor(pin("v1.3.10-eksbuild.3", date(2026, 10, 2))),
)

_FOUNDATIONS = (_VPC_CNI, _KUBE_PROXY, _COREDNS, _POD_IDENTITY_AGENT)

ADDONS: Mapping[str, Addon] = MappingProxyType(
    {addon.name: addon for addon in (*_FOUNDATIONS, *SERVICES)}
)


def addon(name: str) -> Addon:
    """Return the add-on that EKS calls ``name``.

    Raises:
        CatalogError: We install no such add-on.
    """
    try:
        return ADDONS[name]
    except KeyError:
        message = f"unknown EKS add-on, got {name!r}; choose one of {', '.join(ADDONS)}"
        raise CatalogError(message) from None


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


def chosen_version(name: str, version: str) -> str:
    """Return a user's own version of an add-on after checking its form and our floor.

    Raises:
        CatalogError: The add-on is unknown, ``version`` is malformed, or it is below the floor.
    """
    floor = addon(name).floor or (0, 0, 0)
    if parse_release(version) < floor:
        lowest = ".".join(map(str, floor))
        message = f"the EKS add-on {name} must be v{lowest} or later, got {version!r}"
        raise CatalogError(message)
    return version
