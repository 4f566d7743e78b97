"""Data loader for TorchTitan whose position is a single number at any number of ranks.

Sequence ``k`` of a run is the ``k``-th of a pseudo-random permutation that follows from the seed,
one permutation an epoch. Ranks share out the sequences of a batch in order, and the position counts
the sequences that all of them have taken together. So a checkpoint of 4 data-parallel ranks can be
resumed with 2 or 3: with the same global batch, every step still has the same sequences.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torchtitan.components.dataloader import BaseDataLoader
from torchtitan.components.tokenizer import BaseTokenizer

from ultrascale_training.errors import TrainingError
from ultrascale_training.fingerprint import Fingerprint, of_value
from ultrascale_training.order import Permutation
from ultrascale_training.titan.tokens import TokenData, read_token_index

Batch = tuple[dict[str, Tensor], Tensor]


class TokenLoader(BaseDataLoader):
    """Loader of batches of token files; it reads one batch ahead.

    Args:
        config: Configuration of TorchTitan's trainer or validator.
        dp_world_size: Number of data-parallel ranks.
        dp_rank: This rank among them.
        seq_len: Tokens of a sequence.
        local_batch_size: Sequences of a batch of this rank.
        others: Arguments that TorchTitan passes to every loader.

    Raises:
        TrainingError: ``dataset_path`` holds no token files for sequences of that length.
    """

    @dataclass(kw_only=True, slots=True)
    class Config(BaseDataLoader.Config):
        """Settings as TorchTitan's command line takes them."""

        infinite: bool = True
        """Begin a new epoch at the end of the data."""

        seed: int = 0
        """Seed of the order."""

        shuffle: bool = True
        """Take sequences in a pseudo-random order; else as they are stored."""

    def __init__(
        self,
        config: Config,
        *,
        dp_world_size: int,
        dp_rank: int,
        seq_len: int,
        local_batch_size: int,
        **others: object,
    ) -> None:
        directory = Path(config.dataset_path or "")
        self._data = TokenData(directory, read_token_index(directory), seq_len=seq_len)
        self._config, self._rank, self._world = config, dp_rank, dp_world_size
        self._rows = local_batch_size
        self._position = 0
        self._seq_len = seq_len
        batch = local_batch_size * dp_world_size
        if not config.infinite and len(self._data) < batch:
            raise TrainingError(
                f"--data: {str(directory)!r} has {len(self._data)} sequences, and a batch of all "
                f"ranks {batch}; lower --training.local_batch_size, or add text"
            )
        self._order: tuple[int, Permutation] | None = None

    @property
    def fingerprint(self) -> Fingerprint:
        """Fingerprints of data, tokenizer and order, for the comparison with a checkpoint."""
        index, config = self._data.index, self._config
        return {
            "data": index.fingerprint,
            "tokenizer": index.tokenizer,
            "order": of_value([len(self._data), self._seq_len, config.seed, config.shuffle]),
        }

    def __iter__(self) -> Iterator[Batch]:
        """Yield batches from the position on."""
        with ThreadPoolExecutor(1, thread_name_prefix="tokens") as thread:
            ahead: Future[Batch] | None = None
            while True:
                following = self._position + self._rows * self._world
                if not self._config.infinite and following > len(self._data):
                    return
                batch = ahead.result() if ahead else self._read(self._position)
                self._position = following
                ahead = thread.submit(self._read, following)
                yield batch

    def state_dict(self) -> dict[str, Any]:
        """Return the position, which all ranks share."""
        return {"position": self._position}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from the position of a checkpoint."""
        self._position = int(state_dict["position"])

    def _read(self, position: int) -> Batch:
        first = position + self._rank * self._rows
        rows = self._data.rows(self._number(first + row) for row in range(self._rows))
        return (
            {
                "input": torch.from_numpy(rows.inputs),
                "positions": torch.from_numpy(rows.positions),
            },
            torch.from_numpy(rows.labels),
        )

    def _number(self, place: int) -> int:
        epoch, place = divmod(place, len(self._data))
        if not self._config.shuffle:
            return place
        if self._order is None or self._order[0] != epoch:
            seed = (self._config.seed << 32) + epoch
            self._order = (epoch, Permutation(len(self._data), seed=seed))
        return self._order[1][place]


class NoTokenizer(BaseTokenizer):
    """Replacement for TorchTitan's tokenizer, which token files do not need."""

    @dataclass(kw_only=True, slots=True)
    class Config(BaseTokenizer.Config):
        """Settings: none."""

    def __init__(self, config: Config, **others: object) -> None:
        super().__init__()

    def encode(self, *args: object, **kwargs: object) -> list[int]:
        """Raise an error: text becomes tokens before the run."""
        raise NotImplementedError

    def decode(self, *args: object, **kwargs: object) -> str:
        """Raise an error: nothing reads text in a run."""
        raise NotImplementedError

    def get_vocab_size(self) -> int:
        """Raise an error: the index of the data has the size."""
        raise NotImplementedError
