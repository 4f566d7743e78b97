"""Order of rows: the seed and the step alone determine the rows of a step.

The rows of a dataset are cut into slices of one micro-batch each. A step takes the next ``K``
slices of a pseudo-random permutation, ``K`` being the micro-batches of a global batch, and workers
share them out. So the number of workers may change between two steps, and every step still has the
same samples in the same micro-batches; the order as a whole is never stored or read.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

_ROUNDS = 6
_WORD = (1 << 64) - 1


@dataclass(frozen=True, kw_only=True)
class Slice:
    """``count`` rows of one shard from ``start`` on."""

    shard: int
    start: int
    count: int


class Permutation:
    """A pseudo-random permutation of ``range(size)`` that needs no memory.

    A Feistel network over the next even number of bits is applied until its result is in range. It
    is our own code because NumPy does not promise the same numbers in every version
    (https://numpy.org/neps/nep-0019-rng-policy.html), and a resumed run may use another image.
    """

    def __init__(self, size: int, *, seed: int) -> None:
        self._size = size
        self._half = max(1, ((size - 1).bit_length() + 1) // 2)
        self._keys = [_mix(_mix(seed) + each) for each in range(_ROUNDS)]

    def __getitem__(self, index: int) -> int:
        """Return the permutation's number at ``index``.

        Raises:
            IndexError: ``index`` is outside ``range(size)``.
        """
        if not 0 <= index < self._size:
            raise IndexError(index)
        found = self._encrypt(index)
        while found >= self._size:
            found = self._encrypt(found)
        return found

    def _encrypt(self, block: int) -> int:
        mask = (1 << self._half) - 1
        left, right = block >> self._half, block & mask
        for key in self._keys:
            left, right = right, left ^ (_mix(right + key) & mask)
        return (left << self._half) | right


class Order:
    """The micro-batches of every step.

    Args:
        shard_rows: Rows of each shard. Up to ``rows - 1`` rows at the end of a shard are not used,
            so that a micro-batch is one contiguous read.
        rows: Rows of a micro-batch.
        micro_batches: Micro-batches of a global batch.
        seed: Seed of the order.
    """

    def __init__(
        self, shard_rows: Sequence[int], *, rows: int, micro_batches: int, seed: int
    ) -> None:
        self._rows = rows
        self._micro_batches = micro_batches
        self._seed = seed
        self._ends = list(accumulate(count // rows for count in shard_rows))
        self._epoch = -1
        self._permutation = Permutation(0, seed=0)

    @property
    def slices(self) -> int:
        """Number of micro-batches of an epoch."""
        return self._ends[-1] if self._ends else 0

    def slice_at(self, step: int, micro_batch: int) -> Slice:
        """Return the rows of a micro-batch of ``step``; both are counted from 0."""
        epoch, position = divmod(step * self._micro_batches + micro_batch, self.slices)
        if epoch != self._epoch:
            self._permutation = Permutation(self.slices, seed=_mix(self._seed) ^ epoch)
            self._epoch = epoch
        return self._locate(self._permutation[position])

    def _locate(self, number: int) -> Slice:
        shard = bisect_right(self._ends, number)
        first = self._ends[shard - 1] if shard else 0
        return Slice(shard=shard, start=(number - first) * self._rows, count=self._rows)


def share(micro_batches: int, *, rank: int, world: int) -> Sequence[int | None]:
    """Return the micro-batches of ``rank``; None fills them up to the same number on every rank.

    Every rank must take part in every collective of a step, so all need the same number.
    """
    each = -(-micro_batches // world)
    mine = range(rank * each, (rank + 1) * each)
    return [number if number < micro_batches else None for number in mine]


def seed_of(seed: int, *, step: int, micro_batch: int) -> int:
    """Return the dropout seed of a micro-batch, whichever worker computes it."""
    return _mix(_mix(_mix(seed) ^ step) ^ micro_batch) >> 1


def _mix(value: int) -> int:
    """Return the SplitMix64 hash of ``value``. Source: https://prng.di.unimi.it/splitmix64.c."""
    value = (value + 0x9E3779B97F4A7C15) & _WORD
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _WORD
    return value ^ (value >> 31)
