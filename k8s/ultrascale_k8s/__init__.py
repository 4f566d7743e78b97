"""Charts of the programs in a cluster: they render plans and decide nothing."""

from ultrascale_k8s._platform_chart import Charts, PlatformChart
from ultrascale_k8s.platform import (
    define_charts,
    node_pool_objects,
    write_manifests,
)

__all__ = [
    "Charts",
    "PlatformChart",
    "define_charts",
    "node_pool_objects",
    "write_manifests",
]
