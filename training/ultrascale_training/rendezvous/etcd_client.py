"""Client of etcd's v3 API over its JSON gateway, with only the standard library.

Source: https://etcd.io/docs/v3.5/dev-guide/api_grpc_gateway/
"""

import http.client
import json
import logging
import random
import ssl
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from itertools import count
from typing import TypedDict, cast

from torch.distributed.elastic.rendezvous.api import RendezvousConnectionError

logger = logging.getLogger(__name__)

_FIRST_WAIT_SECONDS = 0.1
_LONGEST_WAIT_SECONDS = 3.0
# Codes of errors that pass: no leader, too many requests, a member that ends.
# Source: https://github.com/grpc-ecosystem/grpc-gateway/blob/main/runtime/errors.go
_TRANSIENT = frozenset({429, 500, 502, 503, 504})


class Header(TypedDict):
    """Header of an answer; the gateway writes 64-bit numbers as text."""

    revision: str


class Revisions(TypedDict):
    """Revisions at which a key was created and changed."""

    mod_revision: str
    create_revision: str


class KeyValue(Revisions, total=False):
    """A key of etcd with its value; an empty value is left out."""

    value: str


class Range(TypedDict, total=False):
    """The answer to a read."""

    kvs: Sequence[KeyValue]
    count: str


class Response(TypedDict, total=False):
    """The answer to an operation of a transaction."""

    response_range: Range


class Answer(Range, total=False):
    """An answer of etcd's gateway: of `KV` or `Lease`, or an error.

    Source: https://etcd.io/docs/v3.5/dev-guide/apispec/swagger/rpc.swagger.json
    """

    header: Header
    responses: Sequence[Response]
    succeeded: bool
    error: str | Mapping[str, str]
    message: str


class EtcdRefusedError(RendezvousConnectionError):
    """Error: etcd refuses a call, and would refuse it again."""


class _NoAnswerError(Exception):
    """Error of an attempt that is worth repeating, perhaps at another member."""


class EtcdClient:
    """Client that calls the members of an etcd cluster in turn until a member answers.

    Threads may share the client: their calls follow one another. A connection stays open between
    calls, and ends with the client.

    Args:
        endpoints: ``host:port`` of each member, or one address for all members.
        tls: Certificates of both sides; None for plain HTTP.
        read_timeout: Seconds to wait for a member.
        retry_timeout: Seconds in which a call is repeated before it fails. A job survives a shorter
            absence of etcd.
    """

    def __init__(
        self,
        endpoints: Sequence[str],
        *,
        tls: ssl.SSLContext | None = None,
        read_timeout: float = 10.0,
        retry_timeout: float = 300.0,
    ) -> None:
        self.endpoints = tuple(endpoints)
        self._connections = [
            http.client.HTTPConnection(endpoint, timeout=read_timeout)
            if tls is None
            else http.client.HTTPSConnection(endpoint, timeout=read_timeout, context=tls)
            for endpoint in endpoints
        ]
        for connection in self._connections:
            weakref.finalize(self, connection.close)
        self._retry_timeout = retry_timeout
        # A random first member: nodes that start together spread over the members.
        self._turn = random.randrange(len(self.endpoints))
        self._lock = threading.Lock()

    def call(self, path: str, body: Mapping[str, object]) -> Answer:
        """Return etcd's answer to ``body`` at ``/v3`` + ``path``.

        A call may arrive twice if its first answer is lost: the caller must allow for that.

        Raises:
            EtcdRefusedError: etcd answered with a permanent error.
            RendezvousConnectionError: No member answered within ``retry_timeout``.
        """
        start = time.monotonic()
        wait = _FIRST_WAIT_SECONDS
        for attempt in count(1):
            try:
                answer = self._post(path, body)
            except _NoAnswerError as error:
                left = start + self._retry_timeout - time.monotonic()
                if left <= 0:
                    raise RendezvousConnectionError(self._absence(error)) from error.__cause__
                if attempt == 1:
                    logger.warning("%s; trying for %g s", error, self._retry_timeout)
            else:
                if attempt > 1:
                    logger.warning("etcd answered after %.1f s", time.monotonic() - start)
                return answer
            if attempt % len(self.endpoints) == 0:
                time.sleep(min(wait * random.uniform(0.5, 1.5), left))
                wait = min(2 * wait, _LONGEST_WAIT_SECONDS)
        raise AssertionError

    def _absence(self, error: _NoAnswerError) -> str:
        return (
            f"etcd at {','.join(self.endpoints)} did not answer within {self._retry_timeout:g} s "
            f"({error}); check --rdzv-endpoint, that etcd runs, and that its network policy lets "
            "this pod in"
        )

    def _post(self, path: str, body: Mapping[str, object]) -> Answer:
        headers = {"Content-Type": "application/json"}
        with self._lock:
            place = self._turn % len(self.endpoints)
            endpoint, connection = self.endpoints[place], self._connections[place]
            answered = False
            try:
                connection.request("POST", f"/v3{path}", body=json.dumps(body), headers=headers)
                response = connection.getresponse()
                status, answer = response.status, _parsed_answer(response.status, response.read())
                answered = True
            except ssl.SSLCertVerificationError as error:
                raise EtcdRefusedError(
                    f"the certificate of etcd at {endpoint} cannot be verified "
                    f"({error.verify_message}); give its authority as ca_cert in --rdzv-conf"
                ) from error
            except (OSError, http.client.HTTPException, ValueError) as error:
                self._turn += 1
                reason = str(error) or type(error).__name__
                raise _NoAnswerError(f"no answer of etcd at {endpoint}: {reason}") from error
            finally:
                if not answered:
                    # The connection may contain half an answer, as after an exception in a signal
                    # handler.
                    connection.close()
        if status == 200 and "error" not in answer:
            return answer
        message = _message(answer)
        if status in _TRANSIENT:
            raise _NoAnswerError(f"etcd cannot answer now: {message}")
        raise EtcdRefusedError(f"etcd refused {path}: {message or f'HTTP {status}'}")


def _parsed_answer(status: int, data: bytes) -> Answer:
    try:
        answer: object = json.loads(data)
    except ValueError:
        # A layer before the gateway, such as the check of the host name, answers in plain text.
        if status == 200:
            raise
        answer = {"message": data.decode(errors="replace").strip()[:300]}
    if not isinstance(answer, dict):
        raise ValueError(f"not an answer of etcd: {data[:80]!r}")
    return cast(Answer, answer)


def _message(answer: Answer) -> str:
    # etcd 3.4 and 3.5 state the text twice, 3.6 only as `message`; a stream wraps it.
    error = answer.get("error", "")
    if isinstance(error, Mapping):
        return str(error.get("message", error))
    return str(answer.get("message") or error)
