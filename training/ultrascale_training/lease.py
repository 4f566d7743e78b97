"""Lease of a run's output: two runs that write into one place would spoil each other's checkpoints.

The first worker writes a file every few seconds. Another run that finds a fresh one watches whether
it changes, and ends if it does. A run that was killed leaves a file that nobody changes.
"""

import json
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from ultrascale_training.errors import TrainingError
from ultrascale_training.objects import Objects

_log = logging.getLogger("ultrascale_training")
_FILE = "lease.json"
_EVERY_SECONDS = 15.0
# A file that is older was left by a run that has ended, whatever the clocks of nodes differ by.
_FRESH_SECONDS = 90.0


class Lease:
    """Lease of an output; only the first worker uses it.

    Args:
        records: Files of the output.
        every: Seconds between two notes.
        holder: Name of the run; restarts of one job under torchrun have the same.
        pause: Waits for some seconds.
    """

    def __init__(
        self,
        records: Objects,
        *,
        every: float = _EVERY_SECONDS,
        holder: str | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._records, self._every, self._pause = records, every, pause
        own = os.environ.get("TORCHELASTIC_RUN_ID") or f"process {os.getpid()}"
        self._holder = holder or own
        self._notes = 0
        self._ended = threading.Event()

    def take(self) -> None:
        """Take the output, and keep it until `release` or the end of this process.

        Raises:
            TrainingError: Another run writes there.
        """
        found = self._read()
        if found.get("holder", self._holder) != self._holder and _is_fresh(found):
            left = 3 * self._every
            while left > 0:
                self._pause(self._every / 3)
                left -= self._every / 3
                if self._read().get("notes", found["notes"]) != found["notes"]:
                    raise TrainingError(
                        f"run {found['holder']} of pod {found['pod']} writes to "
                        f"{self._records.location} now; cancel it, or give this run another "
                        "--output-dir"
                    )
        self._note()
        threading.Thread(target=self._keep, name="lease", daemon=True).start()

    def release(self) -> None:
        """Leave the output to whoever comes next."""
        self._ended.set()
        self._records.delete(_FILE)

    def _keep(self) -> None:
        while not self._ended.wait(self._every):
            try:
                self._note()
            except Exception as error:
                # The next note may succeed, and training does not depend on it.
                _log.warning("%s/%s cannot be written: %s", self._records.location, _FILE, error)

    def _note(self) -> None:
        self._notes += 1
        note = {
            "holder": self._holder,
            "pod": os.environ.get("ULTRASCALE_POD") or socket.gethostname(),
            "notes": f"{os.getpid()}-{self._notes}",
            "time": round(time.time()),
        }
        self._records.put(_FILE, json.dumps(note).encode())

    def _read(self) -> Mapping[str, Any]:
        try:
            return dict(json.loads(self._records.get(_FILE) or b"{}"))
        except (ValueError, TypeError):
            return {}


def _is_fresh(note: Mapping[str, Any]) -> bool:
    return abs(time.time() - float(note.get("time", 0))) < _FRESH_SECONDS
