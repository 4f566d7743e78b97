"""Memory and start of the model of a service."""

from collections.abc import Iterator

from ultrascale.catalog import serving_memory
from ultrascale.plan.model import Figure
from ultrascale.plan.model.models import ServedModelPlan, ServingMemory

_GIB, _GB = 2**30, 10**9


def model_figures(at: str, model: ServedModelPlan) -> Iterator[Figure]:
    """Yield the figures of a model: its memory on a device, and the time until it answers.

    Args:
        at: Beginning of their ids.
        model: The model on the nodes of its service.
    """
    yield Figure(
        id=f"{at}.weights_gb",
        value=model.shape.weights_bytes / _GB,
        unit="GB",
        formula=f"weight files of {model.name}, {model.shape.dtype}",
    )
    yield from _memory(at, model)
    load, cold = model.load, model.cold_start_seconds
    yield Figure(
        id=f"{at}.load_seconds",
        value=load.seconds,
        unit="seconds",
        formula=load.formula,
        sources=load.sources,
    )
    yield Figure(
        id=f"{at}.cold_start_seconds",
        value=cold,
        unit="seconds",
        formula=load.formula
        if cold is None
        else f"{model.start_formula} + {at}.load_seconds; no node is launched where one is free",
        sources=model.start_sources,
    )


def _memory(at: str, model: ServedModelPlan) -> Iterator[Figure]:
    memory = model.memory
    figures = (
        ("device_gib_needed", "GiB", _needed_words(model), _needed(memory)),
        ("device_gib", "GiB", _device_words(model), None if memory is None else memory.device),
    )
    for key, unit, formula, value in figures:
        yield Figure(
            id=f"{at}.{key}",
            value=None if value is None else value / _GIB,
            unit=unit,
            formula=model.unknown or formula,
            sources=(serving_memory.FORMULA_SOURCE, serving_memory.OVERHEAD_SOURCE),
        )
    yield Figure(
        id=f"{at}.sequences",
        value=None if memory is None or not memory.sequence else memory.sequences,
        unit="sequences of full length at the same time",
        formula=model.unknown or _sequence_words(model, memory),
        sources=(serving_memory.FORMULA_SOURCE,),
    )


def _needed(memory: ServingMemory | None) -> int | None:
    """Return what weights, activations and one sequence of full length take of a device."""
    return None if memory is None else memory.weights + memory.overhead + memory.sequence


def _needed_words(model: ServedModelPlan) -> str:
    division = model.division
    return (
        f"weights / ({division.tensor} tensor x {division.pipeline} pipeline) + "
        f"{serving_memory.OVERHEAD_SHARE:.0%} of the device for activations, CUDA graphs and "
        "communication (an estimate) + KV cache of one sequence"
    )


def _device_words(model: ServedModelPlan) -> str:
    name = "" if model.device is None else model.device.name
    return f"memory of one {name} x {model.division.utilization:g}, the share that vLLM takes"


def _sequence_words(model: ServedModelPlan, memory: ServingMemory | None) -> str:
    if memory is None or not memory.sequence:
        return "no longest sequence is stated"
    return (
        f"{memory.room / _GIB:,.1f} GiB that are left / {memory.sequence / _GIB:,.2f} GiB of KV "
        f"cache for {model.division.context:,} tokens"
    )
