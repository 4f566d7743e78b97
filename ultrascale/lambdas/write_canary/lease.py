"""Writes to one Lease over one connection."""

import json
import ssl
from collections.abc import Callable
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING

from ..kubernetes import JSON_PATCH, MERGE_PATCH

if TYPE_CHECKING:
    from ..events import Json

_FIELD_MANAGER = "write-canary"
# Errors if the server has closed the connection since the last write.
_CLOSED = (ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError)


class WriteError(Exception):
    """Error: a write failed, or its outcome is not known."""


class TakenError(Exception):
    """Error: another run has taken the Lease."""


class Lease:
    """A Lease that a run takes from the run before: only the last run writes.

    Every write changes `renewTime`: the API server does not store a write without a change.
    """

    def __init__(
        self, connect: Callable[[], HTTPConnection], *, path: str, token: str, holder: str
    ) -> None:
        """Create a client, which connects at its first write.

        Args:
            connect: Returns a connection to the API server, not yet open.
            path: Path of the Lease.
            token: Bearer token.
            holder: Id of the run that takes the Lease.
        """
        self._connection = connect()
        self._path = f"{path}?fieldManager={_FIELD_MANAGER}"
        self._token = token
        self._holder = holder
        self._held = False

    def write(self, moment: str) -> None:
        """Write ``moment``: take the Lease, or renew it if this run has it.

        A write on a closed connection is sent again over a new one.

        Raises:
            TakenError: Another run has taken the Lease since.
            WriteError: The API server refused, did not answer, or could not be reached.
        """
        kind, patch = self._patch(moment)
        body = json.dumps(patch).encode()
        status, text = self._send(kind, body)
        # The patch contains a test for the holder; this status answers a failed test.
        # https://github.com/kubernetes/kubernetes/blob/master/staging/src/k8s.io/apiserver/pkg/endpoints/handlers/patch.go
        if self._held and status == HTTPStatus.UNPROCESSABLE_ENTITY:
            raise TakenError
        if status != HTTPStatus.OK:
            raise WriteError(f"{status}: {text[:500].decode(errors='replace')}")
        self._held = True

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _patch(self, moment: str) -> "tuple[str, Json]":
        if not self._held:
            return MERGE_PATCH, {"spec": {"holderIdentity": self._holder, "renewTime": moment}}
        return JSON_PATCH, [
            {"op": "test", "path": "/spec/holderIdentity", "value": self._holder},
            {"op": "replace", "path": "/spec/renewTime", "value": moment},
        ]

    def _send(self, kind: str, body: bytes) -> tuple[int, bytes]:
        kept = self._connection.sock is not None
        try:
            try:
                return self._exchange(kind, body)
            except _CLOSED:
                if not kept:
                    raise
                self._connection.close()
                return self._exchange(kind, body)
        except (OSError, HTTPException) as error:
            self._connection.close()
            raise WriteError(f"{type(error).__name__}: {error}") from error

    def _exchange(self, kind: str, body: bytes) -> tuple[int, bytes]:
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Accept": "application/json",
            "Content-Type": kind,
        }
        self._connection.request("PATCH", self._path, body, headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read()
