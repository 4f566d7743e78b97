"""TorchTitan's trainer with a stop vote, so that a job that is told to leave loses no step."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import cast

import torch
from torch.distributed import distributed_c10d
from torchtitan.components.dataloader import DataloaderExhaustedError
from torchtitan.trainer import Trainer

from ultrascale_training.stop import STOPPED_EARLY
from ultrascale_training.titan.reports import Reports

_log = logging.getLogger("ultrascale_training")
Vote = Callable[[bool], bool]


class UltrascaleTrainer(Trainer):
    """Trains until the last step, or until the ranks agree to stop."""

    @dataclass(kw_only=True, slots=True)
    class Config(Trainer.Config):
        """TorchTitan's own sections."""

    def run(self, vote: Vote, wish: Callable[[], bool]) -> int:
        """Train and return the exit status.

        Args:
            vote: Called once a step on every rank with its wish to stop; returns the same answer
                on all of them.
            wish: Returns whether this process was told to stop.

        Raises:
            TrainingError: A checkpoint cannot be read or written, or belongs to another run.
        """
        config = self.config
        self.checkpointer.load(step=config.checkpoint.load_step)
        first = self.step
        _log.info("starts at step %d of %d", first, config.training.steps)
        self.reports.begin(first)
        batches = self.batch_generator(self.dataloader)
        with config.profiler.build(
            global_step=self.step, base_folder=config.dump_folder
        ) as profiler:
            while self.should_continue_training():
                if vote(wish()):
                    return self._stop_early(first)
                self.step += 1
                self.gc_handler.run(self.step)
                try:
                    self.train_step(batches)
                except DataloaderExhaustedError:
                    self.step -= 1
                    _log.warning("the data end after step %d", self.step)
                    break
                self.checkpointer.save(self.step, last_step=self.step == config.training.steps)
                if config.validator.enable and self.validator.should_validate(self.step):
                    self.validator.validate(self.model_parts, self.step)
                profiler.step()
                if self.step - first == 1:
                    # Compilation is done, so a collective that takes longer has lost a peer.
                    self._set_timeouts(timedelta(seconds=config.comm.train_timeout_seconds))
        self.checkpointer.maybe_wait_for_saving()
        torch.distributed.barrier()
        self.reports.event("done", step=self.step)
        return 0

    @property
    def reports(self) -> Reports:
        """Reports of the run."""
        return cast(Reports, self.metrics_processor)

    def _set_timeouts(self, timeout: timedelta) -> None:
        # TorchTitan 0.3.0 calls torch.distributed.set_timeout, which torch 2.13 lacks.
        torch.distributed.barrier()
        meshes = self.parallel_dims.get_all_one_dimensional_meshes().values()
        for group in [None, *(mesh.get_group() for mesh in meshes)]:
            distributed_c10d._set_pg_timeout(timeout, group)  # pyright: ignore[reportPrivateUsage]

    def _stop_early(self, first: int) -> int:
        if self.step > first:
            self.checkpointer.save(self.step, last_step=True)
        self.checkpointer.maybe_wait_for_saving()
        torch.distributed.barrier()
        self.reports.event("stopped", step=self.step)
        _log.info("stopped and saved at step %d", self.step)
        return STOPPED_EARLY
