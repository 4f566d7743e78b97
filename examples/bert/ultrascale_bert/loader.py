"""Reads this worker's part of each step, one step ahead of the training."""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch

from ultrascale_bert.model import Batch
from ultrascale_bert.shards import Dataset
from ultrascale_training.order import Order, share


@dataclass(frozen=True, kw_only=True)
class MicroBatch:
    """A micro-batch on the host."""

    # Its place in the global batch; places from the number of micro-batches on are those of micro-
    # batches without weight, which only keep the workers in step.
    number: int
    batch: Batch


@dataclass(frozen=True, kw_only=True)
class Part:
    """One worker's part of a step."""

    step: int
    micro_batches: Sequence[MicroBatch]
    masked: int  # Masked tokens in it


class Loader:
    """Yields the parts of consecutive steps.

    Args:
        order: Which rows make up a step.
        micro_batches: Micro-batches of a global batch.
        step: The first step that `next` returns.
        until: The step before which to stop reading ahead.
    """

    def __init__(
        self,
        dataset: Dataset,
        order: Order,
        *,
        micro_batches: int,
        rank: int,
        world: int,
        step: int,
        until: int,
    ) -> None:
        self._dataset = dataset
        self._order = order
        self._micro_batches = micro_batches
        self._mine = share(micro_batches, rank=rank, world=world)
        self._first_filler = micro_batches + rank * len(self._mine)
        self._until = until
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="loader")
        self._ahead: Future[Part] | None = None
        self._read_ahead(step)

    def next(self) -> Part:
        """Return the part of the next step.

        Raises:
            TrainingError: A shard is missing or damaged.
        """
        if self._ahead is None:
            raise StopIteration
        part = self._ahead.result()
        self._read_ahead(part.step + 1)
        return part

    def close(self) -> None:
        """Stop reading."""
        self._thread.shutdown(cancel_futures=True)

    def _read_ahead(self, step: int) -> None:
        self._ahead = self._thread.submit(self._read, step) if step < self._until else None

    def _read(self, step: int) -> Part:
        micro_batches = [
            self._micro_batch(step, number, filler=self._first_filler + place)
            for place, number in enumerate(self._mine)
        ]
        masked = sum(_masked(micro_batch.batch) for micro_batch in micro_batches)
        return Part(step=step, micro_batches=micro_batches, masked=masked)

    def _micro_batch(self, step: int, number: int | None, *, filler: int) -> MicroBatch:
        rows = self._dataset.read(self._order.slice_at(step, number or 0))
        weights = np.full(len(rows.input_ids), 0.0 if number is None else 1.0, dtype=np.float32)
        tensors = [torch.from_numpy(field) for field in (*rows, weights)]
        tensors[-2] = tensors[-2].reshape(-1)
        return MicroBatch(number=filler if number is None else number, batch=Batch(*tensors))


def _masked(batch: Batch) -> int:
    return int(((batch.masked_positions != 0).sum(1) * batch.weights).sum())
