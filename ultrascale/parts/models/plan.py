"""Model of a service: its fit on the devices of its nodes, and the time to load it."""

import math
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ultrascale import config
from ultrascale.catalog import cold_start, serving_memory, vllm
from ultrascale.catalog.transformers import Transformer
from ultrascale.parts.models.load import place_of, plan_cold_start, plan_load
from ultrascale.parts.models.model import (
    ServedModelPlan,
    ServingDevice,
    ServingDivision,
    ServingMemory,
    memory_of,
)
from ultrascale.parts.models.section import model_of, transformer_of
from ultrascale.plan.jobs.checkpoints import span
from ultrascale.plan.jobs.devices import smallest_device
from ultrascale.plan.jobs.nodes import NodeShare
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.jobs.rules import rule
from ultrascale.plan.jobs.service import compile_seconds
from ultrascale.plan.jobs.vllm import (
    VllmOptions,
    misread_option,
    neuron_release,
    options_of,
    starts_vllm,
)
from ultrascale.plan.jobs.vllm_rules import options_key
from ultrascale.plan.model import ClusterPlan, PoolPlan
from ultrascale.plan.rules import rule as plan_rule

Mistakes = Iterator[config.Mistake]

_GIB = 2**30
_KEY = "model"
_MOUNTED = "bucket"
# A published rate is the best one: many replicas start at once, or read small parts.
_SLOWER_THAN_MEASURED, _SLOWER_THAN_BEST = 2, 10
# A download from elsewhere, which has no published rate.
_SLOWEST_GB_PER_SECOND = 0.1
_READS_AHEAD = ("eager", "prefetch")


def plan_model(request: JobRequest, share: NodeShare) -> ServedModelPlan | None:
    """Return the model of a service on its nodes; None where it states none, or a wrong one.

    Raises:
        CatalogError: No source states a value of an instance type.
    """
    job, stated = request.job, model_of(request.job)
    shape = None if stated is None else transformer_of(stated)
    if not isinstance(job, config.ServiceJob) or stated is None or shape is None:
        return None
    options, device = options_of(job), _device(job, share, request.nodes)
    division = _division(job, shape, options, device)
    unknown = _why_unknown(job, options, device)
    compiles = compile_seconds(job, share, shape.weights_bytes)
    start = plan_cold_start(stated, request.nodes, compiles=compiles)
    engine = cold_start.ENGINE_SECONDS if config.server_of(job) == "vllm" else 0
    load = plan_load(
        request,
        path=options.model,
        weights_bytes=shape.weights_bytes,
        measured=stated.gb_per_second,
        nodes=job.nodes,
    )
    plan = ServedModelPlan(
        weights_bytes=shape.weights_bytes,
        load_seconds=load.seconds,
        slow_load_seconds=_slow_load_seconds(
            load.seconds, shape.weights_bytes, measured=stated.gb_per_second is not None
        ),
        notes=(),
        name=stated.name or options.model or "",
        shape=shape,
        device=device,
        division=division,
        memory=None if unknown or device is None else memory_of(shape, division, device),
        unknown=unknown,
        load=load,
        start=start,
        engine_seconds=min(start.seconds, compiles + engine),
    )
    return replace(plan, notes=tuple(_notes(plan, options)))


def _slow_load_seconds(best: float | None, weights_bytes: int, *, measured: bool) -> float:
    """Return the time after which a replica that still reads its weights is taken for hung.

    A start that is cut off begins anew, and never ends.
    """
    if best is None:
        return weights_bytes / 1e9 / _SLOWEST_GB_PER_SECOND
    return best * (_SLOWER_THAN_MEASURED if measured else _SLOWER_THAN_BEST)


@rule
def length_suits_model(job: config.ServiceJob) -> Mistakes:
    """Yield sequences that are longer than the model was made for.

    Source: https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/config/model.py
    """
    stated = model_of(job)
    shape = None if stated is None else transformer_of(stated)
    if shape is None or shape.longest_context is None or config.server_of(job) != "vllm":
        return
    options = options_of(job)
    if options.refused or options.max_model_len is None or options.hf_overrides is not None:
        return
    if vllm.LONGER_VARIABLE not in job.env and options.max_model_len > shape.longest_context:
        problem = (
            f"--max-model-len is above the model's own maximum of {shape.longest_context} tokens"
        )
        todo = (
            "write at most that, or state model.longest_context of its config.json or "
            "--hf-overrides"
        )
        yield config.refuse(options_key(job), problem, todo, got=str(options.max_model_len))


