"""Lets a stub API server answer over HTTP, and makes the kubeconfig by which it is reached."""

import itertools
import json
import ssl
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

from tests.support.stub_api_server import Reply, Request, StubApiServer

ARN = "arn:aws:eks:us-west-2:111122223333:cluster/trainium-bert"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    stub: StubApiServer

    def _handle(self) -> None:
        url = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        names = {name.lower() for name in self.headers}
        headers = {name: ", ".join(self.headers.get_all(name, [])) for name in names}
        sent = self.rfile.read(length)
        is_json = headers.get("content-type") == "application/json"
        body = (json.loads if is_json else yaml.safe_load)(sent) if length else None
        request = Request(self.command, url.path, query, headers, body)
        reply = self.stub.respond(request)
        if reply.status == 0:
            self.close_connection = True
        elif reply.lines is not None:
            self._send_lines(reply.lines, reply.headers)
        else:
            # A client that was killed meanwhile reads no answer.
            with suppress(BrokenPipeError, ConnectionResetError):
                self._send(reply)

    def _send(self, reply: Reply) -> None:
        text = (reply.text or json.dumps(reply.answer)).encode()
        self.send_response(reply.status)
        for key, value in reply.headers.items():
            self.send_header(key, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def _send_lines(self, lines: Iterator[bytes], headers: Mapping[str, str]) -> None:
        self.send_response(200)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for line in itertools.chain(lines, [b""]):
                self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
        except OSError:
            self.close_connection = True

    do_GET = do_POST = do_PATCH = do_DELETE = _handle  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def serve(stub: StubApiServer, *, tls: ssl.SSLContext | None = None) -> Generator[StubApiServer]:
    """Let ``stub`` answer at its ``url`` meanwhile."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"stub": stub}))
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    stub.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
    try:
        yield stub
    finally:
        stub.closing = True
        server.shutdown()
        thread.join()
        server.server_close()


def kubeconfig(
    folder: Path, url: str, *, user: dict[str, Any] | None = None, cluster: str = ARN
) -> Path:
    """Write a kubeconfig of one context, as `aws eks update-kubeconfig` does."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": cluster,
        "clusters": [{"name": cluster, "cluster": {"server": url}}],
        "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": "me"}}],
        "users": [{"name": "me", "user": user or {"token": "secret"}}],
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path
