"""Throttle that keeps requests within AWS's rate, so that none is refused."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class Throttle:
    """A token bucket: each request takes a token. Threads may share it.

    Attributes:
        at_once: Tokens of a full bucket.
        per_second: Tokens that return in a second.
        clock: Returns seconds; only differences count.
        sleep: Waits some seconds.
    """

    at_once: float
    per_second: float
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _tokens: float = field(default=0, init=False)
    _seen: float = field(default=0, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def __post_init__(self) -> None:
        self._tokens, self._seen = self.at_once, self.clock()

    def take(self) -> None:
        """Take a token; wait for one where the bucket is empty."""
        # A waiting thread holds the lock: the others queue behind it.
        with self._lock:
            self._refill()
            if self._tokens < 1:
                self.sleep((1 - self._tokens) / self.per_second)
                self._refill()
            self._tokens -= 1

    def _refill(self) -> None:
        now = self.clock()
        self._tokens = min(self.at_once, self._tokens + (now - self._seen) * self.per_second)
        self._seen = now
