"""Rate at which a place takes checkpoints from the nodes of a job."""

from ultrascale import config
from ultrascale.catalog import checkpoint_bandwidth as rates
from ultrascale.plan.model.jobs import BandwidthPlan

_BITS, _MB_PER_GB, _GIB_PER_TIB = 8, 1000, 1024
_NODE = rates.NODE_GBPS / _BITS


def of_bucket(*, nodes: int, processes: int, size: int) -> BandwidthPlan:
    """Return what a bucket takes: as fast as nodes and processes send, and one prefix takes.

    Args:
        nodes: Nodes.
        processes: Processes of a node, each of which writes its own objects.
        size: Bytes of a checkpoint.
    """
    process = rates.S3_GBPS_PER_PROCESS / _BITS
    sent = nodes * min(processes * process, _NODE)
    # A process with less to write than one part sends that in one request.
    part = min(rates.S3_PART_BYTES, size / (nodes * processes))
    taken = rates.S3_WRITES_PER_SECOND * part / 1e9
    return BandwidthPlan(
        gb_per_second=min(sent, taken),
        formula=(
            f"min({_count(nodes)} * min({processes} processes * {process:g} GB/s, {_NODE:g} GB/s), "
            f"{rates.S3_WRITES_PER_SECOND:,} requests/s of a prefix * {part / 1e6:.1f} MB)"
        ),
        sources=(rates.CONNECTOR_SOURCE, rates.NODE_SOURCE, rates.S3_RATE_SOURCE),
    )


def of_lustre(lustre: config.Lustre, *, nodes: int) -> BandwidthPlan | None:
    """Return what a file system takes: what its size and tier give, and nodes send over TCP.

    None for one that was there already, whose size and tier the cluster file does not state.

    Args:
        lustre: The file system.
        nodes: Nodes.
    """
    tier, gib = lustre.throughput_mbps_per_tib, lustre.capacity_gib
    if tier is None or gib is None:
        return None
    tib = gib / _GIB_PER_TIB
    return BandwidthPlan(
        gb_per_second=min(tib * tier / _MB_PER_GB, nodes * _NODE),
        formula=(
            f"min({tib:.1f} TiB * {tier} MB/s of {lustre.name}, {_count(nodes)} * {_NODE:g} GB/s)"
        ),
        sources=(rates.LUSTRE_SOURCE,),
    )


def _count(nodes: int) -> str:
    return "1 node" if nodes == 1 else f"{nodes:,} nodes"
