"""Token files: documents as one memory-mapped stream of token ids.

A folder holds shards and an index, ``tokens.json``. A shard has a file of token ids
(``tokens-00000.npy``) and a file with the places where its documents end (``documents-00000.npy``).
No token id says where a document ends: the end-of-document token may occur inside one. A sequence
of length ``n`` is ``n + 1`` tokens of a shard, so any worker reads any sequence by one access to
each file, with any number of workers.
"""

import hashlib
import json
import os
import resource
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ultrascale_training.errors import TrainingError

INDEX = "tokens.json"
# Format 1 had no places where documents end.
_FORMAT = 2
# 1 GiB of 32-bit tokens.
SHARD_TOKENS = 1 << 28
# Each mapped file uses one of the 65,530 mappings that Linux allows a process.
# Source: https://docs.kernel.org/admin-guide/sysctl/vm.html#max-map-count A mapping also keeps a
# file descriptor.
# Source: https://docs.python.org/3/library/mmap.html#mmap.mmap
_OPEN_SHARDS = 1 << 13
# Shards whose bytes are read at a start, by a worker and by all: seconds, not terabytes.
_READ_BY_EACH, _READ_BY_ALL = 2, 256


@dataclass(frozen=True, kw_only=True)
class TokenShard:
    """A shard: token ids, and the documents that they form."""

    file: str  # File of the token ids
    tokens: int
    sha256: str  # SHA-256 of all its files, which distinguishes datasets of the same shape
    # File with a 64-bit integer for each document, the number of tokens up to its end; the last
    # integer is ``tokens``
    documents: str

    @property
    def files(self) -> Sequence[str]:
        """Names of the shard's files."""
        return self.file, self.documents


