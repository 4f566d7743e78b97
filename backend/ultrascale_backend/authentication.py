"""Authentication of callers: the form of their tokens, and the judgement of the API server.

The verdict on a token is kept for half a minute by the token's hash, so that not every request asks
the API server, and callers who were just identified can continue while it is down.
"""

import asyncio
import hashlib
import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

import jwt

from ultrascale.cluster_api.objects import Kind
from ultrascale.cluster_api.server import Cluster
from ultrascale.documents import JsonObject, look_up, mapping, sequence, text
from ultrascale.errors import ClusterError
from ultrascale_backend.callers import Caller
from ultrascale_backend.errors import IdentityUnavailableError, LimitedError, UnknownCallerError
from ultrascale_backend.limits import Buckets, Recent

# --- Bearer tokens: their form, and their claims before verification ------------------------------


# Three parts in base64url. No issuer in use writes a token even half this long.
_FORM = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")
_LONGEST = 16_384


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """Unverified claims of a token, used only to choose its judge."""

    issuer: str  # Issuer; empty without one
    audiences: frozenset[str]  # Audiences
    expires: float | None  # Its end, in seconds since 1970; None without one


def bearer_token(header: str | None) -> str:
    """Return the token in an `Authorization` header.

    Raises:
        UnknownCallerError: There is no token, or it is no JSON Web Token.

    Source: https://www.rfc-editor.org/rfc/rfc6750#section-2.1
    """
    if header is None:
        raise UnknownCallerError("no token")
    scheme, _, token = header.partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token:
        raise UnknownCallerError("no bearer token")
    if len(token) > _LONGEST or _FORM.fullmatch(token) is None:
        raise UnknownCallerError("not a JSON Web Token")
    return token


def claims_of(token: str) -> Claims:
    """Return the unverified claims of ``token``.

    Raises:
        UnknownCallerError: The token is no JSON Web Token.
    """
    try:
        found: object = jwt.decode(token, options={"verify_signature": False})
    except (jwt.PyJWTError, ValueError, RecursionError) as error:
        raise UnknownCallerError("not a JSON Web Token") from error
    audiences = sequence(found, "aud") or (look_up(found, "aud"),)
    expires = look_up(found, "exp")
    return Claims(
        issuer=text(found, "iss"),
        audiences=frozenset(each for each in audiences if isinstance(each, str)),
        expires=float(expires) if isinstance(expires, int | float) else None,
    )


# --- Authentication of callers by their tokens ----------------------------------------------------


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


# --- Judge of service accounts' tokens, which asks the API server ---------------------------------


TOKEN_REVIEW = Kind("authentication.k8s.io/v1", "TokenReview", "tokenreviews", namespaced=False)
_ACCOUNT = "system:serviceaccount:"
_SECONDS = 3.0
_LONGEST_REASON = 200


class TokenReviews:
    """Judge of tokens by TokenReview, which refuses tokens of deleted pods and accounts.

    Args:
        cluster: The API server.
        audience: Audience that tokens must have. Tokens for the API server itself are refused, so
            that nobody gets used to sending them here.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/authentication-resources/token-review-v1/
    """

    def __init__(self, cluster: Cluster, audience: str) -> None:
        self._cluster = cluster
        self._audience = audience

    def takes(self, claims: Claims) -> bool:
        """Return True: the judge is responsible for the tokens of every issuer."""
        return True

    def caller(self, token: str, claims: Claims) -> Caller:
        """Return the caller of ``token``.

        Raises:
            UnknownCallerError: The token is invalid, or for another audience.
            IdentityUnavailableError: The API server cannot be asked.
        """
        if self._audience not in claims.audiences:
            # The API server would refuse this token too, so it is not asked.
            raise UnknownCallerError(f"not a token for the audience {self._audience}")
        review: JsonObject = {
            "apiVersion": TOKEN_REVIEW.api_version,
            "kind": TOKEN_REVIEW.kind,
            "spec": {"token": token, "audiences": [self._audience]},
        }
        try:
            answer = self._cluster.review(TOKEN_REVIEW, review, timeout_seconds=_SECONDS)
        except ClusterError as error:
            raise IdentityUnavailableError(str(error)[:_LONGEST_REASON]) from error
        status = mapping(answer, "status")
        if status.get("authenticated") is not True:
            why = text(status, "error") or "the API server does not know it"
            raise UnknownCallerError(why[:_LONGEST_REASON])
        # A server without support for audiences returns none: it has checked only its own audience.
        if self._audience not in sequence(status, "audiences"):
            raise UnknownCallerError(f"not judged for the audience {self._audience}")
        name = text(status, "user", "username")
        if not name.startswith(_ACCOUNT):
            raise UnknownCallerError("not the token of a service account")
        groups = sequence(status, "user", "groups")
        return Caller(
            name=name,
            groups=frozenset(group for group in groups if isinstance(group, str)),
            expires=claims.expires,
        )
