"""Datasets of tokenized sentence pairs: our shards and those of the AWS tutorial.

Our shard is one NumPy file of fixed-size records, all fields of a sample side by side. Mapped into
memory, a micro-batch is one contiguous read, and pages are shared by the workers of a node. The
tutorial's shard is an HDF5 file with a dataset for each field. A directory holds shards of one kind
and ``dataset.json``, which is written last: without it the directory may be half a dataset. A
directory of HDF5 files that somebody unpacked by hand is read without it.
"""

import json
import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ultrascale_training.errors import TrainingError
from ultrascale_training.order import Slice

INDEX = "dataset.json"
MadeBy: TypeAlias = Mapping[str, str | int | Sequence[str]]
"""Parameters with which a dataset was made."""
HDF5_SUFFIXES = (".hdf5", ".h5")
# The keys that NVIDIA's create_pretraining_data.py, and the tutorial after it, give to the fields.
# Source: https://github.com/NVIDIA/DeepLearningExamples/tree/master/PyTorch/LanguageModeling/BERT
FIELDS = (
    "input_ids",
    "input_mask",
    "segment_ids",
    "masked_lm_positions",
    "masked_lm_ids",
    "next_sentence_labels",
)
_FORMAT = 1
_OPEN_SHARDS = 64


class Rows(NamedTuple):
    """Some rows of a shard, field by field in the order of `FIELDS`, as 64-bit integers."""

    input_ids: NDArray[np.int64]
    input_mask: NDArray[np.int64]
    segment_ids: NDArray[np.int64]
    masked_lm_positions: NDArray[np.int64]
    masked_lm_ids: NDArray[np.int64]
    next_sentence_labels: NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Shard:
    """One file of a dataset and its number of rows."""

    file: str
    rows: int


@dataclass(frozen=True, kw_only=True)
class Index:
    """Content of ``dataset.json``."""

    seq_len: int  # Tokens of a row, padding included
    max_pred_len: int  # Places for masked tokens in a row
    vocabulary: int  # One more than the largest token id
    shards: Sequence[Shard]
    made_by: MadeBy = field(default_factory=dict)  # Arguments that made the dataset, for people

    @property
    def rows(self) -> int:
        """Rows of all shards."""
        return sum(shard.rows for shard in self.shards)


def record_type(seq_len: int, max_pred_len: int, vocabulary: int) -> np.dtype[np.void]:
    """Return the type of one row of our shards; 593 bytes for BERT's phase 1."""
    token = np.uint16 if vocabulary <= 1 << 16 else np.uint32
    return np.dtype(
        [
            ("input_ids", token, seq_len),
            ("input_mask", np.uint8, seq_len),
            ("segment_ids", np.uint8, seq_len),
            ("masked_lm_positions", np.uint16, max_pred_len),
            ("masked_lm_ids", token, max_pred_len),
            ("next_sentence_labels", np.uint8),
        ]
    )


