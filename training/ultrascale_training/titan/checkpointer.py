"""Checkpoints of a TorchTitan run in this package's own store.

The tensors have TorchTitan's names, so TorchTitan's tools can read them. Values that the whole run
shares (step, position in the data, learning-rate schedule) are in the manifest, as the number of
ranks may differ at the next start.
"""

import logging
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol, cast

import torch.distributed.checkpoint as dcp
from torch import nn
from torchtitan.components.checkpointer.base import (
    OPTIMIZER,
    TRAIN_STATE,
    BaseCheckpointManager,
    ModelWrapper,
)
from torchtitan.tools import utils

from ultrascale_training import checkpoints, fingerprint
from ultrascale_training.agreement import agree, check_shared
from ultrascale_training.checkpoints import Checkpoint, DirectoryStore, NanGuard, Saver
from ultrascale_training.errors import TrainingError
from ultrascale_training.process_groups import host_group
from ultrascale_training.titan.loader import TokenLoader
from ultrascale_training.titan.weights import Weights

_log = logging.getLogger("ultrascale_training")
_TIMEOUT = timedelta(minutes=30)
_OPTIMIZER = f"{OPTIMIZER}."


class Run(Protocol):
    """Facts about the run that the trainer knows."""

    step: int
    ntokens_seen: int

    @property
    def identity(self) -> Mapping[str, object]:
        """Values that a run keeps from start to start, by the option that sets each value."""
        ...

    @property
    def sharers(self) -> int:
        """Number of ranks with different tokens."""
        ...


