"""Arguments of runs with toy models, and what they wrote."""

import json
from pathlib import Path
from typing import Any

_TOY = (
    "--activation-checkpoint=none",
    "--training.local_batch_size=2",
    "--metrics.log_freq=1",
    "--lr-scheduler.warmup-steps=1",
    "--seed=3",
)


def arguments(recipe: str, data: Path, output: Path, *, steps: int, **options: object) -> list[str]:
    """Return the command line of a run; ``training__seq_len=64`` is an option of TorchTitan."""
    given = {"training.steps": steps, "training.seq_len": 64, "checkpoint.interval": 100} | {
        name.replace("__", "."): value for name, value in options.items()
    }
    titan = [f"--{name}={value}" for name, value in given.items()]
    return [f"--recipe={recipe}", f"--data={data}", f"--output-dir={output}", *_TOY, *titan]


def events(output: Path, kind: str | None = None) -> list[dict[str, Any]]:
    """Return what a run has noted, in order; of one kind, or all."""
    path = output / "metrics.jsonl"
    # The last line may be half written.
    lines = path.read_text().rpartition("\n")[0].splitlines() if path.exists() else []
    found = [json.loads(line) for line in lines]
    return [each for each in found if kind is None or each["event"] == kind]


def losses(output: Path) -> dict[int, float]:
    """Return the loss of each step of a run, the later one where a step was computed twice."""
    return {each["step"]: each["loss"] for each in events(output, "step")}


def starts(output: Path) -> list[int]:
    """Return the steps at which the starts of a run began."""
    return [each["step"] for each in events(output, "start")]
