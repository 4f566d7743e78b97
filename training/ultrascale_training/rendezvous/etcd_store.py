"""The store in which torchrun's agents of one job tell each other their ranks."""

import random
import time
import uuid
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TypeVar

from torch.distributed import DistStoreError, Store

from ultrascale_training.rendezvous.etcd_client import EtcdClient
from ultrascale_training.rendezvous.etcd_keys import (
    Comparison,
    Operation,
    Outcome,
    Value,
    absent,
    job_key,
    less,
    put,
    read,
    read_at,
    touch,
    transact,
    unchanged,
)
from ultrascale_training.rendezvous.etcd_lease import JobLease

# etcd takes 128 operations in a transaction.
# Source: https://etcd.io/docs/v3.5/op-guide/configuration/ (--max-txn-ops)
_BATCH = 100
_FIRST_WAIT_SECONDS = 0.05
# The first byte of a value says what the rest is.
_PLAIN = b"="
_COUNTER = b"+"
_AFTER_COUNTER = b","

Item = TypeVar("Item")


class EtcdStore(Store):
    """A c10d store of one job in etcd.

    A key is waited for by asking again, at growing intervals: a watch would cost etcd a stream
    for each node that waits, and would end with the member that it hangs on.

    A number that is counted up holds an offset, and its value is the offset plus the version that
    etcd keeps of every key. So nodes that count at the same moment, as all nodes of a job do when
    it ends, never collide.

    Args:
        client: How etcd is reached.
        run_id: The job's rendezvous id.
        lease: What the keys hang on.
        longest_wait: Seconds between two questions for a key that is missing for long.
    """

    def __init__(
        self, client: EtcdClient, run_id: str, *, lease: JobLease, longest_wait: float
    ) -> None:
        super().__init__()
        self._client = client
        self._run_id = run_id
        self._lease = lease
        self._longest_wait = longest_wait

    def set(self, key: str, value: str | bytes) -> None:
        """Write ``value`` under ``key``."""
        self.multi_set([key], [value])

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Write each of ``values`` under the key at its place."""
        # Of a key that is given twice the last value counts; etcd would refuse both.
        pairs = {self._key(k): _plain(v) for k, v in zip(keys, values, strict=True)}
        for batch in _batches(list(pairs.items())):
            self._write(success=[(key, data) for key, data in batch])

    def get(self, key: str) -> bytes:
        """Return the value of ``key``, waiting for it if need be.

        Raises:
            DistStoreError: Nobody wrote it within the store's timeout.
        """
        return self.multi_get([key])[0]

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """Return the values of ``keys``, waiting for them if need be.

        Raises:
            DistStoreError: One is missing after the store's timeout.
        """
        found = self._wait_for(keys, self.timeout)
        return [_bytes(found[key]) for key in keys]

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Return when somebody has written each of ``keys``.

        Raises:
            DistStoreError: One is missing after ``timeout``, or the store's own.
        """
        self._wait_for(keys, self.timeout if timeout is None else timeout)

    def check(self, keys: Sequence[str]) -> bool:
        """Return whether each of ``keys`` is written now."""
        return len(self._read(keys)) == len(set(keys))

    def compare_set(
        self, key: str, expected_value: str | bytes, desired_value: str | bytes
    ) -> bytes:
        """Write ``desired_value`` if ``key`` holds the expected one; return what it holds then.

        A key that nobody wrote counts as holding the empty text; if another value was expected,
        that one is returned, as torch's TCPStore does.
        """
        wanted = _as_bytes(expected_value)
        while True:
            found = self._read([key]).get(key)
            held = b"" if found is None else _bytes(found)
            if held != wanted:
                return wanted if found is None else held
            written = self._write(
                compare=[unchanged(self._key(key), _revision(found))],
                success=[(self._key(key), _plain(desired_value))],
            )
            if written.succeeded:
                return _as_bytes(desired_value)

    def add(self, key: str, amount: int) -> int:
        """Add ``amount`` to the number that ``key`` holds, exactly once, and return the sum.

        A key that nobody wrote counts as 0.
        """
        full = self._key(key)
        # Tells a call that arrives a second time, since its answer got lost, from a second call.
        marker = job_key(self._run_id, "added", str(uuid.uuid4()))
        if amount == 1:
            counted = self._write(
                compare=[absent(marker), less(full, _AFTER_COUNTER)],
                success=[(marker, b"")],
                then=[touch(full), read(full)],
                failure=[read(marker), read(full)],
            )
        else:
            counted = self._shift(full, marker, None, amount)
        while not counted.succeeded:
            marked, found = counted.read
            if marked is not None:
                return _number(read_at(self._client, full, marked.created))
            counted = self._shift(full, marker, found, amount)
        return _number(counted.read[0])

    def _shift(self, key: str, marker: str, found: Value | None, amount: int) -> Outcome:
        """Make a counter of ``key`` that is ``amount`` higher than what was ``found``."""
        version = 1 if found is None else found.version + 1
        offset = _number(found) + amount - version
        return self._write(
            compare=[absent(marker), unchanged(key, _revision(found))],
            success=[(marker, b""), (key, _COUNTER + str(offset).encode())],
            then=[read(key)],
            failure=[read(marker), read(key)],
        )

    def _write(
        self,
        *,
        compare: Sequence[Comparison] = (),
        success: Sequence[tuple[str, bytes]],
        then: Sequence[Operation] = (),
        failure: Sequence[Operation] = (),
    ) -> Outcome:
        return self._lease.write(
            lambda lease: transact(
                self._client,
                compare=compare,
                success=[*(put(key, data, lease=lease) for key, data in success), *then],
                failure=failure,
            )
        )

    def _wait_for(self, keys: Sequence[str], timeout: timedelta) -> dict[str, Value]:
        deadline = time.monotonic() + timeout.total_seconds()
        found = self._read(keys)
        wait = _FIRST_WAIT_SECONDS
        while missing := [key for key in dict.fromkeys(keys) if key not in found]:
            left = deadline - time.monotonic()
            if left <= 0:
                raise DistStoreError(
                    f"{len(missing)} of {len(set(keys))} keys were not written within "
                    f"{timeout.total_seconds():g} s, the first is {missing[0]!r}"
                )
            time.sleep(min(wait * random.uniform(0.7, 1.3), left))
            wait = min(1.5 * wait, self._longest_wait)
            found |= self._read(missing)
        return found

    def _read(self, keys: Sequence[str]) -> dict[str, Value]:
        """Return those of ``keys`` that are written, with what they hold."""
        found: dict[str, Value] = {}
        for batch in _batches(list(dict.fromkeys(keys))):
            outcome = transact(self._client, success=[read(self._key(key)) for key in batch])
            values = zip(batch, outcome.read, strict=True)
            found |= {key: value for key, value in values if value is not None}
        return found

    def _key(self, key: str) -> str:
        return job_key(self._run_id, "store", key)


def _batches(items: list[Item]) -> Iterator[list[Item]]:
    for start in range(0, len(items), _BATCH):
        yield items[start : start + _BATCH]


def _revision(found: Value | None) -> int:
    return 0 if found is None else found.revision


def _as_bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _plain(value: str | bytes) -> bytes:
    return _PLAIN + _as_bytes(value)


def _bytes(value: Value) -> bytes:
    if value.data.startswith(_COUNTER):
        return str(_number(value)).encode()
    return value.data.removeprefix(_PLAIN)


def _number(value: Value | None) -> int:
    if value is None:
        return 0
    if value.data.startswith(_COUNTER):
        return int(value.data.removeprefix(_COUNTER)) + value.version
    return int(value.data.removeprefix(_PLAIN))
