"""etcd's v3 API over its JSON gateway, with the standard library alone.

Source: https://etcd.io/docs/v3.5/dev-guide/api_grpc_gateway/
"""

import base64
import http.client
import json
import logging
import random
import ssl
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict, cast

from torch.distributed.elastic.rendezvous.api import RendezvousConnectionError

logger = logging.getLogger(__name__)

_FIRST_WAIT_SECONDS = 0.1
_LONGEST_WAIT_SECONDS = 3.0
# No leader, too many requests, member going down: what passes by itself.
# Source: https://github.com/grpc-ecosystem/grpc-gateway/blob/main/runtime/errors.go
_TRANSIENT = frozenset({429, 500, 502, 503, 504})


class Header(TypedDict):
    """The header of an answer. The gateway writes 64-bit numbers as text."""

    revision: str


class Revisions(TypedDict):
    """The history of a key."""

    mod_revision: str
    create_revision: str
    version: str


class KeyValue(Revisions, total=False):
    """A key of etcd; an empty value is left out."""

    value: str


class Range(TypedDict, total=False):
    """The answer to a read."""

    kvs: Sequence[KeyValue]
    count: str


class Response(TypedDict, total=False):
    """The answer to one operation of a transaction."""

    response_range: Range


class Answer(Range, total=False):
    """An answer of etcd's gateway: of `Auth`, `KV` or `Lease`, or an error.

    Source: https://etcd.io/docs/v3.5/dev-guide/apispec/swagger/rpc.swagger.json
    """

    header: Header
    responses: Sequence[Response]
    succeeded: bool
    token: str
    ID: str
    error: str | Mapping[str, str]
    message: str


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """Host and client port of one etcd member."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """User and password of etcd's own authentication."""

    user: str
    password: str


class EtcdRefusedError(RendezvousConnectionError):
    """Raised when etcd answers that it will not do what it was asked, however often."""


class LeaseNotFoundError(EtcdRefusedError):
    """Raised when a write names a lease that has expired, with all keys that it held."""


class _NoAnswerError(Exception):
    """An attempt that is worth repeating, maybe at another member."""


