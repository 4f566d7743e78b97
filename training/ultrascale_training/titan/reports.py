"""Reports of a TorchTitan run by this package, on rank 0."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torchtitan.components.metrics import MetricsProcessor
from torchtitan.distributed import ParallelDims
from torchtitan.distributed import utils as dist_utils
from torchtitan.tools import utils

from ultrascale_training.objects import is_bucket, open_objects
from ultrascale_training.progress import Progress, peak_flops


class Reports(MetricsProcessor):
    """Replacement for TorchTitan's own log lines and scalars.

    Args:
        config: Configuration of the trainer.
        parallel_dims: Degrees of parallelism.
        dump_folder: Folder for metrics.
        others: Arguments that TorchTitan passes to every processor.
    """

    @dataclass(kw_only=True, slots=True)
    class Config(MetricsProcessor.Config):
        """TorchTitan's own settings, of which only ``log_freq`` is used."""

    def __init__(
        self, config: Config, *, parallel_dims: ParallelDims, dump_folder: str, **others: object
    ) -> None:
        super().__init__(config, parallel_dims=parallel_dims, dump_folder=dump_folder, **others)
        self._folder = Path(dump_folder)
        # Progress of the run; None on all ranks but the first
        self.progress: Progress | None = None
        # Returns whether a step is reported outside of the interval
        self.also: Callable[[int], bool] = lambda _: False
        self._seen = 0

    def begin(self, step: int, *, steps: int, tokens: int, output: str) -> None:
        """Begin the reports of a run.

        Args:
            step: Steps that are done.
            steps: Last step of the run.
            tokens: Tokens that all ranks have done together.
            output: Directory or bucket of the run.
        """
        self._seen = tokens
        if dist.get_rank() != 0:
            return
        index = utils.device_module.current_device()
        self._folder.mkdir(parents=True, exist_ok=True)
        self.progress = Progress(
            self._folder,
            step=step,
            steps=steps,
            common={"world": dist.get_world_size()},
            flops_per_token=self.num_flops_per_token,
            devices=dist.get_world_size(),
            peak_flops=peak_flops(torch.device(utils.device_type, index)),
            bucket=open_objects(output) if is_bucket(output) else None,
        )
        self.event("start", step=step)

    def should_log(self, step: int) -> bool:
        """Return whether the loss of ``step`` is read, checked and reported."""
        return super().should_log(step) or self.also(step)

    def aside(self) -> AbstractContextManager[None]:
        """Return a context for work whose time counts for no step."""
        return nullcontext() if self.progress is None else self.progress.aside()

    def event(self, name: str, **fields: object) -> None:
        """Report an event of the run."""
        if self.progress is not None:
            self.progress.event(name, **fields)
            if name == "checkpoint":
                self.progress.keep()

    def log(
        self,
        step: int,
        global_avg_loss: float,
        global_max_loss: float,
        grad_norm: float,
        extra_metrics: dict[str, Any] | None = None,
    ) -> None:
        """Report a step; every rank calls this."""
        loss = self._loss_of_last_stage(global_avg_loss)
        extra = extra_metrics or {}
        rates = [value for name, value in extra.items() if name.startswith("lr/")]
        seen = int(extra["n_tokens_seen"])
        if self.progress is not None:
            self.progress.step(
                step,
                loss=loss,
                learning_rate=max(rates),
                tokens=seen - self._seen,
                gradient_norm=grad_norm,
            )
        self._seen = seen
        self._begin_interval()

    def log_validation(
        self, loss: float, step: int, extra_metrics: dict[str, Any] | None = None
    ) -> None:
        """Report a validation; every rank calls this."""
        self.event("validation", step=step, loss=self._loss_of_last_stage(loss))
        self._begin_interval()

    def close(self) -> None:
        """Flush the buffers."""
        if self.progress is not None:
            self.progress.close()
        super().close()

    def _loss_of_last_stage(self, loss: float) -> float:
        # Other stages of a pipeline have a negative number in place of the loss.
        mesh = self.parallel_dims.get_optional_mesh("pp")
        device = torch.device(utils.device_type)
        return (
            loss if mesh is None else dist_utils.dist_max(torch.tensor(loss, device=device), mesh)
        )

    def _begin_interval(self) -> None:
        self.ntokens_since_last_log = 0
        self.data_loading_times.clear()
