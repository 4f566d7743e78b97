"""Constructs for your own AWS CDK app, beside your own stacks, VPC and EKS cluster.

The names in `__all__` and their arguments keep their meaning as `docs/library/README.md` promises;
everything else is private. Import this package before `aws_cdk` where no Node.js is on the PATH: it
then brings its own. Wrong arguments raise one `ArgumentError`, with a line for each mistake.
"""

from typing import TYPE_CHECKING

from ultrascale.errors import ArgumentError
from ultrascale_constructs.public import _node as _node
from ultrascale_constructs.public.block_calendar import CapacityBlockCalendar
from ultrascale_constructs.public.cluster import Cluster, ExistingCluster
from ultrascale_constructs.public.karpenter_node_pool import KarpenterNodePool
from ultrascale_constructs.public.lustre import LustreFileSystem
from ultrascale_constructs.public.node_pool import LaunchTemplate, NodePool
from ultrascale_constructs.public.purchase import (
    CapacityBlock,
    CapacityReservation,
    Nodes,
    Taint,
    TrainingPlan,
)
from ultrascale_constructs.public.write_latency import WriteLatencyCanary

if TYPE_CHECKING:
    from ultrascale_constructs.public.hyperpod import HyperPodCluster, InstanceGroup

__all__ = [
    "ArgumentError",
    "CapacityBlock",
    "CapacityBlockCalendar",
    "CapacityReservation",
    "Cluster",
    "ExistingCluster",
    "HyperPodCluster",
    "InstanceGroup",
    "KarpenterNodePool",
    "LaunchTemplate",
    "LustreFileSystem",
    "NodePool",
    "Nodes",
    "Taint",
    "TrainingPlan",
    "WriteLatencyCanary",
]


def __getattr__(name: str) -> object:
    """Return a public name of a part, which an installation may lack."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ultrascale_constructs.public import hyperpod

    return getattr(hyperpod, name)