@rule
def model_fits_its_nodes(request: JobRequest, share: NodeShare) -> Mistakes:
    """Yield a model that does not divide between the devices of its nodes, or does not fit.

    Raises:
        CatalogError: No source states a value of an instance type.
    """
    job = request.job
    if not isinstance(job, config.ServiceJob) or config.server_of(job) != "vllm":
        return
    planned = plan_model(request, share)
    if planned is not None:
        yield from _mistakes_in(planned)


@rule
def start_outlasts_loading(request: JobRequest, share: NodeShare) -> Mistakes:
    """Yield a time to start that is over before the model is read.

    Raises:
        CatalogError: No source states a value of an instance type.
    """
    job, planned = request.job, plan_model(request, share)
    if planned is not None and isinstance(job, config.ServiceJob) and job.startup_seconds:
        yield from _cut_off(planned, job.startup_seconds)


@plan_rule
def starts_outlast_loading(plan: ClusterPlan) -> Mistakes:
    """Yield templates of services whose time to start is over before their model is read."""
    for service in plan.services:
        if isinstance(service.model, ServedModelPlan):
            for mistake in _cut_off(service.model, service.startup_seconds):
                yield replace(mistake, at=("jobs", service.name, *mistake.at))


def _cut_off(planned: ServedModelPlan, startup_seconds: int) -> Mistakes:
    """Yield the end of a start-up probe before a server can answer, which starts it for ever."""
    least = (planned.load.seconds or 0) + planned.engine_seconds
    if startup_seconds < least:
        problem = (
            f"{planned.name} takes at least {span(least)} to load and to start, and pods that do "
            "not answer in time are killed, again and again"
        )
        todo = "leave it out, or write several times as much"
        yield config.refuse("startup_seconds", problem, todo, got=str(startup_seconds))


@plan_rule
def models_can_be_served(plan: ClusterPlan) -> Mistakes:
    """Yield templates of services whose model does not divide or does not fit."""
    for service in plan.services:
        if isinstance(service.model, ServedModelPlan) and service.server == "vllm":
            for mistake in _mistakes_in(service.model):
                yield replace(mistake, at=("jobs", service.name, *mistake.at))


def _mistakes_in(planned: ServedModelPlan) -> Mistakes:
    """Yield why vLLM would not start with a model; nothing where it may."""
    indivisible = [*_indivisible_degrees(planned.shape, planned.division)]
    yield from indivisible
    memory = planned.memory
    if indivisible or memory is None or memory.fit != "too-large":
        return
    todo = _remedy(planned, memory)
    yield config.refuse(_KEY, _why_too_large(planned, memory), todo, got=planned.name)


@rule
def model_is_mounted(request: JobRequest, job: config.ServiceJob) -> Mistakes:
    """Yield the path of a model that a claim of another namespace holds."""
    path = options_of(job).model if config.server_of(job) == "vllm" else None
    if path is None or not path.startswith("/") or place_of(request, path) is not None:
        return
    for claim in request.claims:
        elsewhere = claim.namespace != request.namespace
        if elsewhere and f"{path}/".startswith(f"{claim.mount_path.rstrip('/')}/"):
            problem = (
                f"a path of claim {claim.name} of namespace {claim.namespace}, mounted only there"
            )
            todo = (
                f"write namespace: {claim.namespace}, or give a bucket of models a claim in "
                f"namespace {request.namespace}"
            )
            yield config.refuse("args", problem, todo, got=path)
            return


