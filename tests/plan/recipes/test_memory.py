"""Memory of devices that train, held against what others have measured."""

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.folders import ROOT
from ultrascale.catalog.language_models import known_models
from ultrascale.catalog.transformers import Transformer
from ultrascale.parts.recipes.memory import Division, checkpoint_bytes, memory_of

GIB = 2**30
LLAMA3_8B, LLAMA3_70B, LLAMA3_405B, QWEN3_8B, QWEN3_32B, QWEN3_30B_A3B = known_models().values()
# TorchTitan of December 2024 computed the scores of a whole batch at once.
_ONES = ("tensor", "pipeline", "context", "expert", "replicate", "local_batch")
_ALONE: dict[str, Any] = dict.fromkeys(_ONES, 1)
PLAIN = Division(shard=8, sequence=8192, recomputation="full", loss_chunks=1, **_ALONE)
SELECTIVE = replace(PLAIN, local_batch=2, recomputation="selective")
TENSOR = replace(PLAIN, tensor=8, shard=32, local_batch=16)
# By default it made as many passes of a batch as there are stages.
STAGES = replace(PLAIN, tensor=8, pipeline=8, local_batch=32, microbatch=4)
LONG = replace(STAGES, local_batch=8, microbatch=1, sequence=32_768)
QWEN = replace(PLAIN, tensor=8, shard=4, sequence=4096)
CHUNKED = replace(PLAIN, shard=4, sequence=2048, recomputation="selective", loss_chunks=8)


Runs = Mapping[str, tuple[Transformer, Division, float]]
FITTED: Runs = {
    "8b": (LLAMA3_8B, SELECTIVE, 82.4),
    "8b-128": (LLAMA3_8B, replace(SELECTIVE, shard=128), 67.0),
    "8b-cp1": (LLAMA3_8B, replace(PLAIN, sequence=32_768), 83.9),
    "8b-cp2": (LLAMA3_8B, replace(PLAIN, shard=4, context=2, sequence=65_536), 84.2),
    "8b-cp8": (LLAMA3_8B, replace(PLAIN, shard=1, context=8, sequence=262_144), 84.5),
    "70b": (LLAMA3_70B, TENSOR, 71.9),
    "405b": (LLAMA3_405B, STAGES, 82.5),
    "405b-cp1": (LLAMA3_405B, LONG, 75.3),
    "405b-cp8": (LLAMA3_405B, replace(LONG, shard=1, context=8, sequence=262_144), 84.9),
}
HELD_OUT: Runs = {
    "32b-16": (QWEN3_32B, replace(QWEN, local_batch=16), 43.45),
    "32b-32": (QWEN3_32B, replace(QWEN, local_batch=32), 70.79),
    "32b-shard8": (QWEN3_32B, replace(QWEN, shard=8, local_batch=32), 63.27),
    "8b-cp2": (LLAMA3_8B, replace(PLAIN, shard=2, context=2), 44.84),
}
COMPILED: Runs = {
    "8b": (LLAMA3_8B, SELECTIVE, 77.0),
    "32b": (QWEN3_32B, replace(PLAIN, sequence=4096, local_batch=2), 81.85),
    "30b-a3b": (QWEN3_30B_A3B, replace(SELECTIVE, expert=8, sequence=2048), 78.57),
    "qwen-8b": (QWEN3_8B, replace(CHUNKED, local_batch=16), 112.88),
    "8b-large": (LLAMA3_8B, replace(CHUNKED, local_batch=32), 174.49),
}


def gib(model: Transformer, division: Division) -> float:
    return memory_of(model, division, device_bytes=96 * GIB).total / GIB


@pytest.mark.parametrize(("model", "division", "measured"), FITTED.values(), ids=FITTED)
def test_the_formula_is_within_a_tenth_of_what_torchtitan_measured(
    model: Transformer, division: Division, measured: float
) -> None:
    """Source: pytorch/torchtitan, benchmarks/llama3_h100_202412_torchtitan.md at 31a17bf."""
    assert gib(model, division) == pytest.approx(measured, rel=0.1)


@pytest.mark.parametrize(("model", "division", "measured"), HELD_OUT.values(), ids=HELD_OUT)
def test_runs_that_the_formula_was_not_fitted_to_are_within_an_eighth(
    model: Transformer, division: Division, measured: float
) -> None:
    """Sources: https://github.com/pytorch/torchtitan/pull/1690 and .../pull/1884."""
    assert gib(model, division) == pytest.approx(measured, rel=0.125)


def test_a_run_that_ran_out_of_memory_is_one_that_is_refused() -> None:
    """Source: https://github.com/pytorch/torchtitan/pull/1690, on H100 of 94.99 GiB."""
    found = memory_of(QWEN3_32B, replace(QWEN, local_batch=64), device_bytes=int(94.99 * GIB))

    assert not found.fits


@pytest.mark.parametrize(("model", "division", "measured"), COMPILED.values(), ids=COMPILED)
def test_compiled_runs_take_up_to_an_eighth_less_than_the_formula_says(
    model: Transformer, division: Division, measured: float
) -> None:
    """Sources: that of the eager runs; https://github.com/pytorch/torchtitan/pull/1690; its commit
    af35cfb (a mixture of experts) and its components/quantization/nvfp4.md at 73aed7f (the last).
    """
    assert 1 <= gib(model, replace(division, compiled=True)) / measured <= 1.14


def test_more_devices_hold_less_each() -> None:
    few, many = (replace(PLAIN, shard=shard) for shard in (8, 64))
    small = memory_of(LLAMA3_8B, many, device_bytes=GIB)

    assert small.states * 8 == pytest.approx(memory_of(LLAMA3_8B, few, device_bytes=GIB).states)


def test_experts_are_shared_by_all_devices_of_a_replica() -> None:
    alone = replace(PLAIN, shard=16, tensor=4, local_batch=2)
    shared = replace(alone, expert=16)

    assert gib(QWEN3_30B_A3B, shared) < gib(QWEN3_30B_A3B, alone)


def test_recomputation_takes_memory_of_activations_alone() -> None:
    plans = [
        memory_of(LLAMA3_8B, replace(PLAIN, recomputation=kind), device_bytes=GIB)
        for kind in ("full", "selective", "none")
    ]

    assert plans[0].activations < plans[1].activations < plans[2].activations
    assert plans[0].states == plans[2].states


@pytest.mark.parametrize(("adapters", "gigabytes"), [(False, 96.4), (True, 32.2)])
def test_a_checkpoint_holds_the_moments_of_what_learns(adapters: bool, gigabytes: float) -> None:
    size = checkpoint_bytes(LLAMA3_8B, adapters=adapters)

    assert size / 1e9 == pytest.approx(gigabytes, abs=0.1)


def test_the_page_shows_what_the_formula_gives() -> None:
    page = (ROOT / "docs" / "recipes.md").read_text()
    runs = [
        *FITTED.values(),
        *HELD_OUT.values(),
        *((model, replace(each, compiled=True), gibs) for model, each, gibs in COMPILED.values()),
    ]

    for model, division, measured in runs:
        assert f" | {measured:g} | {gib(model, division):.1f} |" in page, (model.name, measured)
