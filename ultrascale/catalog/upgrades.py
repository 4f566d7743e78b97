"""Kubernetes minors: support dates on EKS, removed APIs and version skew.

Sources:
    https://kubernetes.io/docs/reference/using-api/deprecation-guide/
    https://docs.aws.amazon.com/eks/latest/userguide/update-cluster.html
    https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-versions.html
"""

from collections.abc import Mapping
from datetime import date
from types import MappingProxyType

from ultrascale.frozen import Frozen

_OPENAPI = "https://github.com/kubernetes/kubernetes/tree/release-{}/api/openapi-spec/v3"

STANDARD_SUPPORT_ENDS: Mapping[str, date] = MappingProxyType(
    {"1.35": date(2027, 3, 27), "1.36": date(2027, 8, 2)}
)
"""Day, in UTC, from whose start EKS bills extended support of each minor.

Source: https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-versions.html
"""

EXTENDED_SUPPORT_USD_PER_HOUR = 0.50
"""Surcharge of a cluster in extended support, in US dollars an hour: 0.60 instead of 0.10.

Source: https://aws.amazon.com/eks/pricing/
"""

KUBELET_MINORS_BEHIND = 3
"""Minors that a kubelet may be behind the API server; it may never be ahead.

Source: https://kubernetes.io/releases/version-skew-policy/#kubelet
"""

EVICTION_MINUTES = 15
"""Time for which EKS waits for the pods of a managed group's node before its update fails.

Source: https://docs.aws.amazon.com/eks/latest/userguide/managed-node-update-behavior.html
"""

FREE_ADDRESSES = 5
"""Most addresses of the control plane's subnets that EKS needs to upgrade it.

Source: https://docs.aws.amazon.com/eks/latest/userguide/update-cluster.html
"""

WAY_BACK_DAYS = 7
"""Time after an upgrade in which EKS can take a control plane back to the minor before.

Source: https://docs.aws.amazon.com/eks/latest/userguide/rollback-cluster.html
"""

KUBECTL_VERSION = "1.35"
"""Minor of the `kubectl` that applies manifests: it may be one away from the API server's.

Source: https://kubernetes.io/releases/version-skew-policy/#kubectl
"""

HELM_VERSION, LATEST_HELM_VERSION = "4.1", "1.35"
"""The Helm that installs charts, and the latest minor that it promises to know.

That is of 3.20, which came out with 4.1 and is built with the same libraries: the page has no row
for 4.1 yet.

Source: https://helm.sh/docs/topics/version_skew/
"""


class RemovedApi(Frozen):
    """A version of kinds that Kubernetes no longer serves."""

    api_version: str  # Group and version, as `apiVersion` has them
    kinds: tuple[str, ...]  # Its kinds that are gone
    minor: str  # First minor without them
    instead: str  # What serves the same kinds in that minor; empty where nothing does
    source: str  # The API of the minor as its release describes it


def _removed(minor: str, api_version: str, kinds: tuple[str, ...], instead: str) -> RemovedApi:
    return RemovedApi(
        api_version=api_version,
        kinds=kinds,
        minor=minor,
        instead=instead,
        source=_OPENAPI.format(minor),
    )


# What the API of a minor as it was released has, and that of the next one has not. Kubernetes keeps
# removed betas on request for one more minor; EKS offers no such request.
REMOVED_APIS: tuple[RemovedApi, ...] = (
    _removed(
        "1.34",
        "admissionregistration.k8s.io/v1beta1",
        ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
        "admissionregistration.k8s.io/v1",
    ),
    _removed(
        "1.34",
        "resource.k8s.io/v1alpha3",
        ("DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"),
        "resource.k8s.io/v1",
    ),
    _removed(
        "1.35",
        "certificates.k8s.io/v1alpha1",
        ("PodCertificateRequest",),
        "certificates.k8s.io/v1beta1",
    ),
    _removed("1.35", "storage.k8s.io/v1alpha1", ("VolumeAttributesClass",), "storage.k8s.io/v1"),
    _removed(
        "1.35",
        "storagemigration.k8s.io/v1alpha1",
        ("StorageVersionMigration",),
        "storagemigration.k8s.io/v1beta1",
    ),
    _removed("1.36", "scheduling.k8s.io/v1alpha1", ("Workload",), "scheduling.k8s.io/v1alpha2"),
    _removed(
        "1.37",
        "certificates.k8s.io/v1alpha1",
        ("ClusterTrustBundle",),
        "certificates.k8s.io/v1",
    ),
    _removed(
        "1.37", "networking.k8s.io/v1beta1", ("IPAddress", "ServiceCIDR"), "networking.k8s.io/v1"
    ),
    _removed(
        "1.37",
        "scheduling.k8s.io/v1alpha2",
        ("PodGroup", "Workload"),
        "scheduling.k8s.io/v1beta1",
    ),
    _removed("1.37", "storage.k8s.io/v1beta1", ("VolumeAttributesClass",), "storage.k8s.io/v1"),
)
"""Oldest first, from 1.34 on: every cluster of this product has at least that."""


def extended_support_ends(version: str) -> date | None:
    """Return when extended support of a minor ends, and EKS upgrades its clusters by itself.

    It lasts 12 months. None where no page says when it begins.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-versions.html
    """
    begins = STANDARD_SUPPORT_ENDS.get(version)
    return None if begins is None else begins.replace(year=begins.year + 1)


def minor(version: str) -> int:
    """Return the number of a minor: 35 for ``1.35``."""
    return int(version.partition(".")[2])


def removed_by(version: str) -> tuple[RemovedApi, ...]:
    """Return what a cluster of ``version`` does not serve any more, of `REMOVED_APIS`."""
    return tuple(each for each in REMOVED_APIS if minor(each.minor) <= minor(version))
