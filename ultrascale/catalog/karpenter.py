"""Karpenter: its charts, its feature gates, and the first version of each feature.

Sources:
    https://karpenter.sh/v1.15/reference/settings/
    https://karpenter.sh/v1.15/upgrading/compatibility/
    https://github.com/aws/karpenter-provider-aws/releases
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from ultrascale.catalog.versions import chart
from ultrascale.frozen import Frozen

# The CRDs have a chart of their own: Helm installs a chart's `crds` folder once, and never upgrades
# it.
# Source: https://karpenter.sh/v1.14/upgrading/upgrade-guide/
CRD_CHART = "oci://public.ecr.aws/karpenter/karpenter-crd"
CHART = "oci://public.ecr.aws/karpenter/karpenter"
# Source: https://github.com/aws/karpenter-provider-aws/blob/v1.14.1/charts/karpenter/values.yaml
CONTROLLER_IMAGE = "public.ecr.aws/karpenter/controller"
"""Image of the controller; its tag is the chart's version."""

NEWEST_VERSION = chart("karpenter").version
"""Version that this product writes wherever it suggests a version."""

LONG_TERM_VERSION = chart("karpenter-lts").version
"""Conservative alternative to `NEWEST_VERSION`: this minor gets only fixes."""

READ_VERSIONS = frozenset({"1.14.1", LONG_TERM_VERSION, "1.15.0", "1.15.1", NEWEST_VERSION})
"""Versions whose release notes, fields and settings this product was checked against."""

RETRACTED_VERSIONS = frozenset({"1.8.4"})
"""Versions that Karpenter's own release notes advise against because of a regression."""

# Source: https://karpenter.sh/v1.15/upgrading/compatibility/#compatibility-matrix
OLDEST_VERSIONS: Mapping[str, str] = MappingProxyType({"1.35": "1.9.0", "1.36": "1.13.0"})
"""Oldest Karpenter for each Kubernetes minor."""

Feature = Literal[
    "odcr", "capacity-block", "static", "ip-prefixes", "efa", "placement-group", "repair"
]

FEATURES: Mapping[Feature, str] = MappingProxyType(
    {
        # First version in which it is on by default.
        # Source: https://karpenter.sh/v1.14/reference/settings/#feature-gates
        "odcr": "1.6.0",
        # New in 1.6. This is the first minor with both fixes: before, it launches into a block that
        # is about to end, or from a block that has no instance left.
        # Source: https://github.com/aws/karpenter-provider-aws/pull/8362,
        # https://github.com/aws/karpenter-provider-aws/pull/8517
        "capacity-block": "1.8.0",
        # Source: https://karpenter.sh/v1.14/reference/settings/#feature-gates
        "static": "1.8.0",
        # `ipPrefixCount` of an EC2NodeClass.
        # Source: https://github.com/aws/karpenter-provider-aws/pull/8480
        "ip-prefixes": "1.8.0",
        # `networkInterfaces` and `placementGroupSelector` of an EC2NodeClass.
        # Source: https://github.com/aws/karpenter-provider-aws/releases/tag/v1.11.0
        "efa": "1.11.0",
        "placement-group": "1.11.0",
        # Repair within disruption budgets, with a reason of its own. Before, the same gate ends
        # nodes by force, whatever budgets and pods say.
        # Source: https://karpenter.sh/v1.15/concepts/disruption/#node-auto-repair
        "repair": "1.15.0",
    }
)
"""First version of Karpenter in which a pool's feature works, by feature."""


class FeatureGate(Frozen):
    """A feature gate of Karpenter."""

    default: bool  # Whether it is on by default
    stage: Literal["alpha", "beta"]  # Maturity of the feature
    since: str = "1.6.0"  # First version that knows it, among versions that matter here


# Source: https://karpenter.sh/v1.15/reference/settings/#feature-gates
FEATURE_GATES: Mapping[str, FeatureGate] = MappingProxyType(
    {
        "NodeRepair": FeatureGate(default=False, stage="alpha"),
        "NodeOverlay": FeatureGate(default=False, stage="alpha"),
        "ReservedCapacity": FeatureGate(default=True, stage="beta"),
        "SpotToSpotConsolidation": FeatureGate(default=False, stage="alpha"),
        "StaticCapacity": FeatureGate(default=False, stage="alpha"),
        "CapacityBuffer": FeatureGate(default=False, stage="alpha"),
        # Both end a node before its successor exists, and another account may take the capacity.
        "TerminateFirstDrift": FeatureGate(default=False, stage="alpha", since="1.15.0"),
        "TerminateFirstRepair": FeatureGate(default=False, stage="alpha", since="1.15.0"),
    }
)
AWS_FEATURE_GATES: Mapping[str, FeatureGate] = MappingProxyType(
    {"RebootForRepair": FeatureGate(default=False, stage="alpha", since="1.15.0")}
)
"""Feature gates of the AWS provider, which have settings of their own in its chart."""

# Sources: https://karpenter.sh/v1.15/concepts/disruption/#node-auto-repair
#     https://github.com/kubernetes-sigs/karpenter/blob/main/pkg/controllers/disruption/repair.go
REPAIR_DRAIN_MINUTES = (5, 10)
"""Minutes that a node's pods have before it is rebooted or replaced, by fault."""
REPAIR_BREAKER_PERCENT = 20
"""Share of a NodePool's nodes, in percent: if more are broken, none is repaired."""
# Source: https://karpenter.sh/v1.15/concepts/nodeclaims/#initialization
NODE_POOL_LABEL = "karpenter.sh/nodepool"
"""Label of each node that Karpenter or EKS Auto Mode launched."""
RESERVATION_LABELS = (
    "karpenter.k8s.aws/capacity-reservation-id",
    "eks.amazonaws.com/capacity-reservation-id",
)
"""Labels of nodes whose value is the id of their reservation: Karpenter's, and EKS Auto Mode's.

Source: https://karpenter.sh/docs/tasks/odcrs/
"""
INITIALIZED_LABEL = "karpenter.sh/initialized"
"""Its label with ``true``, once start-up taints are gone and all resources are there."""
UNREGISTERED_TAINT = "karpenter.sh/unregistered"
DO_NOT_REPAIR = "karpenter.sh/do-not-repair"
"""Annotation that prevents the repair of a node or a NodeClaim while its value is ``true``.

Source: https://karpenter.sh/v1.15/reference/annotations/
"""


REPLICAS = 2
"""Number of controller pods; one of them leads."""

# Karpenter's own defaults.
# Source: https://karpenter.sh/v1.15/reference/settings/
CLIENT_QPS = 200
CLIENT_BURST = 300
BATCH_IDLE_DURATION = "1s"
BATCH_MAX_DURATION = "10s"


def release(version: str) -> tuple[int, ...]:
    """Return ``version``, MAJOR.MINOR.PATCH, as numbers that sort like releases."""
    return tuple(int(part) for part in version.split("."))
