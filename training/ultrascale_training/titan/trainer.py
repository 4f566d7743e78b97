"""TorchTitan's trainer with a stop vote, so that a job that has to stop loses no step."""

import inspect
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal, cast

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d
from torchtitan.components.dataloader import DataloaderExhaustedError
from torchtitan.trainer import Trainer

from ultrascale_training.checkpoints import SuspectCheckpointError
from ultrascale_training.errors import TrainingError
from ultrascale_training.lease import Lease
from ultrascale_training.objects import open_objects
from ultrascale_training.restarts import RestartLedger
from ultrascale_training.stop import STOPPED_EARLY
from ultrascale_training.stragglers import Stragglers, WorkClock
from ultrascale_training.titan.checkpointer import Checkpointer
from ultrascale_training.titan.loader import Batch
from ultrascale_training.titan.reports import Reports
from ultrascale_training.vote import StopVote

# --- Pipeline schedules of torch 2.13, adapted to the calls of TorchTitan 0.3.0 -------------------
# TorchTitan passes the parts of a batch; a schedule of torch 2.13 takes a whole batch and splits
# it. Without this, the first step with pipeline stages ends with ``Expecting 2 arg_mbs but got 1``.


class Microbatched:
    """A schedule that takes a batch in parts.

    Args:
        schedule: Schedule of torch, which would split the batch itself.
    """

    def __init__(self, schedule: Any) -> None:  # noqa: ANN401 - schedules have no public base
        self._schedule = schedule
        self._inputs: tuple[Sequence[Any], Sequence[Any]] = ([], [])
        self._targets: Sequence[Any] | None = None
        self._run = schedule._step_microbatches
        schedule._split_inputs = lambda *_: self._inputs
        schedule._step_microbatches = self._run_parts

    def __getattr__(self, name: str) -> object:
        return getattr(self._schedule, name)

    def step(self, **given: object) -> object:
        """Train on the parts of a batch."""
        return self._schedule.step(**self._taken(given))

    def eval(self, **given: object) -> object:
        """Compute the losses of the parts of a batch."""
        return self._schedule.eval(**self._taken(given))

    def _taken(self, given: dict[str, Any]) -> dict[str, Any]:
        keywords = given.pop("kwarg_mbs")
        # Only the first stage gets inputs.
        self._inputs = (given.pop("arg_mbs") or [()] * len(keywords), keywords)
        self._targets = given.pop("target_mbs")
        return given

    def _run_parts(
        self, inputs: object, keywords: object, _: object, *more: object, **others: object
    ) -> object:
        return self._run(inputs, keywords, self._targets, *more, **others)


def microbatched(schedule: Any) -> Any:  # noqa: ANN401
    """Return a schedule that takes the parts of a batch instead of a whole batch."""
    parameters = inspect.signature(schedule.step).parameters
    return schedule if "arg_mbs" in parameters else Microbatched(schedule)


# --- TorchTitan's trainer with a stop vote, so that a job that has to stop loses no step ----------


_log = logging.getLogger("ultrascale_training")
# Share of a collective's timeout after which the search for a missing worker begins. In the first
# step collectives begin late, as the model is compiled.
_HANG_SHARE, _FIRST_HANG_SHARE = 0.5, 0.9
_JUDGEMENT = "ultrascale/judgement"


