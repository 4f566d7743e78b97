"""Reports of a TorchTitan run as this package's metrics, by rank 0."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torchtitan.components.metrics import MetricsProcessor
from torchtitan.distributed import ParallelDims
from torchtitan.distributed import utils as dist_utils
from torchtitan.tools import utils

from ultrascale_training.metrics import Metrics


class Reports(MetricsProcessor):
    """Takes the place of TorchTitan's own lines and scalars.

    Args:
        config: Of the trainer.
        parallel_dims: Degrees of parallelism.
        dump_folder: Where metrics go.
        others: Arguments that TorchTitan passes to every processor.
    """

    @dataclass(kw_only=True, slots=True)
    class Config(MetricsProcessor.Config):
        """TorchTitan's own settings, of which ``log_freq`` is used."""

    def __init__(
        self, config: Config, *, parallel_dims: ParallelDims, dump_folder: str, **others: object
    ) -> None:
        super().__init__(config, parallel_dims=parallel_dims, dump_folder=dump_folder, **others)
        self._folder = Path(dump_folder)
        self._metrics: Metrics | None = None

    def begin(self, step: int) -> None:
        """Start to report a run of which ``step`` steps are done."""
        if dist.get_rank() == 0:
            self._metrics = Metrics(
                self._folder, step=step, common={"world": dist.get_world_size()}
            )
            self.event("start", step=step)

    def event(self, name: str, **fields: object) -> None:
        """Note an event of the run."""
        if self._metrics is not None:
            self._metrics.event(name, **fields)

    def log(
        self,
        step: int,
        global_avg_loss: float,
        global_max_loss: float,
        grad_norm: float,
        extra_metrics: dict[str, Any] | None = None,
    ) -> None:
        """Report a step; called on every rank."""
        loss = self._of_last_stage(global_avg_loss)
        extra = extra_metrics or {}
        rates = [value for name, value in extra.items() if name.startswith("lr")]
        if self._metrics is not None:
            self._metrics.step(
                step, loss=loss, gradient_norm=grad_norm, learning_rate=max(rates, default=0.0)
            )
        self._begin_interval()

    def log_validation(
        self, loss: float, step: int, extra_metrics: dict[str, Any] | None = None
    ) -> None:
        """Report a validation; called on every rank."""
        self.event("validation", step=step, loss=self._of_last_stage(loss))
        self._begin_interval()

    def close(self) -> None:
        """Write out what is buffered."""
        if self._metrics is not None:
            self._metrics.close()
        super().close()

    def _of_last_stage(self, loss: float) -> float:
        # Other stages of a pipeline have a negative number instead of the loss.
        mesh = self.parallel_dims.get_optional_mesh("pp")
        device = torch.device(utils.device_type)
        return (
            loss if mesh is None else dist_utils.dist_max(torch.tensor(loss, device=device), mesh)
        )

    def _begin_interval(self) -> None:
        self.ntokens_since_last_log = 0
        self.data_loading_times.clear()
