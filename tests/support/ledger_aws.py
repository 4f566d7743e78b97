"""S3 with conditional writes and EC2 with capacity reservations, over HTTP, that fail as asked."""

import gzip
import hashlib
import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from types import SimpleNamespace
from typing import Any

import boto3
import pytest

from tests.support.stub_api_server import Object
from ultrascale.lambdas.fleet_metrics import ledger
from ultrascale.lambdas.ledger import STATE, Row
from ultrascale.lambdas.ledger_state import State, advance

BUCKET = "ledger-bucket"
_ERROR = "<Error><Code>{}</Code><Message>refused</Message></Error>"
_FIELDS = {
    "DescribeCapacityReservations": "capacityReservationSet",
    "DescribeCapacityBlockExtensionHistory": "capacityBlockExtensionSet",
}


@dataclass
class LedgerAws:
    """The services; ``on_request`` may answer in their place, by a status, or 0 for a cut body."""

    url: str = ""
    objects: dict[str, bytes] = field(default_factory=dict[str, bytes])
    reservations: list[Object] = field(default_factory=list[Object])
    extensions: list[Object] = field(default_factory=list[Object])
    on_request: Callable[[str, str], int | None] = lambda _method, _key: None
    on_written: Callable[[str], object] = lambda _key: None
    lock: Lock = field(default_factory=Lock)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL_S3": self.url,
            "AWS_ENDPOINT_URL_EC2": self.url,
            "AWS_REGION": "us-east-2",
            "AWS_DEFAULT_REGION": "us-east-2",
            "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_EC2_METADATA_DISABLED": "true",
            # A call that fails is not repeated within the same measurement.
            "AWS_MAX_ATTEMPTS": "1",
        }

    def files(self) -> dict[str, bytes]:
        """Return the files in their order, as if all that is open ended with the last call."""
        state = State.parse(self.objects[STATE])
        after = advance(state, (), state.at + 1, 0, {"cluster": "mixed-capacity"})
        assert after is not None
        files = {**after.files, **state.files, **self.objects}
        del files[STATE]
        by_time = sorted(files, key=lambda key: int(key.split("/")[-1].split(".")[0]))
        return {key: files[key] for key in by_time}

    def rows(self) -> list[Row]:
        """Return the rows up to the last call, in the order of their files."""
        lines = (
            line for file in self.files().values() for line in gzip.decompress(file).splitlines()
        )
        rows: list[Row] = [row for row in map(json.loads, lines) if row["kind"] != "file"]
        return [row for row in rows if row["from"] < State.parse(self.objects[STATE]).at]


def _xml(name: str, value: Any) -> str:
    if type(value).__name__ == "list":
        value = "".join(_xml("item", item) for item in value)
    elif type(value).__name__ == "dict":
        value = "".join(_xml(key, item) for key, item in value.items())
    return f"<{name}>{value}</{name}>"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    aws: LedgerAws

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers["Content-Length"])).decode()
        action = next(name for name in _FIELDS if f"Action={name}&" in sent)
        own = self.aws.reservations if "Reservations" in action else self.aws.extensions
        if status := self.aws.on_request("POST", action):
            self._send(status, _ERROR.format("Unavailable").encode())
        else:
            self._send(200, _xml(f"{action}Response", {_FIELDS[action]: own}).encode())

    def do_GET(self) -> None:
        key = self._key()
        status, body = self.aws.on_request("GET", key), self.aws.objects.get(key)
        if status:
            self._send(status, _ERROR.format("SlowDown").encode())
        elif body is None:
            self._send(404, _ERROR.format("NoSuchKey").encode())
        else:
            self._send(200, body, cut=status == 0)

    def do_PUT(self) -> None:
        key, body = self._key(), self.rfile.read(int(self.headers["Content-Length"]))
        if status := self.aws.on_request("PUT", key):
            self._send(status, _ERROR.format("SlowDown").encode())
            return
        with self.aws.lock:
            there = self.aws.objects.get(key)
            wanted = self.headers.get("If-Match")
            if (wanted and (there is None or _tag(there) != wanted)) or (
                self.headers.get("If-None-Match") and there is not None
            ):
                self._send(412, _ERROR.format("PreconditionFailed").encode())
                return
            self.aws.objects[key] = body
        self.aws.on_written(key)
        self._send(200, b"", tag=_tag(body))

    def _key(self) -> str:
        return self.path.removeprefix(f"/{BUCKET}/").split("?")[0].replace("%3D", "=")

    def _send(self, status: int, body: bytes, *, tag: str = "", cut: bool = False) -> None:
        try:
            self.send_response(status)
            self.send_header("ETag", tag or _tag(body))
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if cut else body)
            self.close_connection = cut
        except OSError:
            # The client was killed meanwhile.
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        pass


def _tag(body: bytes) -> str:
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'


@contextmanager
def reached_aws() -> Generator[LedgerAws]:
    """Run the services for the function in this process, with clients that stay for its calls."""
    with pytest.MonkeyPatch.context() as patch, running_aws() as aws:
        for name, value in aws.environment.items():
            patch.setenv(name, value)
        # A client takes longer than a call.
        client = vars(boto3)["client"]
        patch.setattr(ledger, "boto3", SimpleNamespace(client=cache(client)))
        yield aws


@contextmanager
def running_aws() -> Generator[LedgerAws]:
    """Run the services with an empty bucket."""
    aws = LedgerAws()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"aws": aws}))
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    aws.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield aws
    finally:
        server.shutdown()
        server.server_close()