class UltrascaleTrainer(Trainer):
    """Trainer that runs until the last step, or until the ranks agree to stop."""

    @dataclass(kw_only=True, slots=True)
    class Config(Trainer.Config):
        """TorchTitan's own sections, and a value of ours."""

        recipe: str = field(default="")
        """Name of the recipe."""

    ledger: RestartLedger | None
    lease: Lease | None

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        if self.parallel_dims.pp_enabled:
            self.pp_schedule = microbatched(self.pp_schedule)
            if config.validator.enable:
                self.validator.pp_schedule = self.pp_schedule

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
        """Values that a run keeps from start to start, by the option that sets each value."""
        config = cast(UltrascaleTrainer.Config, self.config)
        training, dims = config.training, self.parallel_dims
        rows = training.local_batch_size * dims.dp_replicate * dims.dp_shard
        return {
            "--recipe": config.recipe,
            "--training.seq_len": training.seq_len,
            "--training.global_batch_size": rows * self.gradient_accumulation_steps,
        }

    @property
    def sharers(self) -> int:
        """Number of ranks with different tokens."""
        dims = self.parallel_dims
        return dims.dp_replicate * dims.dp_shard * dims.cp

    def run(self, vote: StopVote, wish: Callable[[], bool], *, most: int | None = None) -> int:
        """Train, and return the exit status.

        Args:
            vote: Vote of all ranks, cast once a step.
            wish: Returns whether this process was told to stop.
            most: Steps after which to leave with success; None for no limit.

        Raises:
            TrainingError: A checkpoint cannot be read or written, or belongs to another run, or
                the loss is no longer a number.
            SuspectCheckpointError: The loss is not a number soon after a resume.
        """
        config = self.config
        self._take_output()
        self.saves.load()
        first = self.step
        _log.info("starts at step %d of %d", first, config.training.steps)
        self._begin_ledger()
        self._begin_reports(config.training.steps)
        # So a state that is not a number is noticed before it is saved.
        self.reports.also = self.saves.due
        batches = _timed_batches(self.batch_generator(self.dataloader), vote)
        stragglers, clock = Stragglers(), WorkClock(vote, self.device)
        vote.hang_seconds = config.comm.init_timeout_seconds * _FIRST_HANG_SHARE
        with config.profiler.build(
            global_step=self.step, base_folder=config.dump_folder
        ) as profiler:
            while self.should_continue_training() and (most is None or self.step - first < most):
                if vote.cast(wish()):
                    save = self.step > first or not self.saves.durable
                    with vote.resting():
                        return self._leave("stopped", save=save)
                self.step += 1
                self.gc_handler.run(self.step)
                clock.probe(self.step)
                try:
                    self.train_step(batches)
                except DataloaderExhaustedError:
                    self.step -= 1
                    _log.warning("the data end after step %d", self.step)
                    break
                except RuntimeError as error:
                    raise self._error_for_loss(error) from None
                with vote.resting():
                    self.saves.save(self.step, last_step=self.step == config.training.steps)
                self._report_published()
                if config.validator.enable and self.validator.should_validate(self.step):
                    with vote.resting(), self.reports.aside():
                        self.validator.validate(self.model_parts, self.step)
                profiler.step()
                stragglers.report(vote, self.reports.progress, self.step)
                if self.step - first == 1:
                    # Compilation is done: from now on a slow collective has lost a worker.
                    seconds = config.comm.train_timeout_seconds
                    self._set_timeouts(timedelta(seconds=seconds))
                    vote.hang_seconds = seconds * _HANG_SHARE
        with vote.resting():
            return self._leave("done", save=self.step > first)

    def _take_output(self) -> None:
        """Take the output before anything of it is cleaned up, or end where another run has it."""
        config = cast(Checkpointer.Config, self.config.checkpoint)
        self.lease = Lease(open_objects(config.store)) if dist.get_rank() == 0 else None
        self.saves.agree(lambda: self.lease and self.lease.take())

    def _begin_reports(self, steps: int) -> None:
        config = cast(Checkpointer.Config, self.config.checkpoint)
        tokens = self.ntokens_seen * self.sharers
        self.reports.begin(self.step, steps=steps, tokens=tokens, output=config.store)

    def _begin_ledger(self) -> None:
        config = cast(Checkpointer.Config, self.config.checkpoint)
        self.ledger = None
        if dist.get_rank() == 0:
            self.ledger = RestartLedger(open_objects(config.store))
        self.saves.agree(lambda: self.ledger and self._note_start(self.ledger))

    def _note_start(self, ledger: RestartLedger) -> None:
        nodes, saves = int(os.environ.get("GROUP_WORLD_SIZE", "1")), self.saves
        ledger.begin(nodes=nodes, step=self.step, durable=saves.durable, aside=saves.aside)

    def _leave(self, event: Literal["stopped", "done"], *, save: bool) -> int:
        if save:
            self.saves.save(self.step, last_step=True)
        self.saves.wait()
        self._report_published()
        # torchrun ends the other ranks of a node once a first rank leaves.
        dist.barrier()
        self.reports.event(event, step=self.step)
        if self.ledger is not None:
            self.ledger.end(event)
        if self.lease is not None:
            self.lease.release()
        _log.info("%s and saved at step %d", event, self.step)
        return STOPPED_EARLY if event == "stopped" else 0

    def _report_published(self) -> None:
        for step in self.saves.published:
            self.reports.event("checkpoint", step=step)
            self.saves.passed(step)
            if self.ledger is not None:
                self.ledger.saved(step)

    def _error_for_loss(self, error: RuntimeError) -> Exception:
        """Return the error for a loss that is not a number; other errors are returned unchanged."""
        # Only these words distinguish the error from other errors in TorchTitan 0.3.0.
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


def _timed_batches(batches: Iterator[Batch], vote: StopVote) -> Iterator[Batch]:
    """Yield ``batches``; the time in which this rank reads data counts as its own work."""
    while True:
        with vote.working():
            batch = next(batches)
        yield batch
