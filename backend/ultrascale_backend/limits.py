"""Limits of callers: requests a second, and simultaneous requests. Their memory is bounded.

Only the event loop's thread may use them.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Hashable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
_MOST = 10_000
# Seconds of a bucket's size: a new caller may send the requests of so many seconds at once.
_BURST_SECONDS = 5.0


class Recent(Generic[K, V]):
    """A mapping of limited size that drops the least recently used entry.

    Args:
        most: Most entries.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._entries: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        """Return the value of ``key``, which counts as a use."""
        if key in self._entries:
            self._entries.move_to_end(key)
        return self._entries.get(key)

    def put(self, key: K, value: V) -> None:
        """Store a value."""
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > self._most:
            self._entries.popitem(last=False)

    def drop(self, key: K) -> V | None:
        """Remove ``key``, and return its value."""
        return self._entries.pop(key, None)

    def __len__(self) -> int:
        return len(self._entries)


class Buckets:
    """A token bucket for each name.

    Args:
        per_second: Tokens that each name may take in a second.
        burst: Tokens that each name may take at once.
        most: Most names that are kept; a forgotten name begins with a full bucket.
        clock: Returns seconds that only grow.
    """

    def __init__(
        self,
        per_second: float,
        burst: float | None = None,
        *,
        most: int = _MOST,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._per_second = per_second
        self._burst = max(1.0, per_second * _BURST_SECONDS if burst is None else burst)
        self._clock = clock
        self._levels = Recent[str, tuple[float, float]](most)

    def take(self, name: str) -> float:
        """Take a token and return 0; without a token, return the seconds until there is one."""
        now = self._clock()
        level, at = self._levels.get(name) or (self._burst, now)
        level = min(self._burst, level + (now - at) * self._per_second)
        wait = 0.0 if level >= 1 else (1 - level) / self._per_second
        self._levels.put(name, (level if wait else level - 1, now))
        return wait

    def give_back(self, name: str) -> None:
        """Put a taken token back."""
        if (found := self._levels.get(name)) is not None:
            self._levels.put(name, (min(self._burst, found[0] + 1), found[1]))


class Turns:
    """Turns of callers: a few requests of each caller are answered at once, and others wait.

    Args:
        at_once: Most requests of one caller.
    """

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._waiting: dict[str, tuple[asyncio.Semaphore, int]] = {}

    @asynccontextmanager
    async def turn(self, name: str) -> AsyncGenerator[None]:
        """Wait for a turn of ``name``, and hold it until the end of the block."""
        turns, users = self._waiting.get(name) or (asyncio.Semaphore(self._at_once), 0)
        self._waiting[name] = turns, users + 1
        try:
            async with turns:
                yield
        finally:
            _, users = self._waiting[name]
            if users > 1:
                self._waiting[name] = turns, users - 1
            else:
                del self._waiting[name]
