"""Pools that a model fits, and the fewest devices of each."""

import math
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ultrascale import catalog
from ultrascale.catalog import prices, serving_memory, vllm
from ultrascale.catalog.transformers import Transformer
from ultrascale.frozen import Frozen
from ultrascale.parts.models.model import ServingDevice, ServingDivision, ServingMemory, memory_of
from ultrascale.plan.jobs.devices import device_of_type
from ultrascale.plan.model import PoolPlan


class PoolFit(Frozen):
    """A model on nodes of one type of a pool."""

    pool: str  # The pool
    instance_type: str  # The type
    # A device of its nodes; None where no source states its memory.
    device: ServingDevice | None = None
    nodes: int = 0  # Nodes of a replica; 0 where none of them holds it
    # Division of the model; the closest where none fits, None without devices.
    division: ServingDivision | None = None
    memory: ServingMemory | None = None  # Memory of a device in that division; None without devices
    reason: str = ""  # Reason of a missing verdict; empty otherwise
    # On-Demand price of a replica's whole nodes; None where it fits none or no price is known.
    usd_per_hour: float | None = None
    price_region: str = ""  # Region of that price; empty without one


def cheapest(fits: Sequence[PoolFit]) -> PoolFit | None:
    """Return the pool whose nodes cost least for a replica; None where none holds the model.

    A tight fit, and one without a known price, comes after the others; of equal ones the first.
    """
    held = [fit for fit in fits if fit.nodes]
    return min(held, key=_rank, default=None)


def _rank(fit: PoolFit) -> tuple[bool, float]:
    is_tight = fit.memory is not None and fit.memory.fit == "tight"
    return is_tight, math.inf if fit.usd_per_hour is None else fit.usd_per_hour


def fits_of(
    shape: Transformer, pools: Sequence[PoolPlan], *, context: int | None, region: str
) -> tuple[PoolFit, ...]:
    """Return the fewest devices of each accelerated pool that hold a model.

    Args:
        shape: The model.
        pools: Plans of pools.
        context: Most tokens of a sequence, at most the model's own; None: the model's own.
        region: Region of the cluster; where its price of a type is not known, another one's counts.
    """
    own = shape.longest_context
    # vLLM starts no server for sequences beyond the model's longest.
    asked = own if context is None else min(context, own or context)
    seen: dict[tuple[str, str], PoolPlan] = {}
    for pool in pools:
        for name in pool.instance_types:
            if catalog.lookup(name).accelerator is not None:
                seen.setdefault((pool.pool, name), pool)
    fits = (_fit(shape, pool, name, context=asked) for (_, name), pool in seen.items())
    return tuple(_priced(fit, region) for fit in fits)


def _priced(fit: PoolFit, region: str) -> PoolFit:
    price = prices.on_demand_near(region, fit.instance_type) if fit.nodes else None
    if price is None:
        return fit
    usd, where = price
    return replace(fit, usd_per_hour=usd * fit.nodes, price_region=where)


def _fit(shape: Transformer, pool: PoolPlan, name: str, *, context: int | None) -> PoolFit:
    whole = PoolFit(pool=pool.pool, instance_type=name)
    smallest = device_of_type(pool.recorded.spec(name))
    if smallest is None:
        return replace(whole, reason="no source states the memory of its accelerators")
    device = ServingDevice(
        name=smallest.name,
        count=smallest.count,
        memory_bytes=smallest.memory_bytes,
        # The closest to today's images.
        kv_share=serving_memory.NEURON_KV_SHARE
        if smallest.is_neuron and smallest.name not in serving_memory.STATIC_CACHE
        else None,
    )
    # A replica of several nodes has all devices of each: Neuron's plugin has no such replicas.
    most = 1 if smallest.is_neuron else max(1, pool.max_nodes)
    base = ServingDivision(
        tensor=1,
        pipeline=1,
        context=context,
        tokens=serving_memory.batch_defaults(device.name, device.memory_bytes).tokens,
        utilization=vllm.GPU_MEMORY_UTILIZATION,
    )
    divisions = (
        (nodes, replace(base, tensor=tensor, pipeline=nodes))
        for nodes, tensor in _divisions(shape, device.count, most)
    )
    judged = [
        replace(
            whole,
            device=device,
            nodes=nodes,
            division=division,
            memory=memory_of(shape, division, device),
        )
        for nodes, division in divisions
    ]
    for wanted in ("fits", "tight"):
        for fit in judged:
            if fit.memory is not None and fit.memory.fit == wanted:
                return fit
    return replace(judged[-1], nodes=0)


def _divisions(shape: Transformer, count: int, most: int) -> Iterator[tuple[int, int]]:
    """Yield nodes and tensor parallelism, the fewest devices first.

    Tensor parallelism stays within a node; several nodes are stages one after another.
    """
    tensors = [
        tensor
        for tensor in range(1, count + 1)
        if count % tensor == 0 and shape.heads % tensor == 0 and shape.shares_keys(tensor)
    ]
    yield from ((1, tensor) for tensor in tensors)
    for nodes in range(2, min(most, shape.layers) + 1):
        yield nodes, tensors[-1]
