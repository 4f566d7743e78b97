"""Time in which a replica reads its weights, and time until a new one answers.

Rates are AWS's published ones for the file system, the bucket and the node: the best time. Each
node of a replica reads all files.
"""

from collections.abc import Sequence
from pathlib import PurePosixPath

from ultrascale.catalog import checkpoint_bandwidth as rates
from ultrascale.catalog import cold_start, mountpoint
from ultrascale.parts.models.model import ColdStart, ModelLoadPlan
from ultrascale.parts.models.section import ServedModel
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.model import ClaimPlan, PoolPlan
from ultrascale.plan.volumes import bucket_gbps, plan_volumes

_BITS, _MB_PER_GB, _GIB_PER_TIB = 8, 1000, 1024
_REMOTE = "s3://"


def plan_load(
    request: JobRequest, *, path: str | None, weights_bytes: int, measured: float | None, nodes: int
) -> ModelLoadPlan:
    """Return the time in which one replica reads its weights.

    Args:
        request: The service.
        path: Path or name of the model, as its server takes it; None where it names none.
        weights_bytes: Size of its weight files.
        measured: The user's measured rate in GB/s; None: the published one.
        nodes: Nodes of the replica.
    """
    place, node, shared, words, sources = _rates(request, path)
    gigabytes = weights_bytes / 1e9
    if measured is not None:
        return ModelLoadPlan(
            place=place,
            gb_per_second=measured,
            seconds=gigabytes / measured,
            formula=f"{gigabytes:,.1f} GB / {measured:g} GB/s, as model.gb_per_second states",
        )
    if node is None:
        return ModelLoadPlan(place=place, gb_per_second=None, seconds=None, formula=words)
    rate = node if shared is None else min(node, shared / nodes)
    return ModelLoadPlan(
        place=place,
        gb_per_second=rate,
        seconds=gigabytes / rate,
        formula=f"{gigabytes:,.1f} GB / {words}, at best",
        sources=sources,
    )


def plan_cold_start(model: ServedModel, pools: Sequence[PoolPlan], *, compiles: float) -> ColdStart:
    """Return the time of a cold start beside reading weights.

    Args:
        model: The model, as the service states it.
        pools: Pools of its nodes.
        compiles: Seconds in which it compiles graphs for Neuron.
    """
    if model.start_seconds is not None:
        return ColdStart(
            seconds=model.start_seconds,
            formula=f"{model.start_seconds:,} s, as model.start_seconds states",
            sources=(),
        )
    image, engine = cold_start.IMAGE_SECONDS, cold_start.ENGINE_SECONDS
    node, how = cold_start.NODE_SECONDS, "assumed"
    seen = [pool.recorded.start_seconds for pool in pools]
    if known := [seconds for seconds in seen if seconds is not None]:
        node, how = max(known), "recorded"
    formula = (
        f"{node} s for a node ({how}) + {image} s for an image of 15 to 20 GB + {engine} s "
        "for the engine (assumed)"
    )
    sources = (cold_start.IMAGE_SOURCE, cold_start.ENGINE_SOURCE)
    if compiles:
        formula += f" + {compiles:,.0f} s to compile graphs for Neuron"
        sources += cold_start.NEURON_COMPILE_SOURCES
    return ColdStart(seconds=node + image + engine + compiles, formula=formula, sources=sources)


def place_of(request: JobRequest, path: str) -> ClaimPlan | None:
    """Return the claim of the file that shows a service the files at ``path``."""
    parents = [path, *map(str, PurePosixPath(path).parents)]
    mounts = {mount.mount_path: mount.claim for mount in request.mounts}
    claim = next((mounts[parent] for parent in parents if parent in mounts), None)
    here = (item for item in request.claims if item.namespace == request.namespace)
    return next((item for item in here if item.name == claim), None)


_Rates = tuple[str, float | None, float | None, str, tuple[str, ...]]


def _rates(request: JobRequest, path: str | None) -> _Rates:
    """Return place, GB/s of a node, GB/s of all nodes, words of a formula, and its sources.

    The GB/s are None where they are unknown, or nothing is shared.
    """
    if path is None:
        return "", None, None, "the command names no model", ()
    if path.startswith(_REMOTE):
        gigabytes = node_gbps(request.nodes) / _BITS
        words = f"{gigabytes:g} GB/s of a node to S3"
        return path, gigabytes, None, words, (rates.NODE_SOURCE,)
    if not path.startswith("/"):
        words = f"{path} is downloaded from Hugging Face, whose rate no source publishes"
        return "Hugging Face", None, None, words, ()
    claim = place_of(request, path)
    if claim is None:
        return "", None, None, f"no volume of the cluster file holds {path}", ()
    if claim.source == "bucket":
        return _bucket_rates(request, claim)
    return _lustre_rates(request, claim)


def _bucket_rates(request: JobRequest, claim: ClaimPlan) -> _Rates:
    volumes = plan_volumes(request.cluster)
    name = next((item.component for item in volumes if item.claim.name == claim.name), claim.name)
    aim = bucket_gbps(request.cluster)
    gigabytes = min(node_gbps(request.nodes), aim) / _BITS
    words = f"{gigabytes:g} GB/s of a node through Mountpoint"
    return f"bucket {name}", gigabytes, None, words, (rates.NODE_SOURCE, mountpoint.RATE_SOURCE)


def _lustre_rates(request: JobRequest, claim: ClaimPlan) -> _Rates:
    systems = {system.name: system for system in request.cluster.storage.lustre}
    lustre = systems.get(claim.file_system or "")
    place = f"Lustre {claim.file_system}"
    if lustre is None or lustre.throughput_mbps_per_tib is None or lustre.capacity_gib is None:
        return place, None, None, "size and throughput of the file system are not stated", ()
    tib, tier = lustre.capacity_gib / _GIB_PER_TIB, lustre.throughput_mbps_per_tib
    node = node_gbps(request.nodes) / _BITS
    words = f"min({tib:.1f} TiB * {tier} MB/s of {lustre.name} / nodes, {node:g} GB/s of a node)"
    return place, node, tib * tier / _MB_PER_GB, words, (rates.LUSTRE_SOURCE,)


def node_gbps(pools: Sequence[PoolPlan]) -> float:
    """Return the Gbit/s of the slowest node of ``pools`` to S3, or to a file system over TCP."""
    specs = (spec for pool in pools for spec in pool.specs)
    known = [spec.network_gbps for spec in specs if spec.knows("network_gbps")]
    return min([*known, rates.NODE_GBPS])