def write_index(directory: Path, index: Index) -> None:
    """Write ``dataset.json`` atomically; from then on the directory is a dataset."""
    partial = directory / f"{INDEX}.partial"
    with partial.open("w") as file:
        json.dump({"format": _FORMAT, **asdict(index)}, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(directory / INDEX)


def read_index(directory: Path) -> Index:
    """Return the index of a dataset.

    Raises:
        TrainingError: There is no dataset in ``directory``, or one of a later format.
    """
    path = directory / INDEX
    if path.exists():
        return parse_index(path.read_text(), source=str(path))
    if not any(file.suffix in HDF5_SUFFIXES for file in _files(directory)):
        raise TrainingError(
            f"{directory}: neither {INDEX} nor HDF5 shards are here; "
            "run python -m ultrascale_bert.prepare_data, or correct --data-dir"
        )
    return index_hdf5(directory)


def parse_index(text: str, *, source: str) -> Index:
    """Return the index that ``text``, the content of ``source``, describes.

    Raises:
        TrainingError: It is of another format.
    """
    content = json.loads(text)
    if content.pop("format") != _FORMAT:
        raise TrainingError(f"{source}: made by a later release; update the training image")
    shards = [Shard(**shard) for shard in content.pop("shards")]
    return Index(shards=shards, **content)


def index_hdf5(directory: Path) -> Index:
    """Return the index of the HDF5 shards in ``directory``, from their headers alone.

    Raises:
        TrainingError: A shard lacks a field or differs from the first in shape.
    """
    # The tutorial's model is the uncased BERT; its shards do not say so.
    vocabulary = 30522
    shards: list[Shard] = []
    shapes: set[tuple[int, int]] = set()
    for path in _hdf5_shards(directory):
        with _h5py().File(path, "r") as file:
            missing = [name for name in FIELDS if name not in file]
            if missing:
                raise TrainingError(f"{path}: not a shard for BERT, it lacks {', '.join(missing)}")
            rows, seq_len = file["input_ids"].shape
            shapes.add((seq_len, file["masked_lm_positions"].shape[1]))
        shards.append(Shard(file=str(path.relative_to(directory)), rows=rows))
    if len(shapes) > 1:
        raise TrainingError(
            f"{directory}: shards of different shapes {sorted(shapes)} (sequence, predictions); "
            "keep the shards of one phase in a directory"
        )
    ((seq_len, max_pred_len),) = shapes
    return Index(
        seq_len=seq_len,
        max_pred_len=max_pred_len,
        vocabulary=vocabulary,
        shards=shards,
    )


class _OpenShard(Protocol):
    def read(self, rows: slice) -> Rows: ...

    def close(self) -> None: ...


class Dataset:
    """Reads slices of a dataset; keeps the files of the last slices open.

    Args:
        directory: Folder of the shards.
        index: Result of `read_index`, perhaps on another worker.
    """

    def __init__(self, directory: Path, index: Index) -> None:
        self._directory = directory
        self.index = index
        self._open: OrderedDict[int, _OpenShard] = OrderedDict()

    def read(self, part: Slice) -> Rows:
        """Return the rows of ``part``.

        Raises:
            TrainingError: A shard is missing or shorter than its index says.
        """
        shard = self._shard(part.shard)
        rows = shard.read(slice(part.start, part.start + part.count))
        if len(rows.input_ids) != part.count:
            raise TrainingError(
                f"{self._path(part.shard)}: ends before row {part.start + part.count}, although "
                f"{INDEX} promises {self.index.shards[part.shard].rows} rows; prepare it again"
            )
        return rows

    def _path(self, number: int) -> Path:
        return self._directory / self.index.shards[number].file

    def _shard(self, number: int) -> _OpenShard:
        if number in self._open:
            self._open.move_to_end(number)
            return self._open[number]
        if len(self._open) >= _OPEN_SHARDS:
            self._open.popitem(last=False)[1].close()
        path = self._path(number)
        if not path.exists():
            raise TrainingError(f"{path}: this shard of the dataset is missing; prepare it again")
        opened: _OpenShard = _Hdf5(path) if path.suffix in HDF5_SUFFIXES else _Records(path)
        self._open[number] = opened
        return opened


class _Records:
    def __init__(self, path: Path) -> None:
        try:
            self._rows = np.load(path, mmap_mode="r", allow_pickle=False)
        except (ValueError, EOFError) as error:
            # Its header is damaged, or promises more bytes than the file has.
            raise TrainingError(f"{path}: is no whole shard ({error}); copy it again") from None

    def read(self, rows: slice) -> Rows:
        read = np.array(self._rows[rows])
        return Rows(*(read[name].astype(np.int64) for name in FIELDS))

    def close(self) -> None:
        """Leave the mapping to the garbage collector: arrays may still refer to it."""


class _Hdf5:
    def __init__(self, path: Path) -> None:
        # Workers of many nodes read it at once, and locks are of no use to readers.
        self._file = _h5py().File(path, "r", locking=False)

    def read(self, rows: slice) -> Rows:
        return Rows(*(np.asarray(self._file[name][rows], dtype=np.int64) for name in FIELDS))

    def close(self) -> None:
        self._file.close()


def _hdf5_shards(directory: Path) -> Sequence[Path]:
    """Return the shards to train on: where some have that in their names, the others are tests.

    Source:
    https://github.com/aws-neuron/aws-neuron-samples/blob/master/torch-neuronx/training/dp_bert_hf_pretrain/dp_bert_large_hf_pretrain_hdf5.py
    """
    shards = sorted(file for file in _files(directory) if file.suffix in HDF5_SUFFIXES)
    return [shard for shard in shards if "_training_" in shard.name] or shards


def _files(directory: Path) -> Sequence[Path]:
    return list(directory.iterdir()) if directory.is_dir() else []


def _h5py() -> Any:
    try:
        import h5py
    except ModuleNotFoundError:
        raise TrainingError(
            "the dataset is HDF5, which the package h5py reads; install it"
        ) from None
    return h5py