class EtcdClient:
    """Calls the members of one etcd cluster in turn until one of them answers.

    It may be shared by threads. Connections stay open from one call to the next, and end with it.

    Args:
        endpoints: The members, or one address that stands for all of them.
        tls: How to check the members and prove who asks; plain HTTP without it.
        credentials: User and password, where etcd's authentication is on.
        read_timeout: Seconds for which one member is waited for.
        retry_timeout: Seconds in which a call is repeated before it fails. A job outlives an
            absence of etcd that is shorter.
    """

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        *,
        tls: ssl.SSLContext | None = None,
        credentials: Credentials | None = None,
        read_timeout: float = 10.0,
        retry_timeout: float = 300.0,
    ) -> None:
        self._endpoints = tuple(endpoints)
        self._tls = tls
        self._credentials = credentials
        self._read_timeout = read_timeout
        self._retry_timeout = retry_timeout
        self._token: str | None = None
        # Nodes that start together spread over the members.
        self._turn = random.randrange(len(self._endpoints))
        self._idle: list[http.client.HTTPConnection] = []
        weakref.finalize(self, _close, self._idle)

    def call(self, path: str, body: Mapping[str, object]) -> Answer:
        """Return etcd's answer to ``body`` at ``/v3`` + ``path``.

        A call may arrive twice if its first answer got lost: the caller must stand that.

        Raises:
            EtcdRefusedError: etcd answered with an error that stays.
            RendezvousConnectionError: No member answered within ``retry_timeout``.
        """
        start = time.monotonic()
        wait = _FIRST_WAIT_SECONDS
        attempt = 0
        while True:
            left = self._retry_timeout - (time.monotonic() - start)
            try:
                answer = self._attempt(path, body, timeout=max(0.1, min(self._read_timeout, left)))
            except _NoAnswerError as error:
                attempt += 1
                if time.monotonic() - start >= self._retry_timeout:
                    raise RendezvousConnectionError(self._gave_up(error)) from error.__cause__
                if attempt == 1:
                    logger.warning("%s; trying for %g s", error, self._retry_timeout)
            else:
                if attempt:
                    logger.warning("etcd answered after %.1f s", time.monotonic() - start)
                return answer
            if attempt % len(self._endpoints) == 0:
                left = self._retry_timeout - (time.monotonic() - start)
                time.sleep(max(0.0, min(wait * random.uniform(0.5, 1.5), left)))
                wait = min(2 * wait, _LONGEST_WAIT_SECONDS)

    def _gave_up(self, error: _NoAnswerError) -> str:
        endpoints = ",".join(str(endpoint) for endpoint in self._endpoints)
        return (
            f"etcd at {endpoints} did not answer within {self._retry_timeout:g} s ({error}); check "
            "--rdzv-endpoint, that etcd runs, and that its network policy lets this pod in"
        )

    def _attempt(self, path: str, body: Mapping[str, object], *, timeout: float) -> Answer:
        if self._credentials is not None and self._token is None:
            self._token = self._authenticate(self._credentials, timeout)
        token = self._token
        status, answer = self._post(path, body, token=token, timeout=timeout)
        # A token ends with its time, with the member that gave it, and with any change of users.
        # Source: https://etcd.io/docs/v3.5/learning/design-auth-v3/
        if token is not None and (status == 401 or "revision of auth store" in _message(answer)):
            self._token = None
            raise _NoAnswerError(f"etcd wants a new token: {_message(answer)}")
        return _judged(path, status, answer)

    def _authenticate(self, credentials: Credentials, timeout: float) -> str:
        path = "/auth/authenticate"
        body = {"name": credentials.user, "password": credentials.password}
        status, answer = self._post(path, body, token=None, timeout=timeout)
        return _judged(path, status, answer)["token"]

    def _post(
        self, path: str, body: Mapping[str, object], *, token: str | None, timeout: float
    ) -> tuple[int, Answer]:
        connection = self._connection(timeout)
        headers = {"Content-Type": "application/json"}
        if token is not None:
            headers["Authorization"] = token
        answered = False
        try:
            connection.request("POST", f"/v3{path}", body=json.dumps(body), headers=headers)
            response = connection.getresponse()
            result = response.status, _parsed(response.status, response.read())
            answered = True
        except ssl.SSLCertVerificationError as error:
            raise EtcdRefusedError(
                f"the certificate of etcd at {connection.host}:{connection.port} cannot be "
                f"verified ({error.verify_message}); give its authority as ca_cert in --rdzv-conf"
            ) from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._turn += 1
            reason = str(error) or type(error).__name__
            at = f"{connection.host}:{connection.port}"
            raise _NoAnswerError(f"no answer of etcd at {at}: {reason}") from error
        finally:
            if answered:
                self._idle.append(connection)
            else:
                # Half an answer may be on it, as after a signal's exception.
                connection.close()
        return result

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._opened()
        connection.timeout = timeout
        if connection.sock is not None:
            connection.sock.settimeout(timeout)
        return connection

    def _opened(self) -> http.client.HTTPConnection:
        endpoint = self._endpoints[self._turn % len(self._endpoints)]
        if self._tls is None:
            return http.client.HTTPConnection(endpoint.host, endpoint.port)
        return http.client.HTTPSConnection(endpoint.host, endpoint.port, context=self._tls)


def _close(connections: list[http.client.HTTPConnection]) -> None:
    for connection in connections:
        connection.close()


def _parsed(status: int, data: bytes) -> Answer:
    try:
        answer: object = json.loads(data)
    except ValueError:
        # What stands before the gateway, a check of the host's name for one, answers in words.
        if status == 200:
            raise
        answer = {"message": data.decode(errors="replace").strip()[:300]}
    if not isinstance(answer, dict):
        raise ValueError(f"not an answer of etcd: {data[:80]!r}")
    return cast(Answer, answer)


def _judged(path: str, status: int, answer: Answer) -> Answer:
    """Return ``answer`` if it is one, else raise what it says."""
    if status == 200 and "error" not in answer:
        return answer
    message = _message(answer)
    if status in _TRANSIENT:
        raise _NoAnswerError(f"etcd cannot answer now: {message}")
    if "requested lease not found" in message:
        raise LeaseNotFoundError(message)
    raise EtcdRefusedError(f"etcd refused {path}: {message or f'HTTP {status}'}")


def _message(answer: Answer) -> str:
    # 3.4 and 3.5 say it twice, 3.6 only as `message`; a stream wraps it.
    error = answer.get("error", "")
    if isinstance(error, Mapping):
        return str(error.get("message", error))
    return str(answer.get("message") or error)


def encoded(data: str | bytes) -> str:
    """Return ``data`` as the gateway wants keys and values: base64."""
    return base64.b64encode(data.encode() if isinstance(data, str) else data).decode()


def decoded(data: str) -> bytes:
    """Return what the gateway gave as base64."""
    return base64.b64decode(data)
