"""HyperPod's memory service over HTTP in this process, as far as AWS's client for it asks.

The paths, the header and the answers are those of the server that AWS ships with the client for
its own tests: amzn-sagemaker-checkpointing 1.1.3, tests/local_tests/membrain_server.py.
"""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


@dataclass
class Namespace:
    """Parts by writer and step, each with the header that came with it."""

    ranks: int
    retained: int
    parts: dict[int, dict[int, tuple[bytes, str]]] = field(
        default_factory=dict[int, dict[int, tuple[bytes, str]]]
    )


@dataclass
class MemoryService:
    """A running service; ``down`` makes it answer every request by an error."""

    url: str = ""
    down: bool = False
    namespaces: dict[str, Namespace] = field(default_factory=dict[str, Namespace])

    def parts(self, step: int) -> dict[int, tuple[bytes, str]]:
        """Return the parts of a step by writer, of the namespace that has it."""
        return {
            rank: steps[step]
            for namespace in self.namespaces.values()
            for rank, steps in namespace.parts.items()
            if step in steps
        }

    def replace(self, step: int, rank: int, part: tuple[bytes, str] | None) -> None:
        """Put another part in the place of one, or none."""
        for namespace in self.namespaces.values():
            if step in namespace.parts.get(rank, {}):
                if part is None:
                    del namespace.parts[rank][step]
                else:
                    namespace.parts[rank][step] = part


class _Server(ThreadingHTTPServer):
    """Knows the service whose requests it answers."""

    service: MemoryService


class _Handler(BaseHTTPRequestHandler):
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_GET(self) -> None:
        namespace, part = self._asked()
        if namespace is None:
            self._answer(404)
        elif part is None:
            known = {"num_ranks": namespace.ranks, "steps_to_retain_per_rank": namespace.retained}
            self._answer(200, json.dumps(known).encode())
        elif (found := namespace.parts.get(part[0], {}).get(part[1])) is None:
            self._answer(404)
        else:
            self._answer(200, found[0], **{"Shard-Meta": found[1]})

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        namespace, part = self._asked()
        if part is None:
            asked = parse_qs(urlsplit(self.path).query)
            self.server.service.namespaces[self._name()] = Namespace(
                ranks=int(asked["num_ranks"][0]), retained=int(asked["steps_retained"][0])
            )
        elif namespace is None or part[0] >= namespace.ranks:
            self._answer(404)
            return
        else:
            steps = namespace.parts.setdefault(part[0], {})
            steps[part[1]] = (content, self.headers["Shard-Meta"])
            while len(steps) > namespace.retained:
                del steps[min(steps)]
        self._answer(200, b"{}")

    def do_DELETE(self) -> None:
        gone = self.server.service.namespaces.pop(self._name(), None)
        self._answer(404 if gone is None else 200, b"{}")

    def _name(self) -> str:
        return urlsplit(self.path).path.split("/")[4]

    def _asked(self) -> tuple[Namespace | None, tuple[int, int] | None]:
        """Return the namespace that is asked for, and writer and step of the part."""
        rest = urlsplit(self.path).path.split("/")[5:]
        part = (int(rest[0]), int(rest[1])) if rest else None
        return self.server.service.namespaces.get(self._name()), part

    def _answer(self, status: int, content: bytes = b"", **headers: str) -> None:
        self.send_response(503 if self.server.service.down else status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


@contextmanager
def running_memory_service() -> Generator[MemoryService]:
    """Run a service on a port of this machine."""
    service = MemoryService()
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.service = service
        service.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield service
        finally:
            server.shutdown()
            thread.join()
