"""Store in which torchrun's agents of a job tell each other their ranks."""

import random
import time
import uuid
from collections.abc import Sequence
from datetime import timedelta

from torch.distributed import DistStoreError, Store

from ultrascale_training.rendezvous.etcd_keys import JobKeys, Value

_FIRST_WAIT_SECONDS = 0.05
_LONGEST_WAIT_SECONDS = 0.5
_FOLDER = "store"


class EtcdStore(Store):
    """A c10d store of a job in etcd, with the methods that torchrun's agents call.

    The store polls for a key at growing intervals: a watch would cost etcd a stream for each
    waiting node, and would end with its member. torch's base class builds the methods for several
    keys from `get` and `set`.

    Source: https://github.com/pytorch/pytorch/blob/v2.13.0/torch/distributed/elastic/utils/store.py
    """

    def __init__(self, keys: JobKeys) -> None:
        super().__init__()
        self._keys = keys

    def set(self, key: str, value: str | bytes) -> None:
        """Write ``value`` under ``key``."""
        self._keys.write(_FOLDER, key, data=value.encode() if isinstance(value, str) else value)

    def get(self, key: str) -> bytes:
        """Return the value of ``key`` once somebody has written it.

        Raises:
            DistStoreError: Nobody wrote it within the store's timeout.
        """
        return self._value_once_written(key, self.timeout, time.monotonic()).data

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until somebody has written each of ``keys``.

        Raises:
            DistStoreError: A key is missing after ``timeout``, by default the store's own.
        """
        start = time.monotonic()
        for key in keys:
            self._value_once_written(key, self.timeout if timeout is None else timeout, start)

    def add(self, key: str, amount: int) -> int:
        """Count ``key`` up by one, exactly once, and return the count.

        Each call writes a key of its own. So nodes that count at the same moment, as all nodes of a
        job do at its end, never collide, and a call that arrives twice because its answer was lost
        counts once.

        Raises:
            ValueError: The amount is one that no agent of torchrun adds.
        """
        if amount != 1:
            raise ValueError(f"a counter in etcd goes up by 1, got {amount}")
        _, mark = self._keys.write(_FOLDER, key, str(uuid.uuid4()), data=b"")
        assert mark is not None
        return self._keys.count_at(mark.created, _FOLDER, key)

    def _value_once_written(self, key: str, timeout: timedelta, start: float) -> Value:
        wait = _FIRST_WAIT_SECONDS
        while (value := self._keys.read(_FOLDER, key)) is None:
            left = start + timeout.total_seconds() - time.monotonic()
            if left <= 0:
                raise DistStoreError(
                    f"nobody wrote the key {key!r} within {timeout.total_seconds():g} s"
                )
            time.sleep(min(wait * random.uniform(0.7, 1.3), left))
            wait = min(1.5 * wait, _LONGEST_WAIT_SECONDS)
        return value
