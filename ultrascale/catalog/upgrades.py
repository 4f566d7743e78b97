"""What a change of the Kubernetes minor takes away, and until when EKS supports each minor.

Sources:
    https://kubernetes.io/docs/reference/using-api/deprecation-guide/
    https://docs.aws.amazon.com/eks/latest/userguide/update-cluster.html
    https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-versions.html
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType

_OPENAPI = "https://github.com/kubernetes/kubernetes/tree/release-{}/api/openapi-spec/v3"

STANDARD_SUPPORT_ENDS: Mapping[str, date] = MappingProxyType(
    {"1.34": date(2026, 12, 2), "1.35": date(2027, 3, 27), "1.36": date(2027, 8, 2)}
)
"""Last day of EKS's standard support of each minor.

Source: https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-versions.html
"""

KUBELET_MINORS_BEHIND = 3
"""How many minors a kubelet may be behind the API server; it may never be ahead.

Source: https://kubernetes.io/releases/version-skew-policy/#kubelet
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedApi:
    """A version of kinds that Kubernetes no longer serves.

    Attributes:
        api_version: Group and version, as `apiVersion` has them.
        kinds: Its kinds that are gone.
        minor: First minor without them.
        instead: What serves the same kinds in that minor; empty where nothing does.
        source: The API of the minor as its release describes it.
    """

    api_version: str
    kinds: tuple[str, ...]
    minor: str
    instead: str
    source: str


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


def minor(version: str) -> int:
    """Return the number of a minor: 35 for ``1.35``."""
    return int(version.partition(".")[2])


def removed_by(version: str) -> tuple[RemovedApi, ...]:
    """Return what a cluster of ``version`` does not serve any more, of `REMOVED_APIS`."""
    return tuple(each for each in REMOVED_APIS if minor(each.minor) <= minor(version))