def _notes(planned: ServedModelPlan, options: VllmOptions) -> Iterator[str]:
    """Yield the notes on a model that its user reads before nodes are paid for, each a sentence."""
    if (memory := planned.memory) is None:
        yield f"Whether {planned.name} fits is not known: {planned.unknown}."
    else:
        yield from _notes_of_memory(planned, memory)
        for name in options.uncounted:
            option = f"--{name.replace('_', '-')}"
            yield f"The memory of {vllm.BESIDE_MODEL[name]} ({option}) is not counted there."
    load, cold = planned.load, planned.cold_start_seconds
    if load.seconds is None or cold is None:
        yield f"The time to load {planned.name} is not known: {load.formula}."
        return
    yield (
        f"A replica reads its weights from {load.place} in about {span(load.seconds)} "
        f"({load.formula}), and answers about {span(cold)} after its pod is made, where a node is "
        "launched for it."
    )
    # The images for Neuron load weights by a program of their own.
    by_vllm = planned.device is None or not planned.device.is_neuron
    ahead = options.safetensors_load_strategy in _READS_AHEAD or options.load_format != "auto"
    if load.place.startswith(_MOUNTED) and by_vllm and not ahead:
        yield (
            "vLLM maps files of a bucket into memory and reads them in small parts, far below that "
            "rate: add --safetensors-load-strategy=prefetch to args."
        )


def _notes_of_memory(planned: ServedModelPlan, memory: ServingMemory) -> Iterator[str]:
    division, used = planned.division, memory.device / _GIB
    yield (
        f"{planned.name} ({planned.shape.dtype}) on {_devices(planned)}: "
        f"{memory.weights / _GIB:,.1f} GiB of weights, about {memory.overhead / _GIB:,.1f} of "
        f"activations and {memory.room / _GIB:,.1f} of KV cache, of {used:,.1f} GiB that vLLM "
        "takes of each"
        + (
            f"; {memory.sequences:,.1f} sequences of {division.context:,} tokens at a time."
            if division.context is not None and memory.sequence
            else f"; sequences of up to {memory.longest:,} tokens."
        )
    )
    if memory.fit == "tight":
        yield (
            f"{planned.name} is tight there: vLLM starts only if activations take less than that; "
            f"--max-model-len={memory.longest} leaves room for them."
            if memory.longest
            else f"{planned.name} is tight there: the weights leave nothing for activations."
        )


def _device(
    job: config.ServiceJob, share: NodeShare, pools: Sequence[PoolPlan]
) -> ServingDevice | None:
    smallest = smallest_device(share, pools)
    if smallest is None:
        return None
    return ServingDevice(
        name=smallest.name,
        count=share.processes,
        memory_bytes=smallest.memory_bytes,
        kv_share=serving_memory.NEURON_KV_SHARE if _is_capped(job) else None,
    )


def _is_capped(job: config.ServiceJob) -> bool:
    """Return whether vLLM Neuron bounds the KV cache, as it does by default."""
    release = neuron_release(job)
    new = release is not None and release >= serving_memory.NEURON_PLUGIN_SINCE
    is_stated = serving_memory.NEURON_KV_VARIABLE in job.env or any(
        "headroom" in word for word in (*job.command, *job.args)
    )
    return new and not is_stated


def _division(
    job: config.ServiceJob, shape: Transformer, options: VllmOptions, device: ServingDevice | None
) -> ServingDivision:
    computed = _computed_bytes(shape, options)
    defaults = serving_memory.batch_defaults(
        device.name if device is not None else "", device.memory_bytes if device is not None else 0
    )
    static = device is not None and device.name in serving_memory.STATIC_CACHE
    return ServingDivision(
        tensor=options.tensor_parallel_size,
        pipeline=options.pipeline_parallel_size,
        context=None
        if options.max_model_len == vllm.AUTO_LENGTH
        else options.max_model_len or shape.longest_context,
        tokens=options.max_num_batched_tokens or defaults.tokens,
        utilization=options.gpu_memory_utilization,
        value_bytes=serving_memory.kv_value_bytes(options.kv_cache_dtype, computed),
        loaded_share=_loaded_share(shape, options, computed),
        has_windows=not options.disable_hybrid_kv_cache_manager,
        reserved_sequences=options.max_num_seqs or 1 if static else 1,
    )


def _computed_bytes(shape: Transformer, options: VllmOptions) -> float:
    """Return the bytes of a value that the model computes with; FP32 files become 16 bits."""
    stated = serving_memory.VALUE_BYTES.get(options.dtype)
    return serving_memory.VALUE_BYTES["bfloat16"] if stated is None else stated


def _loaded_share(shape: Transformer, options: VllmOptions, computed: float) -> float:
    """Return the size of weights in memory, as a share of their size in files."""
    in_files = serving_memory.VALUE_BYTES.get(shape.dtype)
    if in_files is None:
        return 1  # compressed ones stay as they are
    smaller = serving_memory.LOADED_SHARE.get(options.quantization or "", 1)
    return computed / in_files * smaller


