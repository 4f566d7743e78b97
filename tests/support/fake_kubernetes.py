"""An API server of a few lines, over HTTP, for what the functions in AWS Lambda ask of one."""

import json
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

Object = dict[str, Any]


@dataclass
class FakeKubernetes:
    """Objects by their path, and every request that came.

    Attributes:
        objects: What GET and PATCH find; a collection is a list.
        refusals: HTTP statuses that a request is answered with first, by method and path.
        requests: Method and path of each request, in order.
        patches: Path, content type and body of each PATCH.
        created: Path and body of each POST.
        tokens: Values of the header `Authorization`.
        url: Where it answers.
    """

    objects: dict[str, Any]
    refusals: dict[tuple[str, str], list[int]] = field(default_factory=dict[Any, Any])
    requests: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    patches: list[tuple[str, str, Any]] = field(default_factory=list[tuple[str, str, Any]])
    created: list[tuple[str, Object]] = field(default_factory=list[tuple[str, Object]])
    tokens: set[str] = field(default_factory=set[str])
    url: str = ""

    def answer(
        self, method: str, target: str, headers: Mapping[str, str], body: Any
    ) -> tuple[int, Any]:
        """Return status and body of the answer to a request."""
        url = urlsplit(target)
        self.requests.append((method, url.path))
        self.tokens.add(headers["Authorization"])
        if statuses := self.refusals.get((method, url.path)):
            return statuses.pop(0), {"kind": "Status", "message": "refused"}
        if method == "POST":
            self.created.append((url.path, body))
            return 201, body
        found = self.objects.get(url.path)
        if found is None:
            return 404, {"kind": "Status", "message": "not found"}
        if method == "PATCH":
            self.patches.append((url.path, headers["Content-Type"], body))
            return self._patch(found, headers["Content-Type"], body)
        return 200, found if "spec" in found else self._page(found, url.query)

    def _patch(self, found: Object, content_type: str, body: Any) -> tuple[int, Any]:
        if content_type == "application/merge-patch+json":
            found["spec"] |= body["spec"]
            return 200, found
        for step in body:
            assert step["path"] == "/spec/replicas"
            if step["op"] == "test" and found["spec"]["replicas"] != step["value"]:
                return 422, {"kind": "Status", "message": "the test failed"}
            if step["op"] == "replace":
                found["spec"]["replicas"] = step["value"]
        return 200, found

    def _page(self, found: list[Object], text: str) -> Object:
        """Return one page of two objects that the selectors match."""
        query = {key: values[0] for key, values in parse_qs(text).items()}
        matches = [each for each in found if _matches(each, query)]
        start = int(query.get("continue", "0"))
        # The API server takes no resource version with the rest of a list.
        assert not {"resourceVersion", "continue"} <= query.keys()
        rest = start + 2
        metadata = {"continue": str(rest)} if rest < len(matches) else {}
        return {"metadata": metadata, "items": matches[start:rest]}


def _matches(each: Object, query: Mapping[str, str]) -> bool:
    label, _, value = query.get("labelSelector", "").partition("=")
    if label and each["metadata"].get("labels", {}).get(label) != value:
        return False
    for term in filter(None, query.get("fieldSelector", "").split(",")):
        path, operator, value = re.split("(!?=)", term)
        part, key = path.split(".")
        assert path in ("spec.nodeName", "metadata.namespace")
        if (each[part].get(key) == value) == (operator == "!="):
            return False
    return True


@contextmanager
def serve(fake: FakeKubernetes) -> Generator[FakeKubernetes]:
    """Let ``fake`` answer at its ``url`` meanwhile."""

    class Handler(BaseHTTPRequestHandler):
        def _handle(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            status, answer = fake.answer(self.command, self.path, dict(self.headers), body)
            text = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_PATCH = do_POST = _handle  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    fake.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield fake
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
