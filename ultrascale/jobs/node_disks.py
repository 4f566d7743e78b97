"""Disks of the possible nodes of a job with scratch space."""

from collections.abc import Iterator

from ultrascale.catalog.quantities import amount
from ultrascale.cluster_api.objects import Object, name
from ultrascale.cluster_api.server import FORBIDDEN, Cluster
from ultrascale.documents import look_up
from ultrascale.errors import RefusedError
from ultrascale.jobs.manifests import JobManifests
from ultrascale.jobs.room import MOST_NODES, nodes_for, pod_kinds

_GB = 10**9
_MOST_NAMED = 3
# File systems and RAID take a few percent; an EBS root volume is a fraction.
_LEAST_SHARE = 0.5


def warns_of_disks(cluster: Cluster, job: JobManifests) -> Iterator[str]:
    """Yield nodes whose disk for pods' volumes is too small to be their local NVMe.

    HyperPod's nodes are such if they are older than the script that moves these volumes.

    Raises:
        ClusterError: The API server refuses, for another reason than a missing right, or cannot be
            reached.
    """
    if job.scratch_gb is None:
        return
    pods = [pod for manifest in job.objects for pod, _ in pod_kinds(manifest)]
    try:
        nodes = {name(node): node for pod in pods for node in nodes_for(cluster, pod)}
    except RefusedError as error:
        if error.status != FORBIDDEN:
            raise
        return
    if len(nodes) > MOST_NODES:
        return
    sizes = {name: size for name, node in nodes.items() if (size := _gb(node)) is not None}
    small = {name: size for name, size in sizes.items() if size < job.scratch_gb * _LEAST_SHARE}
    if small:
        named, more = ", ".join(sorted(small)[:_MOST_NAMED]), len(small) - _MOST_NAMED
        yield (
            f"{len(small)} of the {len(nodes)} nodes that it may run on keep volumes of pods on a "
            f"disk of {min(small.values()):,} GB, not on their local NVMe ({named}"
            f"{f' and {more} more' if more > 0 else ''}): files in its scratch space fill that "
            "disk, and the node evicts its pods; replace these nodes first"
        )


def _gb(node: Object) -> int | None:
    """Return the size of the disk below the kubelet's folder, in GB; None if not stated."""
    size = look_up(node, "status", "capacity", "ephemeral-storage")
    return int(amount(str(size)) / _GB) if size is not None else None
