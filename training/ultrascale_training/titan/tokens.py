"""Token files: documents as one memory-mapped stream of token ids.

A folder holds shards of token ids (``tokens-00000.npy``), beside each, where some tokens are only
context, one of flags that says which ones are learned (``learned-00000.npy``), and an index,
``tokens.json``. Every document ends with the end-of-document token. A sequence of length ``n`` is
``n + 1`` tokens of a shard, so any worker reads any sequence by one access, at any world size.
"""

import hashlib
import json
import os
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ultrascale_training.errors import TrainingError

INDEX = "tokens.json"
_FORMAT = 1
# 1 GiB of 32-bit tokens.
SHARD_TOKENS = 1 << 28
# Each file that is mapped takes one of the 65,530 mappings that Linux gives a process. Source:
# https://docs.kernel.org/admin-guide/sysctl/vm.html#max-map-count
_OPEN_SHARDS = 1 << 14


@dataclass(frozen=True, kw_only=True)
class TokenShard:
    """One file of token ids.

    Attributes:
        sha256: Of the file, so that another dataset of the same shape is told apart.
        learned: File of one byte a token, 0 where a token is context only; None if all are
            learned.
    """

    file: str
    tokens: int
    sha256: str
    learned: str | None = None


@dataclass(frozen=True, kw_only=True)
class TokenIndex:
    """Content of ``tokens.json``.

    Attributes:
        vocabulary: One more than the largest token id that the tokenizer has.
        end: Token id that ends every document.
        tokenizer: SHA-256 of the tokenizer's file.
    """

    vocabulary: int
    end: int
    tokenizer: str
    shards: Sequence[TokenShard]

    @property
    def tokens(self) -> int:
        """Tokens of all shards."""
        return sum(shard.tokens for shard in self.shards)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the tokens and their order."""
        content = json.dumps([self.end, [shard.sha256 for shard in self.shards]])
        return hashlib.sha256(content.encode()).hexdigest()


def token_type(vocabulary: int) -> np.dtype[np.unsignedinteger]:
    """Return the smallest type of ``vocabulary`` token ids."""
    return np.dtype(np.uint16 if vocabulary <= 1 << 16 else np.uint32)


def read_token_index(directory: Path) -> TokenIndex:
    """Return the index of a folder of token files.

    Raises:
        TrainingError: There is none, it is of another format, or, on the first worker, a file of it
            is missing: thousands of workers that look for thousands of files would keep the file
            system's metadata server busy for many minutes.
    """
    path = directory / INDEX
    if not path.is_file():
        raise TrainingError(
            f"--data: no {INDEX} is there, got {str(directory)!r}; make one of text or JSON lines "
            "by python -m ultrascale_training.titan.prepare, or correct --data"
        )
    content = json.loads(path.read_text())
    if content.pop("format", None) != _FORMAT:
        raise TrainingError(f"--data: {path} is of another format; update the training image")
    shards = [TokenShard(**shard) for shard in content.pop("shards")]
    sought = shards if os.environ.get("RANK", "0") == "0" else ()
    missing = [shard.file for shard in sought if not (directory / shard.file).is_file()]
    if missing:
        raise TrainingError(
            f"--data: {len(missing)} shards of {path} are missing, the first is {missing[0]}; "
            "copy them, or prepare the data again"
        )
    return TokenIndex(**content, shards=shards)


class TokenWriter:
    """Writes documents as token files; `close` makes the folder a dataset.

    Args:
        directory: An empty or new folder.
        vocabulary: Token ids that the tokenizer has.
        end: Token id that ends a document.
        tokenizer: SHA-256 of the tokenizer's file.
        shard_tokens: Tokens after which a shard ends, with the document that it holds then.
    """

    def __init__(
        self,
        directory: Path,
        *,
        vocabulary: int,
        end: int,
        tokenizer: str,
        shard_tokens: int = SHARD_TOKENS,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise TrainingError(f"--output: holds files, got {str(directory)!r}; name a new folder")
        self._directory = directory
        self._vocabulary, self._end, self._tokenizer = vocabulary, end, tokenizer
        self._limit = shard_tokens
        self._shards: list[TokenShard] = []
        self._tokens: list[NDArray[np.unsignedinteger]] = []
        self._learned: list[NDArray[np.uint8]] = []
        self._count = 0
        self._some_context = False

    def add(self, tokens: Sequence[int], learned: Sequence[bool] | None = None) -> None:
        """Append a document, without its end token; ``learned`` of each token, None for all."""
        kind = token_type(self._vocabulary)
        self._tokens.append(np.array([*tokens, self._end], dtype=kind))
        flags = np.ones(len(tokens) + 1, dtype=np.uint8)
        if learned is not None:
            flags[:-1] = learned
            self._some_context = True
        self._learned.append(flags)
        self._count += len(tokens) + 1
        if self._count >= self._limit:
            self._flush()

    def close(self) -> TokenIndex:
        """Write the last shard and the index.

        Raises:
            TrainingError: No document was added.
        """
        self._flush()
        if not self._shards:
            raise TrainingError("--input: no document is in it; name files that hold text")
        index = TokenIndex(
            vocabulary=self._vocabulary,
            end=self._end,
            tokenizer=self._tokenizer,
            shards=self._shards,
        )
        partial = self._directory / f"{INDEX}.partial"
        with partial.open("w") as file:
            json.dump({"format": _FORMAT, **asdict(index)}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self._directory / INDEX)
        return index

    def _flush(self) -> None:
        if not self._count:
            return
        number = len(self._shards)
        tokens = self._directory / f"tokens-{number:05d}.npy"
        np.save(tokens, np.concatenate(self._tokens))
        digest = hashlib.sha256(tokens.read_bytes())
        learned = None
        if self._some_context:
            learned = self._directory / f"learned-{number:05d}.npy"
            np.save(learned, np.concatenate(self._learned))
            digest.update(learned.read_bytes())
        self._shards.append(
            TokenShard(
                file=tokens.name,
                tokens=self._count,
                sha256=digest.hexdigest(),
                learned=learned and learned.name,
            )
        )
        self._tokens, self._learned, self._count = [], [], 0
        self._some_context = False


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Sequences as a language model wants them; arrays of shape (rows, sequence length).

    Attributes:
        positions: Of each token in its document.
        labels: Token that follows, or `IGNORED` where none is learned.
    """

    inputs: NDArray[np.int64]
    positions: NDArray[np.int64]
    labels: NDArray[np.int64]