@dataclass(frozen=True, kw_only=True)
class TokenIndex:
    """Content of ``tokens.json``."""

    vocabulary: int  # One more than the largest token id that the tokenizer has
    end: int  # Token id that ends every document
    tokenizer: str  # SHA-256 of the tokenizer's file
    shards: Sequence[TokenShard]

    @property
    def tokens(self) -> int:
        """Tokens of all shards."""
        return sum(shard.tokens for shard in self.shards)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the tokens, their order and the bounds of documents."""
        content = json.dumps([self.end, [shard.sha256 for shard in self.shards]])
        return hashlib.sha256(content.encode()).hexdigest()


def token_type(vocabulary: int) -> np.dtype[np.unsignedinteger]:
    """Return the smallest integer type that can hold ``vocabulary`` token ids."""
    return np.dtype(np.uint16 if vocabulary <= 1 << 16 else np.uint32)


def read_token_index(directory: Path) -> TokenIndex:
    """Return the index of a folder of token files.

    Raises:
        TrainingError: There is no index, it has another format, or a file of it is missing. Only
            the first
            worker looks for files: thousands of workers that look for thousands of files would keep
            the file system's metadata server busy for many minutes.
    """
    path = directory / INDEX
    if not path.is_file():
        raise TrainingError(
            f"--data: no {INDEX} is there, got {str(directory)!r}; make one of text or JSON lines "
            "by python -m ultrascale_training.titan.prepare, or correct --data"
        )
    content = json.loads(path.read_text())
    form = content.pop("format", None)
    if form == 1:
        raise TrainingError(
            f"--data: {path} is of format 1, which does not hold where documents end; prepare the "
            "data again, and let a run that has checkpoints go on by --accept-new-data"
        )
    if form != _FORMAT:
        raise TrainingError(
            f"--data: {path} is of format {form}, and this program reads {_FORMAT}; update the "
            "training image"
        )
    stated = content.pop("shards")
    # Earlier releases marked the tokens of prompts; text alone has none.
    if any([shard.pop("learned", None) for shard in stated]):
        raise TrainingError(
            f"--data: {path} is of prompts, which are not learned; prepare text, or fine-tune by "
            "the recipe sft"
        )
    shards = [TokenShard(**shard) for shard in stated]
    sought = shards if os.environ.get("RANK", "0") == "0" else ()
    files = (name for shard in sought for name in shard.files)
    missing = [name for name in files if not (directory / name).is_file()]
    if missing:
        raise TrainingError(
            f"--data: {len(missing)} files of {path} are missing, the first is {missing[0]}; "
            "copy them, or prepare the data again"
        )
    return TokenIndex(**content, shards=shards)


def check_shards(directory: Path) -> TokenIndex:
    """Return the index of a folder; checks this worker's share of its shards.

    The sizes of all shards are checked, and the sums of the first ones.

    Raises:
        TrainingError: A shard is not as it was written.
    """
    index = read_token_index(directory)
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    for number in range(rank, len(index.shards), world):
        # The first worker names all files that are missing.
        with suppress(FileNotFoundError):
            _map_shard(directory, index.shards[number])
            if number < min(_READ_BY_EACH * world, _READ_BY_ALL):
                verify_shard(directory, index.shards[number])
    return index


def verify_shard(directory: Path, shard: TokenShard) -> None:
    """Compare the bytes of a shard with its sum.

    Raises:
        TrainingError: They differ.
    """
    digest = hashlib.sha256()
    for name in shard.files:
        with (directory / name).open("rb") as file:
            hashlib.file_digest(file, lambda: digest)
    if digest.hexdigest() != shard.sha256:
        raise TrainingError(
            f"--data: {', '.join(shard.files)} of {str(directory)!r} differ from what was written, "
            f"by their SHA-256 in {INDEX}; copy them again, or prepare the data again"
        )


class TokenWriter:
    """Writer of documents as token files; only `close` makes the folder a dataset.

    Args:
        directory: An empty or new folder.
        vocabulary: One more than the largest token id that the tokenizer has.
        end: Token id that ends a document.
        tokenizer: SHA-256 of the tokenizer's file.
        shard_tokens: Tokens after which a shard ends, once its last document is complete.
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
        self._written: list[Path] = []
        self._begin()

    def add(self, tokens: Sequence[int]) -> None:
        """Append a document and an end token; the document may hold end tokens itself."""
        kind = token_type(self._vocabulary)
        self._tokens.append(np.array([*tokens, self._end], dtype=kind))
        self._count += len(tokens) + 1
        self._ends.append(self._count)
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
        self._written += [partial, self._directory / INDEX]
        with partial.open("w") as file:
            json.dump({"format": _FORMAT, **asdict(index)}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self._directory / INDEX)
        return index

    def discard(self) -> None:
        """Delete the written files, so that the folder is empty again."""
        for path in self._written:
            # The last file may not exist.
            path.unlink(missing_ok=True)
        self._shards, self._written = [], []
        self._begin()

    def _begin(self) -> None:
        self._tokens: list[NDArray[np.unsignedinteger]] = []
        self._ends: list[int] = []
        self._count = 0

    def _flush(self) -> None:
        if not self._count:
            return
        number = f"{len(self._shards):05d}.npy"
        file, documents = f"tokens-{number}", f"documents-{number}"
        digest = hashlib.sha256()
        for name, content in (
            (file, np.concatenate(self._tokens)),
            (documents, np.array(self._ends, dtype=np.int64)),
        ):
            path = self._directory / name
            self._written.append(path)
            np.save(path, content)
            digest.update(path.read_bytes())
        self._shards.append(
            TokenShard(
                file=file, tokens=self._count, sha256=digest.hexdigest(), documents=documents
            )
        )
        self._begin()


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Sequences in the form that a language model takes.

    Its arrays have the shape (rows, sequence length).
    """

    inputs: NDArray[np.int64]
    # Position of each token in its document, or in the sequence's part of it
    positions: NDArray[np.int64]
    # Token that follows in the document, or `IGNORED` at its end
    labels: NDArray[np.int64]


# Default of torch.nn.functional.cross_entropy, and value of TorchTitan.
IGNORED = -100


# Mapped files of a shard: its tokens, and the ends of its documents.
_MappedShard = tuple[NDArray[np.unsignedinteger], NDArray[np.int64]]


class TokenData:
    """Sequences of a folder of token files, memory-mapped.

    Args:
        directory: Folder of the shards.
        index: Index from `read_token_index`.
        seq_len: Tokens of a sequence. Remaining tokens at the end of a shard are not used.

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
        self._most_open = _OPEN_SHARDS
        descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if descriptors != resource.RLIM_INFINITY:
            # Two files a shard; most descriptors are left for everything else.
            self._most_open = min(_OPEN_SHARDS, max(1, descriptors // 8))
        self._open: dict[int, _MappedShard] = {}

    def __len__(self) -> int:
        """Return the number of sequences."""
        return self._ends[-1] if self._ends else 0

    def rows(self, numbers: Iterable[int]) -> Rows:
        """Return the sequences with these numbers."""
        read, firsts = zip(*map(self._read, numbers), strict=True)
        tokens, begins = np.stack(read).astype(np.int64), np.stack(firsts)
        inputs, labels = tokens[:, :-1], tokens[:, 1:].copy()
        # The first token of a document does not follow from the previous document.
        labels[begins[:, 1:]] = IGNORED
        return Rows(inputs=inputs.copy(), positions=_positions(begins[:, :-1]), labels=labels)

    def _read(self, number: int) -> tuple[NDArray[np.unsignedinteger], NDArray[np.bool_]]:
        """Return a sequence's tokens and the next, and which of them begin documents."""
        place = bisect_right(self._ends, number)
        first = self._ends[place - 1] if place else 0
        start = (number - first) * self._seq_len
        last = start + self._seq_len
        tokens, ends = self._shard(place)
        begins = np.zeros(self._seq_len + 1, dtype=np.bool_)
        # A document begins where the previous document ends.
        low, high = np.searchsorted(ends, [start, last], side="right")
        begins[ends[low:high] - start] = True
        return np.array(tokens[start : last + 1]), begins

    def _shard(self, number: int) -> _MappedShard:
        if number not in self._open:
            if len(self._open) >= self._most_open:
                del self._open[next(iter(self._open))]
            self._open[number] = _map_shard(self._directory, self.index.shards[number])
        return self._open[number]


def _map_shard(directory: Path, shard: TokenShard) -> _MappedShard:
    # A header may be damaged, or promise more bytes than the file has.
    with suppress(ValueError, EOFError):
        tokens, ends = (np.load(directory / name, mmap_mode="r") for name in shard.files)
        if len(tokens) == int(ends[-1:].sum()) == shard.tokens:
            return tokens, ends
    raise TrainingError(
        f"--data: {', '.join(shard.files)} do not hold the {shard.tokens} tokens that {INDEX} "
        "promises; copy them again, or prepare the data again"
    )


def _positions(begins: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return each token's position in its document, given the first tokens of documents."""
    places = np.broadcast_to(np.arange(begins.shape[1], dtype=np.int64), begins.shape)
    return places - np.maximum.accumulate(np.where(begins, places, 0), axis=1)
