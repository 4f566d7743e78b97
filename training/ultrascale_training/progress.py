"""Progress of a run: a line on stdout, JSON lines for programs, TensorBoard scalars for people."""

import json
import logging
import os
import time
import uuid
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from ultrascale_training.objects import Objects

if TYPE_CHECKING:
    import torch
    from torch.utils.tensorboard import SummaryWriter


_log = logging.getLogger("ultrascale_training")
# Seconds for the last copy, at the end of a run.
_PATIENCE_SECONDS = 30.0
METRICS = "metrics.jsonl"
_NAME, _SCALARS = "progress", "tensorboard"


class Progress:
    """Reporter of a run, on its first worker; it appends to the files of earlier starts.

    A step that is computed again after a fault has two lines, of which the later counts;
    TensorBoard hides the earlier (``purge_step``).

    Args:
        directory: Output directory of the run; None writes to stdout only.
        step: Steps that are done; scalars of later steps, written before a fault, are purged.
        steps: Last step of the run.
        common: Fields of every JSON line.
        flops_per_token: FLOP of the model for one token, forward and backward.
        devices: Devices of the job.
        peak_flops: FLOP a second of one device; None leaves the MFU out.
        bucket: Bucket to which `keep` copies the lines, in a file for each start: objects cannot
            grow.
    """

    def __init__(
        self,
        directory: Path | None,
        *,
        step: int,
        steps: int,
        common: Mapping[str, object] | None = None,
        flops_per_token: float | None = None,
        devices: int = 1,
        peak_flops: float | None = None,
        bucket: Objects | None = None,
    ) -> None:
        self._path = None if directory is None else directory / METRICS
        self._directory, self._bucket = directory, bucket
        self._copy = (
            f"metrics/{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{uuid.uuid4().hex[:6]}"
        )
        self._of_before = self._path.stat().st_size if self._path and self._path.exists() else 0
        if self._path and self._of_before:
            _end_last_line(self._path)
        self._copying: Thread | None = None
        self._scalars: SummaryWriter | None = None
        if directory is not None:
            # Imported late: the import takes a second, and only one worker reports.
            from torch.utils import tensorboard

            self._scalars = tensorboard.SummaryWriter(
                str(directory / _SCALARS), purge_step=step + 1
            )
        self._steps = steps
        self._common = dict(common or {})
        self._share = None
        if flops_per_token is not None and peak_flops is not None:
            self._share = flops_per_token / (peak_flops * devices)
        self._step, self._time = step, time.monotonic()

    def step(
        self, step: int, *, loss: float, learning_rate: float, tokens: int, **scalars: float
    ) -> None:
        """Report ``step``, the number of finished steps.

        Args:
            step: Number of finished steps.
            loss: Loss of the global batch.
            learning_rate: Learning rate of the step.
            tokens: Tokens of all workers since the previous report.
            scalars: Further figures for the JSON line and TensorBoard.
        """
        now = time.monotonic()
        seconds = max(now - self._time, 1e-9)
        figures: dict[str, float] = {
            "loss": loss,
            "tokens_per_second": tokens / seconds,
            "step_seconds": seconds / max(1, step - self._step),
            "learning_rate": learning_rate,
        }
        if self._share is not None:
            figures["mfu"] = self._share * figures["tokens_per_second"]
        self._step, self._time = step, now
        figures |= scalars
        print(_line(step, self._steps, figures), flush=True)
        self.event("step", step=step, steps=self._steps, **figures)
        if self._scalars is not None:
            for name, value in figures.items():
                self._scalars.add_scalar(name, value, step)
            self._scalars.flush()

    @contextmanager
    def aside(self) -> Generator[None]:
        """Exclude the time of other work, such as a validation, from the figures."""
        start = time.monotonic()
        try:
            yield
        finally:
            self._time += time.monotonic() - start

    def event(self, name: str, **fields: object) -> None:
        """Write a JSON line about an event."""
        if self._path is None:
            return
        line = {"event": name, "time": round(time.time(), 3), **fields, **self._common}
        # Closed after each line, so that readers on other nodes see it.
        with self._path.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def keep(self) -> None:
        """Copy the lines so far to the bucket, in parallel with the training."""
        if self._bucket is None or (self._copying is not None and self._copying.is_alive()):
            return
        self._copying = Thread(target=self._copy_to, args=(self._bucket,), daemon=True)
        self._copying.start()

    def close(self) -> None:
        """Flush the buffers, and copy the lines to the bucket."""
        if self._scalars is not None:
            self._scalars.close()
        if self._copying is not None:
            self._copying.join(_PATIENCE_SECONDS)
        self.keep()
        if self._copying is not None:
            self._copying.join(_PATIENCE_SECONDS)

    def _copy_to(self, bucket: Objects) -> None:
        if self._directory is None or self._path is None:
            return
        try:
            with self._path.open("rb") as file:
                file.seek(self._of_before)
                bucket.put(self._copy, file.read())
            for events in (self._directory / _SCALARS).iterdir():
                bucket.put(f"{_SCALARS}/{events.name}", events.read_bytes())
        except Exception as error:
            # The training continues: the log has the figures too.
            _log.warning("metrics cannot be copied to %s: %s", bucket.location, error)


