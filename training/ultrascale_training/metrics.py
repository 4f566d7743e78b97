"""Metrics of a run: JSON lines for programs, TensorBoard scalars for people."""

import json
import time
from pathlib import Path
from typing import Any

METRICS = "metrics.jsonl"


class Metrics:
    """Appends to what earlier starts of the run wrote.

    A step that is computed again after a fault has two JSON lines, the later of which counts;
    TensorBoard hides the earlier one (``purge_step``).

    Args:
        directory: The run's output directory.
        step: Steps that are done; scalars of later steps, from before a fault, are purged.
        common: Put on every JSON line.
    """

    def __init__(self, directory: Path, *, step: int, common: dict[str, object]) -> None:
        # Its import takes a second, and only one worker writes metrics.
        from torch.utils.tensorboard import SummaryWriter

        self._common = common
        self._path = directory / METRICS
        self._scalars: Any = SummaryWriter(str(directory / "tensorboard"), purge_step=step + 1)

    def event(self, name: str, **fields: object) -> None:
        """Write one JSON line."""
        line = {"event": name, "time": round(time.time(), 3), **fields, **self._common}
        # Closed each time, so that readers on other nodes see the line.
        with self._path.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def step(self, step: int, **scalars: float) -> None:
        """Write the scalars of ``step``, the number of steps done, to both."""
        self.event("step", step=step, **scalars)
        for name, value in scalars.items():
            self._scalars.add_scalar(name, value, step)
        self._scalars.flush()

    def close(self) -> None:
        """Write out what is buffered."""
        self._scalars.close()