# Of torch.nn.functional.cross_entropy, and of TorchTitan.
IGNORED = -100


class TokenData:
    """Sequences of a folder of token files, memory-mapped.

    Args:
        directory: Where the shards are.
        index: As `read_token_index` returned it.
        seq_len: Tokens of a sequence. What is left at the end of a shard is not used.

    Raises:
        TrainingError: No shard holds a sequence of that length.
    """

    def __init__(self, directory: Path, index: TokenIndex, *, seq_len: int) -> None:
        self._directory, self.index, self._seq_len = directory, index, seq_len
        self._ends = list(accumulate((shard.tokens - 1) // seq_len for shard in index.shards))
        if not len(self):
            raise TrainingError(
                f"--data: no shard of {str(directory)!r} has the {seq_len + 1} tokens of a "
                "sequence; lower --training.seq_len, or add text"
            )
        self._open: dict[int, tuple[NDArray[np.unsignedinteger], NDArray[np.uint8] | None]] = {}

    def __len__(self) -> int:
        """Return the number of sequences."""
        return self._ends[-1] if self._ends else 0

    def rows(self, numbers: Iterable[int]) -> Rows:
        """Return the sequences with these numbers."""
        pairs = [self._read(number) for number in numbers]
        tokens = np.stack([tokens for tokens, _ in pairs]).astype(np.int64)
        learned = np.stack([learned for _, learned in pairs])
        inputs, labels = tokens[:, :-1], tokens[:, 1:].copy()
        # The first token of a document does not follow from the one before.
        ends = inputs == self.index.end
        labels[ends | (learned[:, 1:] == 0)] = IGNORED
        return Rows(inputs=inputs.copy(), positions=_positions(ends), labels=labels)

    def _read(self, number: int) -> tuple[NDArray[np.unsignedinteger], NDArray[np.uint8]]:
        shard = bisect_right(self._ends, number)
        first = self._ends[shard - 1] if shard else 0
        start = (number - first) * self._seq_len
        where = slice(start, start + self._seq_len + 1)
        tokens, learned = self._shard(shard)
        row = np.array(tokens[where])
        if len(row) != self._seq_len + 1:
            raise TrainingError(
                f"--data: {self.index.shards[shard].file} ends before token {where.stop}, although "
                f"{INDEX} promises {self.index.shards[shard].tokens}; prepare the data again"
            )
        flags = np.ones(len(row), dtype=np.uint8) if learned is None else np.array(learned[where])
        return row, flags

    def _shard(self, number: int) -> tuple[NDArray[np.unsignedinteger], NDArray[np.uint8] | None]:
        if number not in self._open:
            if len(self._open) >= _OPEN_SHARDS:
                del self._open[next(iter(self._open))]
            shard = self.index.shards[number]
            learned = None
            if shard.learned is not None:
                learned = np.load(self._directory / shard.learned, mmap_mode="r")
            self._open[number] = (np.load(self._directory / shard.file, mmap_mode="r"), learned)
        return self._open[number]


def _positions(ends: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return each token's position in its document, given where documents end."""
    places = np.broadcast_to(np.arange(ends.shape[1], dtype=np.int64), ends.shape)
    starts = np.zeros(ends.shape, dtype=np.int64)
    starts[:, 1:] = np.where(ends[:, :-1], places[:, 1:], 0)
    return places - np.maximum.accumulate(starts, axis=1)
