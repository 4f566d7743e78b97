"""Writes shards of examples in random order, however many there are."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ultrascale_bert.examples import Example, ExampleMaker
from ultrascale_bert.shards import Index, MadeBy, Shard, record_type, write_index

Records: TypeAlias = NDArray[np.void]


def records(examples: Sequence[Example], maker: ExampleMaker) -> Records:
    """Return ``examples`` as rows of a shard, padded with 0."""
    kind = record_type(maker.seq_len, maker.max_pred_len, maker.vocabulary.size)
    rows = np.zeros(len(examples), kind)
    rows["input_ids"] = maker.vocabulary.pad
    for row, example in zip(rows, examples, strict=True):
        length, masked = len(example.tokens), len(example.positions)
        row["input_ids"][:length] = example.tokens
        row["input_mask"][:length] = 1
        row["segment_ids"][:length] = example.segments
        row["masked_lm_positions"][:masked] = example.positions
        row["masked_lm_ids"][:masked] = example.masked
        row["next_sentence_labels"] = example.is_random_next
    return rows


class ShardWriter:
    """Deals rows out to shards at random and shuffles each shard at the end.

    Memory holds one shard at a time, and no document's order remains on disk.

    Args:
        directory: Folder of the dataset; the files of an earlier try are overwritten.
        shards: Number of shards.
    """

    def __init__(self, directory: Path, *, shards: int, maker: ExampleMaker, seed: int) -> None:
        self._directory = directory
        self._maker = maker
        self._drawer = np.random.default_rng(seed)
        self._paths = [directory / f"shard-{number:05d}.npy" for number in range(shards)]
        directory.mkdir(parents=True, exist_ok=True)
        for path in self._paths:
            _raw(path).unlink(missing_ok=True)

    def add(self, rows: Records) -> None:
        """Add rows."""
        chosen = self._drawer.integers(len(self._paths), size=len(rows))
        for number, path in enumerate(self._paths):
            mine = rows[chosen == number]
            if len(mine):
                with _raw(path).open("ab") as file:
                    file.write(mine.tobytes())

    def finish(self, made_by: MadeBy) -> Index:
        """Write the shards and, last of all, the index."""
        maker = self._maker
        kind = record_type(maker.seq_len, maker.max_pred_len, maker.vocabulary.size)
        shards: list[Shard] = []
        for path in self._paths:
            raw = _raw(path)
            rows = np.fromfile(raw, kind) if raw.exists() else np.zeros(0, kind)
            self._drawer.shuffle(rows)
            with path.open("wb") as file:
                np.save(file, rows, allow_pickle=False)
                file.flush()
                os.fsync(file.fileno())
            raw.unlink(missing_ok=True)
            shards.append(Shard(file=path.name, rows=len(rows)))
        index = Index(
            seq_len=maker.seq_len,
            max_pred_len=maker.max_pred_len,
            vocabulary=maker.vocabulary.size,
            shards=shards,
            made_by=made_by,
        )
        write_index(self._directory, index)
        return index


def _raw(path: Path) -> Path:
    return path.with_suffix(".rows.partial")
