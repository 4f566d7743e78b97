"""The cluster file as types: `load` it, or learn every mistake in it at once."""

from pathlib import Path

from ultrascale.config._check import check
from ultrascale.config._document import parse_yaml, read
from ultrascale.config._warnings import warnings
from ultrascale.config.cluster import Cluster
from ultrascale.config.hyperpod import HyperPod, TaskGovernance, Team
from ultrascale.config.jobs import Job, Resources, Toleration
from ultrascale.config.kubernetes import Endpoint, Karpenter, Kubernetes
from ultrascale.config.network import Network, PodBlocks
from ultrascale.config.operations import (
    AgreedLimits,
    Alarms,
    Backend,
    Database,
    Observability,
    Pipeline,
    WriteLatencySlo,
)
from ultrascale.config.pools import Nodes, Pool, Provisioner, Role
from ultrascale.config.purchase import (
    CapacityBlock,
    Odcr,
    OnDemand,
    Purchase,
    Spot,
    TrainingPlan,
)
from ultrascale.config.scheduling import Queue, Rendezvous, Scheduling
from ultrascale.config.storage import Claim, Images, Lustre, LustreS3, Storage

__all__ = [
    "AgreedLimits",
    "Alarms",
    "Backend",
    "CapacityBlock",
    "Claim",
    "Cluster",
    "Database",
    "Endpoint",
    "HyperPod",
    "Images",
    "Job",
    "Karpenter",
    "Kubernetes",
    "Lustre",
    "LustreS3",
    "Network",
    "Nodes",
    "Observability",
    "Odcr",
    "OnDemand",
    "Pipeline",
    "PodBlocks",
    "Pool",
    "Provisioner",
    "Purchase",
    "Queue",
    "Rendezvous",
    "Resources",
    "Role",
    "Scheduling",
    "Spot",
    "Storage",
    "TaskGovernance",
    "Team",
    "Toleration",
    "TrainingPlan",
    "WriteLatencySlo",
    "load",
    "loads",
    "warnings",
]


def load(path: Path) -> Cluster:
    """Read and check the cluster file at ``path``.

    Raises:
        ConfigError: The file cannot be read, or has mistakes. It carries one line for each,
            ``file: key.path: what is wrong, got VALUE; what to do``.
    """
    return check(read(path))


def loads(text: str, *, source: str = "cluster file") -> Cluster:
    """Read and check a cluster file that is at hand as text.

    Args:
        text: The file's content.
        source: What error lines call the file.

    Raises:
        ConfigError: As `load`.
    """
    return check(parse_yaml(text, source=source))
