"""Restart budget of a run: failures use restarts up, and saved progress earns new ones.

A job that fails again and again at the same step ends after a few tries, however often its
controller would start it; a job on thousands of nodes, some of which fail each day, goes on as long
as it makes progress.
"""

import json
import logging
import os
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal

from ultrascale_training.errors import TrainingError, full_disk
from ultrascale_training.objects import Objects

_log = logging.getLogger("ultrascale_training")
VARIABLE = "ULTRASCALE_RESTART_BUDGET"
# Twice the published rate: 419 unexpected interruptions in 54 days on 2,048 nodes of 8 GPUs.
# Source: https://arxiv.org/abs/2407.21783 (section 3.3.4)
NODE_HOURS = 3167.0
# Restarts that a run has at first, and at most.
RESTARTS = 10
LEDGER = "restarts.json"
"""File of the ledger in the output of a run."""


class RestartLedger:
    """Ledger of a run's restarts, in a file of its output; only the first worker uses it.

    Args:
        records: Files of the run's output.
        node_hours: Node-hours of saved training that earn one restart; None takes
            ``ULTRASCALE_RESTART_BUDGET``, or `NODE_HOURS`.
        clock: Returns the time in seconds.
    """

    def __init__(
        self,
        records: Objects,
        *,
        node_hours: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._records = records
        self._node_hours = node_hours or 0.0
        self._clock = clock
        self._state: dict[str, Any] = {"left": float(RESTARTS), "step": 0, "running": None}
        self._since = clock()

    def begin(
        self,
        *,
        nodes: int,
        step: int,
        durable: bool = True,
        aside: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Note a start; it uses a restart up, unless the previous start ended by itself.

        Args:
            nodes: Nodes of this start.
            step: Steps that are done.
            durable: Whether the state at ``step`` outlives the nodes.
            aside: Steps of the durable checkpoints that were set aside, by name.

        Raises:
            TrainingError: No restart is left, saved steps are gone, the file is damaged, or the
                variable is no number above 0.
        """
        self._node_hours = self._node_hours or _from_environment()
        found = self._records.get(LEDGER)
        if found is not None:
            self._state |= self._read(found)
        # Files of earlier releases hold only the highest step.
        newest = self._state.get("newest", self._state["step"])
        known = self._state.get("aside", [])
        new = [number for name, number in aside.items() if name not in known]
        if durable and step < newest and max(new, default=0) < newest:
            left = f"the newest checkpoint has {step}" if step else "no checkpoint is there"
            raise TrainingError(
                f"{self._records.location}/{LEDGER} says that {newest} steps are saved, and "
                f"{left}: the run would begin at step {step}. Put them back, name the output of "
                f"before, or delete {self._records.location}/{LEDGER} to train these steps again"
            )
        if self._state["running"] is not None:
            if self._state["left"] < 1:
                raise TrainingError(
                    f"no restart is left: the run fails more often than once in "
                    f"{self._node_hours:g} node-hours of saved progress, and {RESTARTS} restarts "
                    f"beyond that are used up; see {self._records.location}/failures, solve the "
                    f"cause, then delete {self._records.location}/{LEDGER}"
                )
            self._state["left"] -= 1
        self._since = self._clock()
        self._state["step"] = max(step, self._state["step"])
        # A checkpoint in the nodes' memory may be gone at the next start.
        if durable:
            newest, known = step, sorted(aside)
        self._state |= {"newest": newest, "aside": known}
        self._state["running"] = {"nodes": nodes, "step": step, "since": round(self._since)}
        self._write()

    def saved(self, step: int) -> None:
        """Note that the state after ``step`` steps is saved, which adds a part of a restart.

        Raises:
            OSError: The disk is full. Any other error is logged and costs the run nothing: the next
                note includes this one.
        """
        self._state["newest"] = step
        if step > self._state["step"]:
            now = self._clock()
            earned = self._state["running"]["nodes"] * (now - self._since) / 3600 / self._node_hours
            self._state["left"] = min(float(RESTARTS), self._state["left"] + earned)
            self._state["step"], self._since = step, now
        try:
            self._write()
        except Exception as error:
            if full_disk(error) is not None:
                raise
            _log.warning("%s/%s cannot be written: %s", self._records.location, LEDGER, error)

    def end(self, how: Literal["stopped", "done"]) -> None:
        """Note that the run ends by itself: the next start uses no restart up."""
        self._state["running"] = None
        self._state["ended"] = how
        self._write()

    def _read(self, text: bytes) -> dict[str, Any]:
        try:
            return dict(json.loads(text))
        except (ValueError, TypeError):
            raise TrainingError(
                f"{self._records.location}/{LEDGER} is damaged, which holds the restarts that are "
                "left; delete it, and the run has those of a new one"
            ) from None

    def _write(self) -> None:
        self._records.put(LEDGER, json.dumps(self._state).encode())


def _from_environment() -> float:
    given = os.environ.get(VARIABLE)
    if not given:
        return NODE_HOURS
    try:
        hours = float(given)
    except ValueError:
        hours = 0.0
    if not hours > 0:
        raise TrainingError(
            f"{VARIABLE}: must be node-hours above 0 that earn one restart, got {given!r}"
        )
    return hours
