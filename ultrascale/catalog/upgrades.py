"""Kubernetes minors: support dates on EKS, removed APIs and version skew.

Sources:
    https://kubernetes.io/docs/reference/using-api/deprecation-guide/
    https://docs.aws.amazon.com/eks/latest/userguide/update-cluster.html
    https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-versions.html
"""

from collections.abc import Mapping
from datetime import date
from types import MappingProxyType

from ultrascale.catalog.tables import Row, read_rows

STANDARD_SUPPORT_ENDS: Mapping[str, date] = MappingProxyType(
    {"1.35": date(2027, 3, 27), "1.36": date(2027, 8, 2)}
)
"""Day, in UTC, at whose start EKS begins to bill extended support, by minor.

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
"""Longest time that EKS waits for a managed group's node to drain before the update fails.

Source: https://docs.aws.amazon.com/eks/latest/userguide/managed-node-update-behavior.html
"""

FREE_ADDRESSES = 5
"""Free addresses that an upgrade needs at most in the control plane's subnets.

Source: https://docs.aws.amazon.com/eks/latest/userguide/update-cluster.html
"""

WAY_BACK_DAYS = 7
"""Days after an upgrade in which EKS can roll a control plane back to the minor before.

Source: https://docs.aws.amazon.com/eks/latest/userguide/rollback-cluster.html
"""

KUBECTL_VERSION = "1.35"
"""Minor of the `kubectl` that applies manifests: it may differ by one from the API server's minor.

Source: https://kubernetes.io/releases/version-skew-policy/#kubectl
"""

HELM_VERSION, LATEST_HELM_VERSION = "4.1", "1.35"
"""Version of Helm that installs charts, and the latest Kubernetes minor that it supports.

The minor is that of Helm 3.20, which came out with 4.1 and has the same libraries: the page has no
row for 4.1 yet.

Source: https://helm.sh/docs/topics/version_skew/
"""


class RemovedApi(Row, frozen=True, kw_only=True):
    """An API version that Kubernetes no longer serves."""

    minor: str
    """First minor without it."""
    api_version: str
    """Group and version, as in `apiVersion`."""
    kinds: tuple[str, ...]
    """Its removed kinds."""
    instead: str
    """API version that serves the same kinds in that minor; empty without one."""
    source: str
    """Page with the API of that minor."""


# APIs that a minor's release has and the next minor's lacks. Kubernetes keeps removed betas on
# request for one more minor; EKS offers no such request.
REMOVED_APIS = read_rows("removed_apis.csv", RemovedApi)
"""Removed APIs, oldest first, from 1.34 on: every cluster of this product has at least that."""


def extended_support_ends(version: str) -> date | None:
    """Return the end of a minor's extended support, when EKS upgrades its clusters by itself.

    Extended support lasts 12 months. None if no page states when it begins.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-versions.html
    """
    begins = STANDARD_SUPPORT_ENDS.get(version)
    return None if begins is None else begins.replace(year=begins.year + 1)


def minor(version: str) -> int:
    """Return the number of a minor: 35 for ``1.35``."""
    return int(version.partition(".")[2])


def removed_by(version: str) -> tuple[RemovedApi, ...]:
    """Return the `REMOVED_APIS` that a cluster of minor ``version`` no longer serves."""
    return tuple(each for each in REMOVED_APIS if minor(each.minor) <= minor(version))
