"""Authentication of callers by their tokens.

The verdict on a token is kept for half a minute by the token's hash, so that not every request asks
the API server, and callers who were just identified can continue while it is down.
"""

import asyncio
import hashlib
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from ultrascale_backend.callers import Caller
from ultrascale_backend.errors import (
    IdentityUnavailableError,
    LimitedError,
    UnknownCallerError,
)
from ultrascale_backend.limits import Buckets, Recent
from ultrascale_backend.tokens import Claims, claims_of

_FRESH_SECONDS = 30.0
_REFUSED_SECONDS = 10.0
# Time for which a known caller may continue while no judge can verify the token.
_STALE_SECONDS = 300.0
_THREADS = 4
_VERDICT_SECONDS = 5.0
# Tokens to judge in a second, from all addresses together.
_ADDRESSES = 10


class Judge(Protocol):
    """Judge of tokens: it identifies the caller of a token."""

    def takes(self, claims: Claims) -> bool:
        """Return whether the judge is responsible for a token with these claims."""
        ...

    def caller(self, token: str, claims: Claims) -> Caller:
        """Return the caller of ``token``; any thread may call this."""
        ...


@dataclass(frozen=True, slots=True)
class _Known:
    caller: Caller
    judged_at: float


class Authenticator:
    """Authenticator of callers on the event loop; it judges tokens in threads of its own.

    Args:
        judges: Judges of tokens; the first responsible judge decides.
        tokens_per_second: Invalid tokens that one address may try in a second.
        clock: Returns seconds that only grow.
        now: Returns the time in seconds since 1970.
    """

    def __init__(
        self,
        judges: Sequence[Judge],
        *,
        tokens_per_second: float,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._judges = judges
        self._clock = clock
        self._now = now
        self._known = Recent[bytes, _Known]()
        self._refused = Recent[bytes, tuple[str, float]]()
        self._judging: dict[bytes, asyncio.Future[Caller]] = {}
        self._addresses = Buckets(tokens_per_second, clock=clock)
        self._all = Buckets(tokens_per_second * _ADDRESSES, clock=clock)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="identity")

    async def caller(self, token: str, address: str) -> Caller:
        """Return the caller of ``token``.

        Args:
            token: The token.
            address: Address of the client; an address that tries many tokens has to wait.

        Raises:
            UnknownCallerError: The token is valid for no caller.
            LimitedError: The address tries too many tokens.
            IdentityUnavailableError: No judge can verify the token now.
        """
        key = hashlib.sha256(token.encode()).digest()
        known = self._known.get(key)
        age = self._clock() - known.judged_at if known is not None else float("inf")
        if known is not None and age < _FRESH_SECONDS and self._is_unexpired(known.caller):
            return known.caller
        refused = self._refused.get(key)
        if refused is not None and self._clock() < refused[1]:
            raise UnknownCallerError(refused[0])
        try:
            return await self._judged_caller(key, token, "" if known is not None else address)
        except IdentityUnavailableError:
            if known is not None and age < _STALE_SECONDS and self._is_unexpired(known.caller):
                return known.caller
            raise

    def _is_unexpired(self, caller: Caller) -> bool:
        return caller.expires is None or self._now() < caller.expires

    async def _judged_caller(self, key: bytes, token: str, address: str) -> Caller:
        """Return the caller of a token; requests with the same token wait for one verdict."""
        verdict = self._judging.get(key)
        if verdict is None:
            if address and (wait := self._addresses.take(address)):
                raise LimitedError(wait)
            if self._all.take(""):
                raise IdentityUnavailableError("too many tokens to judge")
            verdict = asyncio.ensure_future(self._verdict(key, token, address))
            self._judging[key] = verdict
            verdict.add_done_callback(lambda done: self._end(key, done))
        return await asyncio.shield(verdict)

    def _end(self, key: bytes, verdict: "asyncio.Future[Caller]") -> None:
        del self._judging[key]
        if not verdict.cancelled():
            # The request may be gone, and asyncio logs an error that nobody has read.
            verdict.exception()

    async def _verdict(self, key: bytes, token: str, address: str) -> Caller:
        try:
            async with asyncio.timeout(_VERDICT_SECONDS):
                loop = asyncio.get_running_loop()
                caller = await loop.run_in_executor(self._threads, self._judge, token)
        except TimeoutError as error:
            raise IdentityUnavailableError("no verdict in time") from error
        except UnknownCallerError as error:
            self._known.drop(key)
            self._refused.put(key, (str(error), self._clock() + _REFUSED_SECONDS))
            raise
        # Only invalid tokens count against an address: valid callers may share it.
        self._addresses.give_back(address)
        self._known.put(key, _Known(caller, self._clock()))
        return caller

    def _judge(self, token: str) -> Caller:
        claims = claims_of(token)
        for judge in self._judges:
            if judge.takes(claims):
                return judge.caller(token, claims)
        raise UnknownCallerError("a token of another issuer")
