"""A registry on loopback with one chart in it, as `helm push` leaves one.

Source: https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md
Source: https://helm.sh/docs/topics/registries/
"""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.cncf.helm.config.v1+json"
_LAYER = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"


@contextmanager
def serve_chart(archive: Path, name: str, version: str) -> Generator[tuple[str, str]]:
    """Serve a packed chart while the context is open; return its location and its digest."""
    config = json.dumps({"name": name, "version": version, "apiVersion": "v2"}).encode()
    blobs = {_digest(content): content for content in (config, archive.read_bytes())}
    (of_config, of_layer) = blobs
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": _described(_CONFIG, of_config, blobs[of_config]),
            "layers": [_described(_LAYER, of_layer, blobs[of_layer])],
        }
    ).encode()
    digest = _digest(manifest)

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer(body=False)

        def do_GET(self) -> None:
            self._answer(body=True)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

        def _answer(self, *, body: bool) -> None:
            folder, _, wanted = self.path.rpartition("/")
            found = blobs.get(wanted) if folder.endswith("/blobs") else None
            if folder.endswith("/manifests") and wanted in (version, digest):
                found = manifest
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Length", str(len(found or b"")))
            self.send_header("Content-Type", _MANIFEST)
            self.send_header("Docker-Content-Digest", _digest(found or b""))
            self.end_headers()
            if body:
                self.wfile.write(found or b"")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"oci://127.0.0.1:{server.server_port}/mirror/{name}", digest
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _digest(content: bytes) -> str:
    return f"sha256:{sha256(content).hexdigest()}"


def _described(media: str, digest: str, content: bytes) -> dict[str, object]:
    return {"mediaType": media, "digest": digest, "size": len(content)}