class Checkpointer(BaseCheckpointManager):
    """Checkpointer that saves in the background, and loads the newest sound checkpoint.

    Args:
        config: Configuration of the trainer.
        dataloader: Data loader whose position is saved.
        model_parts: Stages of the model on this rank.
        optimizers: Optimizers of the model's parameters.
        lr_schedulers: Schedulers of the optimizers.
        states: Mapping that holds the trainer.
        sd_adapter: Knows the model's names at Hugging Face.
        others: Arguments that TorchTitan passes to every manager.
    """

    @dataclass(kw_only=True, slots=True)
    class Config(BaseCheckpointManager.Config):
        """TorchTitan's own settings; we use ``interval`` alone."""

        store: str = ""
        """A folder that all nodes mount, or s3://bucket/prefix."""

        keep: int = 3
        """Number of newest checkpoints that stay."""

        memory_every: int = 0
        """Steps between checkpoints in the memory of HyperPod's nodes; 0 for none."""

        load: str | None = None
        """Weights to begin with: a folder of Hugging Face, or a checkpoint of ours."""

        accept_new_data: bool = False
        """Resume even if data, tokenizer or order differ from the checkpoint's."""

        initial_load_model_only: bool = False
        """Unused; set because TorchTitan warns of its own default."""

    def __init__(
        self,
        config: Config,
        *,
        dataloader: TokenLoader,
        model_parts: list[nn.Module],
        optimizers: Any,  # noqa: ANN401 - TorchTitan's containers have no common type
        lr_schedulers: Any,  # noqa: ANN401
        states: dict[str, Any],
        sd_adapter: Any,  # noqa: ANN401
        **others: object,
    ) -> None:
        self.enable = config.enable
        self.save_future = None
        self._config = config
        self._loader, self._schedulers = dataloader, lr_schedulers
        self._model, self._optimizers = ModelWrapper(model_parts), optimizers
        self._run = cast(Run, states[TRAIN_STATE])
        self._group = host_group(_TIMEOUT)
        self._weights = Weights(
            model_parts,
            sd_adapter,
            recipe=str(self._run.identity["--recipe"]),
            group=self._group,
        )
        self._store = checkpoints.open_store(
            f"{config.store}/checkpoints", keep=config.keep, memory=config.memory_every > 0
        )
        self._attempt = agree(self._group, lambda: uuid.uuid4().hex[:12])
        self._saver = Saver(
            self._store, group=self._group, attempt=self._attempt, device=utils.device_type
        )
        self._guard = NanGuard(self._store, None)
        self.durable = True

    @property
    def published(self) -> list[int]:
        """Steps of complete checkpoints that nobody has read yet; filled only on rank 0."""
        published, self._saver.published = self._saver.published, []
        return published

    @property
    def aside(self) -> Mapping[str, int]:
        """Steps of the durable checkpoints that were set aside, by name."""
        return {bad.name: bad.step for bad in self._store.durable.aside()}

    def agree(self, decide: Callable[[], object]) -> None:
        """Call ``decide`` on rank 0, and share its error.

        Raises:
            TrainingError: On every rank, the error that ``decide`` raised.
        """

        def decided() -> None:
            decide()

        agree(self._group, decided)

    def judge(self, step: int, loss: float) -> Exception:
        """Return the error for a loss that is not a number; only one rank may call this."""
        self._saver.wait()
        return self._guard.judge(step, loss)

    def passed(self, step: int) -> None:
        """Tell that steps up to ``step`` have numbers; only one rank may call this."""
        self._guard.passed(step)

    def export(self, folder: Path) -> None:
        """Write the weights for Hugging Face; a collective of all ranks, after the last step.

        Raises:
            TrainingError: The model has no names at Hugging Face.
        """
        self._weights.export(folder, companions=self._config.load)

    def due(self, step: int) -> bool:
        """Return whether a checkpoint, durable or in memory, is written after ``step``."""
        intervals = (self._config.interval, self._config.memory_every)
        return any(every > 0 and step % every == 0 for every in intervals)

    def _load(self, step: int = -1) -> bool:
        store = self._store
        agree(self._group, store.prepare)
        if isinstance(store.durable, DirectoryStore):
            check_shared(store.durable, self._group, name=self._attempt)
        size = checkpoints.state_bytes(self._state())
        agree(self._group, lambda: store.check_room_of_run(size))
        found = checkpoints.newest_sound(store, self._group)
        if found is not None:
            self._check_same(found)
            self._resume(found)
            self._guard = NanGuard(store, found)
            self.durable = found.durable
            return True
        if self._config.load is not None:
            self._weights.begin_with(self._config.load)
            return True
        return False

    def _check_same(self, found: Checkpoint) -> None:
        about = found.about
        mistakes = [
            f"{option}: {found.location} is of a run with {before!r}, got {now!r}; keep it, or "
            "name another --output-dir"
            for option, now in self._run.identity.items()
            if (before := about["identity"].get(option)) != now
        ]
        if not mistakes and not self._config.accept_new_data:
            parts = fingerprint.differences(about["fingerprint"], self._loader.fingerprint)
            mistakes = [
                line.replace("--data-dir", "--data")
                for line in fingerprint.refusal(parts, found.location)
            ]
        if mistakes:
            raise TrainingError("\n".join(mistakes))

    def _resume(self, found: Checkpoint) -> None:
        state, about = self._state(), found.about
        reader = checkpoints.shared_reader(self._store, found, self._group)
        dcp.load(state, storage_reader=reader, process_group=self._group)
        self._model.load_state_dict(state)
        self._optimizers.load_state_dict(
            {
                name.removeprefix(_OPTIMIZER): value
                for name, value in state.items()
                if name.startswith(_OPTIMIZER)
            }
        )
        self._schedulers.load_state_dict(about["schedule"])
        self._loader.load_state_dict(about["loader"])
        self._run.step = found.step
        self._run.ntokens_seen = about["tokens"] // self._run.sharers
        _log.info("resumes from %s", found.location)

    def _save(self, curr_step: int, last_step: bool = False) -> bool:
        self._saver.check()
        wanted = last_step or self.due(curr_step)
        if not wanted or self._saver.last_step == curr_step:
            return False
        durable = last_step or curr_step % self._config.interval == 0
        about = {
            "identity": dict(self._run.identity),
            "fingerprint": dict(self._loader.fingerprint),
            "schedule": self._schedulers.state_dict(),
            "loader": self._loader.state_dict(),
            "tokens": self._run.ntokens_seen * self._run.sharers,
        }
        self._saver.save(curr_step, self._state(), about, durable=durable)
        return True

    def _maybe_wait_for_staging(self) -> None:
        """Do nothing: a save returns once its copies are made."""

    def _wait_for_saving(self) -> None:
        self.wait()

    def wait(self) -> None:
        """Wait until the last save is published.

        Raises:
            TrainingError: The disk is full.
        """
        self._saver.wait()

    def _close(self) -> None:
        self._saver.close()

    def _state(self) -> dict[str, Any]:
        optimizer = self._optimizers.state_dict()
        return {
            **self._model.state_dict(),
            **{f"{_OPTIMIZER}{name}": value for name, value in optimizer.items()},
        }
