"""The EKS cluster that a kubeconfig names."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from ultrascale import config
from ultrascale.errors import ClusterError
from ultrascale.frozen import Frozen

if TYPE_CHECKING:
    from ultrascale.cluster_api.server import Cluster

# `aws eks update-kubeconfig` gives a cluster its ARN as name.
_ARN = re.compile(
    r"arn:[a-z-]+:eks:(?P<region>[a-z0-9-]+):(?P<account>[0-9]{12}):cluster/(?P<name>.+)"
)


class ClusterArn(Frozen, kw_only=False):
    """The ARN of an EKS cluster, in parts."""

    region: str
    account: str
    cluster: str

    @classmethod
    def parse(cls, name: str) -> "ClusterArn | None":
        """Return the ARN that ``name`` is; None if it is no ARN."""
        match = _ARN.fullmatch(name)
        return cls(match["region"], match["account"], match["name"]) if match else None


def same_cluster(file: Path, cluster: "Cluster", context: str | None = None) -> None:
    """Refuse a context whose ARN is of a cluster other than the cluster file's.

    A context without an ARN passes.

    Args:
        file: The cluster file.
        cluster: The context's cluster.
        context: Name of the context; None for the current one.

    Raises:
        ClusterError: The ARN has another name, Region or account.
    """
    expected = config.load(file)
    arn = cluster.arn
    if arn is None:
        return
    account = f" of account {arn.account}" if expected.account not in (None, arn.account) else ""
    if (arn.region, arn.cluster) != (expected.region, expected.name) or account:
        of = f" of account {expected.account}" if account else ""
        which = "current context" if context is None else f"context {context}"
        raise ClusterError(
            f"{file}: cluster {expected.name} in {expected.region}{of}, but the kubeconfig's "
            f"{which} is {arn.cluster} in {arn.region}{account}; choose it by --context, or "
            f"`aws eks update-kubeconfig --name {expected.name} --region {expected.region}`"
        )
