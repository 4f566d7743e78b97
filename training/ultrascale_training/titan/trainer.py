"""TorchTitan's trainer with a stop vote, so that a job that is told to leave loses no step."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import cast

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d
from torchtitan.components.dataloader import DataloaderExhaustedError
from torchtitan.trainer import Trainer

from ultrascale_training.checkpoints import SuspectCheckpointError
from ultrascale_training.errors import TrainingError
from ultrascale_training.stop import STOPPED_EARLY
from ultrascale_training.titan.checkpointer import Checkpointer
from ultrascale_training.titan.reports import Reports

_log = logging.getLogger("ultrascale_training")
_JUDGEMENT = "ultrascale/judgement"
Vote = Callable[[bool], bool]


class UltrascaleTrainer(Trainer):
    """Trains until the last step, or until the ranks agree to stop."""

    @dataclass(kw_only=True, slots=True)
    class Config(Trainer.Config):
        """TorchTitan's own sections."""

        recipe: str = field(default="")
        """Name of the recipe."""

    @property
    def reports(self) -> Reports:
        """Reports of the run."""
        return cast(Reports, self.metrics_processor)

    @property
    def saves(self) -> Checkpointer:
        """Checkpoints of the run."""
        return cast(Checkpointer, self.checkpointer)

    @property
    def identity(self) -> Mapping[str, object]:
        """What a run keeps from one start to the next, by the option that sets it."""
        training, dims = self.config.training, self.parallel_dims
        rows = training.local_batch_size * dims.dp_replicate * dims.dp_shard
        return {
            "--recipe": cast(UltrascaleTrainer.Config, self.config).recipe,
            "--training.seq_len": training.seq_len,
            "--training.global_batch_size": rows * self.gradient_accumulation_steps,
        }

    @property
    def sharers(self) -> int:
        """Ranks that have tokens of their own."""
        dims = self.parallel_dims
        return dims.dp_replicate * dims.dp_shard * dims.cp

    def evaluate(self) -> None:
        """Compute the loss over the validation data, once.

        Raises:
            TrainingError: There are no weights to evaluate.
        """
        if not self.saves.load():
            raise TrainingError(
                "--load: is missing, and the output holds no checkpoint; name the weights to "
                "evaluate"
            )
        self.reports.begin(self.step)
        self.validator.validate(self.model_parts, self.step)

    def run(self, vote: Vote, wish: Callable[[], bool]) -> int:
        """Train and return the exit status.

        Args:
            vote: Called once a step on every rank with its wish to stop; returns the same answer
                on all of them.
            wish: Returns whether this process was told to stop.

        Raises:
            TrainingError: A checkpoint cannot be read or written, or belongs to another run, or
                the loss is not a number any more.
            SuspectCheckpointError: The loss is not a number soon after a resume.
        """
        config = self.config
        self.saves.load()
        first = self.step
        _log.info("starts at step %d of %d", first, config.training.steps)
        self.reports.begin(first)
        batches = self.batch_generator(self.dataloader)
        with config.profiler.build(
            global_step=self.step, base_folder=config.dump_folder
        ) as profiler:
            while self.should_continue_training():
                if vote(wish()):
                    return self._leave("stopped", save=self.step > first)
                self.step += 1
                self.gc_handler.run(self.step)
                try:
                    self.train_step(batches)
                except DataloaderExhaustedError:
                    self.step -= 1
                    _log.warning("the data end after step %d", self.step)
                    break
                except RuntimeError as error:
                    raise self._judged(error) from None
                self.saves.save(self.step, last_step=self.step == config.training.steps)
                self._report_published()
                if config.validator.enable and self.validator.should_validate(self.step):
                    self.validator.validate(self.model_parts, self.step)
                profiler.step()
                if self.step - first == 1:
                    # Compilation is done, so a collective that takes longer has lost a peer.
                    self._set_timeouts(timedelta(seconds=config.comm.train_timeout_seconds))
        return self._leave("done", save=self.step > first)

    def _leave(self, event: str, *, save: bool) -> int:
        if save:
            self.saves.save(self.step, last_step=True)
        self.saves.wait()
        self._report_published()
        # A rank that went earlier would take its node's other ranks with it.
        dist.barrier()
        self.reports.event(event, step=self.step)
        _log.info("%s and saved at step %d", event, self.step)
        return STOPPED_EARLY if event == "stopped" else 0

    def _report_published(self) -> None:
        for step in self.saves.published:
            self.reports.event("checkpoint", step=step)

    def _judged(self, error: RuntimeError) -> Exception:
        """Return what a loss that is no number means; other errors as they are."""
        # The only words by which TorchTitan 0.3.0 tells it from other errors.
        if "Loss is not finite" not in str(error):
            return error
        store = distributed_c10d._get_default_store()  # pyright: ignore[reportPrivateUsage]
        # Only the last stage of a pipeline knows the loss.
        pipeline = self.parallel_dims.pp
        if dist.get_rank() == dist.get_world_size() // pipeline * (pipeline - 1):
            verdict = self.saves.judge(self.step, float("nan"))
            kind = "suspect" if isinstance(verdict, SuspectCheckpointError) else "diverged"
            store.set(_JUDGEMENT, f"{kind} {verdict}")
            return verdict
        kind, _, text = store.get(_JUDGEMENT).decode().partition(" ")
        return SuspectCheckpointError(text) if kind == "suspect" else TrainingError(text)

    def _set_timeouts(self, timeout: timedelta) -> None:
        # TorchTitan 0.3.0 calls torch.distributed.set_timeout, which torch 2.13 lacks.
        torch.distributed.barrier()
        meshes = self.parallel_dims.get_all_one_dimensional_meshes().values()
        for group in [None, *(mesh.get_group() for mesh in meshes)]:
            distributed_c10d._set_pg_timeout(timeout, group)  # pyright: ignore[reportPrivateUsage]
