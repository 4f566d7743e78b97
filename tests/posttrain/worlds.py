"""Runs of post-training as processes that are forked from one that has imported TRL."""

import json
import logging
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import trl
from torch import serialization
from trl.scripts import distillation, dpo, grpo, sft

from tests.support import forked_worlds
from tests.support.forked_worlds import World
from ultrascale_training import posttrain
from ultrascale_training.failures import FailureLog

# Imported here for all processes, and with them what TRL's lazy modules import.
SCRIPTS = (sft, dpo, grpo, distillation)
TRAINERS = (trl.SFTTrainer, trl.DPOTrainer, trl.GRPOTrainer, trl.DistillationTrainer)
# A checkpoint of several workers is read to `cpu:0`, of which torch knows no more than of `cuda:0`
# here; transformers 5.17 asks for it on CPUs.
serialization.register_package(
    0, lambda _: None, lambda storage, place: storage if place.startswith("cpu:") else None
)
# Seconds for which a complete checkpoint waits for its sums, so that a test can end the run then.
_SLOW_SECONDS = 1.0


def _program() -> None:
    warnings.simplefilter("ignore")
    logging.basicConfig(level=logging.INFO)
    log = FailureLog()
    sys.excepthook = log.leave
    sys.exit(posttrain.main(log))


def _slowly() -> None:
    seal = posttrain.SealedStore.seal

    def wait(*given: Any) -> None:
        time.sleep(_SLOW_SECONDS)
        seal(*given)

    setattr(posttrain.SealedStore, "seal", wait)  # noqa: B010
    _program()


def start(
    world: int,
    method: str,
    words: Sequence[str],
    output: Path,
    *,
    attempt: str = "0",
    run_id: str = "toy",
    slow_saves: bool = False,
) -> World:
    """Start a method on CPUs, in ``world`` processes."""
    whole = [
        *(method, "--use_cpu", "--bf16=False", "--report_to=none", "--disable_tqdm=True"),
        *(f"--output_dir={output}", *words),
    ]
    folder = output.with_name(f"{output.name}-logs")
    program = _slowly if slow_saves else _program
    return forked_worlds.start(program, world, whole, folder, attempt=attempt, run_id=run_id)


def run(
    world: int, method: str, words: Sequence[str], output: Path, *, attempt: str = "0"
) -> World:
    """Run a method to its end, which must be success."""
    running = start(world, method, words, output, attempt=attempt)
    assert running.wait() == [0] * world, "\n".join(log.read_text()[-3000:] for log in running.logs)
    return running


def figures(output: Path, name: str = "loss") -> Mapping[int, float]:
    """Return a figure of each step; of a step that was repeated the last."""
    lines = map(json.loads, (output / "metrics.jsonl").read_text().splitlines())
    return {line["step"]: line[name] for line in lines if line["event"] == "step" and name in line}