def _end_last_line(path: Path) -> None:
    """End a line that a killed process has begun, so that the next event has its own."""
    with path.open("rb+") as file:
        file.seek(-1, os.SEEK_END)
        if file.read() != b"\n":
            file.write(b"\n")


def _line(step: int, steps: int, figures: Mapping[str, float]) -> str:
    formats = {
        "loss": ".4f",
        "tokens_per_second": ".0f",
        "step_seconds": ".4g",
        "mfu": ".4f",
        "learning_rate": ".4g",
        "reward": ".4g",
        "rollout_share": ".2f",
    }
    words = [
        f"{name}={figures[name]:{shape}}" for name, shape in formats.items() if name in figures
    ]
    return " ".join([_NAME, f"step={step}/{steps}", *words])


# --- Peak arithmetic of devices, from which a run's utilization (MFU) follows ---------------------


# FLOP a second of dense matrix products in bfloat16, by a part of torch's name of the device. If a
# name contains another, the longer name comes first.
_PEAKS = (
    # https://www.nvidia.com/en-us/data-center/h200/ (half of the figure with sparsity)
    ("H200", 989e12),
    # https://www.nvidia.com/en-us/data-center/h100/
    ("H100 NVL", 835e12),
    ("H100 PCIe", 756e12),
    ("H100", 989e12),
    # https://www.nvidia.com/en-us/data-center/gb200-nvl72/ and /gb300-nvl72/, a GPU of 72
    ("GB200", 2.5e15),
    ("GB300", 2.5e15),
    # https://resources.nvidia.com/en-us-dgx-systems/dgx-b200-datasheet, a GPU of 8
    ("B200", 2.25e15),
    ("B300", 2.25e15),
    # https://www.nvidia.com/en-us/data-center/a100/
    ("A100", 312e12),
    # https://www.nvidia.com/en-us/data-center/l40s/
    ("L40S", 362e12),
    # https://www.nvidia.com/en-us/data-center/l4/
    ("L4", 121e12),
)
# FLOP a second and NeuronCores of a chip, by the family of the instance.
_NEURON = {
    # https://awsdocs-neuron.readthedocs-hosted.com/en/latest/about-neuron/arch/neuron-hardware/trainium.html
    "trn1": (190e12, 2),
    "trn1n": (190e12, 2),
    # https://awsdocs-neuron.readthedocs-hosted.com/en/latest/about-neuron/arch/neuron-hardware/trainium2.html
    "trn2": (667e12, 8),
    "trn2u": (667e12, 8),
    # https://awsdocs-neuron.readthedocs-hosted.com/en/latest/about-neuron/arch/neuron-hardware/trainium3.html
    "trn3": (671e12, 8),
}
# Variable with the cores of a device. Without it a device has one core on trn1, which knows no
# other setting, and two cores on later families.
# Source:
# https://awsdocs-neuron.readthedocs-hosted.com/en/latest/about-neuron/arch/neuron-features/logical-neuroncore-config.html
_CORES_OF_A_DEVICE = "NEURON_LOGICAL_NC_CONFIG"
# File with the type of a Nitro instance. It is undocumented; with other content no peak is known.
_PRODUCT = Path("/sys/devices/virtual/dmi/id/product_name")


def peak_flops(device: "torch.device") -> float | None:
    """Return the FLOP a second of a ``device`` in bfloat16; None for an unknown device."""
    if device.type == "cuda":
        import torch

        return peak_of(torch.cuda.get_device_name(device))
    if device.type in ("xla", "neuron"):
        with suppress(OSError):
            return neuron_peak_of(_PRODUCT.read_text().strip())
    return None


def peak_of(name: str) -> float | None:
    """Return the FLOP a second of the GPU that the driver calls ``name``."""
    return next((peak for part, peak in _PEAKS if part in name), None)


def neuron_peak_of(instance_type: str) -> float | None:
    """Return the FLOP a second of a Neuron device of an instance type; None for other types."""
    family = instance_type.partition(".")[0]
    if family not in _NEURON:
        return None
    peak, cores = _NEURON[family]
    default = 1 if cores == 2 else 2
    return peak / cores * int(os.environ.get(_CORES_OF_A_DEVICE) or default)