def _why_unknown(job: config.ServiceJob, options: VllmOptions, device: ServingDevice | None) -> str:
    if config.server_of(job) != "vllm":
        return "only vLLM's division of the memory is known"
    if device is None:
        return "its nodes have no accelerators whose memory is known"
    if options.config is not None:
        return f"options stand in {options.config} of the image"
    if job.command and not starts_vllm(job.command):
        return "its command is a shell or another program, which may start vLLM with other options"
    if options.refused:
        return options.refused
    if (misread := misread_option(options)) is not None:
        return f"{misread} is not an option of vLLM {vllm.VERSION}"
    if options.enable_expert_parallel and options.data_parallel_size > 1:
        return "copies of the model share its experts"
    for name in options.uncounted:
        if name in vllm.UNCOUNTED:
            return f"with --{name.replace('_', '-')} {vllm.UNCOUNTED[name]}"
    return ""


def _indivisible_degrees(shape: Transformer, division: ServingDivision) -> Mistakes:
    """Yield degrees that do not divide the model, which vLLM refuses.

    Source: https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/config/model.py
    """
    tensor, pipeline = division.tensor, division.pipeline
    if shape.heads % tensor:
        problem = f"not a divisor of the model's {shape.heads} query heads"
        todo = f"use {_divisors(shape.heads)}"
        yield config.refuse("args", problem, todo, got=f"--tensor-parallel-size={tensor}")
    elif not shape.shares_keys(tensor):
        problem = f"no divisor or multiple of the model's {shape.kv_heads} key and value heads"
        todo = f"use {_divisors(shape.kv_heads)}, or a multiple of {shape.kv_heads}"
        yield config.refuse("args", problem, todo, got=f"--tensor-parallel-size={tensor}")
    if pipeline > shape.layers:
        problem = f"more than the model's {shape.layers} layers"
        yield config.refuse("args", problem, "use less", got=f"--pipeline-parallel-size={pipeline}")


def _divisors(number: int) -> str:
    divisors = [str(part) for part in range(1, min(number, 64) + 1) if number % part == 0]
    return f"{', '.join(divisors[:-1])} or {divisors[-1]}" if len(divisors) > 1 else "1"


def _why_too_large(planned: ServedModelPlan, memory: ServingMemory) -> str:
    used, weights = memory.device / _GIB, memory.weights / _GIB
    several = "each of " if planned.division.devices > 1 else ""
    on_each = f"on {several}{_devices(planned)}, where vLLM takes {used:,.1f} GiB"
    device, division = planned.device, planned.division
    if memory.weights > memory.device:
        return f"too large: {weights:,.1f} GiB of weights {on_each}"
    sequence = f"{memory.sequence / _GIB:,.1f} GiB of KV cache for one sequence"
    length = f" of {division.context:,} tokens" if division.context is not None else ""
    bound = ""
    if device is not None and device.kv_share is not None:
        bound = f", of which vLLM Neuron gives {device.kv_share:.0%} to the KV cache"
    return f"too large: {weights:,.1f} GiB of weights and {sequence}{length} {on_each}{bound}"


def _remedy(planned: ServedModelPlan, memory: ServingMemory) -> str:
    """Return the ways to serve the model all the same."""
    ways: list[str] = []
    if memory.longest > 0 and memory.sequence:
        ways.append(f"--max-model-len={memory.longest}")
    taken = memory.device - memory.overhead
    if taken > 0:
        weights = planned.shape.weights_bytes * planned.division.loaded_share
        count = math.ceil(weights / taken)
        degree = 1 << (count - 1).bit_length()
        if degree > planned.division.devices:
            ways.append(f"{degree} devices (--tensor-parallel-size x --pipeline-parallel-size)")
    ways.append("a pool with more memory, or smaller weights")
    return f"use {', '.join(ways[:-1])}{', or ' if len(ways) > 1 else ''}{ways[-1]}"


def _devices(planned: ServedModelPlan) -> str:
    division, name = planned.division, planned.device.name if planned.device is not None else ""
    count = "1 device" if division.devices == 1 else f"{division.devices} devices"
    return f"{count} ({name})" if name else count
