"""An API server that tells the labels of nodes to pods that have a token."""

import http.server
import json
import socket
import ssl
import subprocess
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar


class Nodes(http.server.BaseHTTPRequestHandler):
    """An API server with the Nodes of a cluster."""

    labels: ClassVar[dict[str, dict[str, str]]] = {}
    asked: ClassVar[list[dict[str, str]]] = []

    def do_GET(self) -> None:
        self.asked.append({"path": self.path, **self.headers})
        node = self.path.removeprefix("/api/v1/nodes/").partition("?")[0]
        found = self.labels.get(node)
        self.send_response(200 if found is not None else 403)
        self.end_headers()
        self.wfile.write(json.dumps({"metadata": {"labels": found}}).encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the test's output clean."""


class Server(http.server.ThreadingHTTPServer):
    context: ssl.SSLContext

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        return self.context.wrap_socket(connection, server_side=True), address


@contextmanager
def node_reader(folder: Path) -> Generator[Path]:
    """Yield ``folder`` with a pod's token, for the API server whose port is in the file `port`."""
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt"),
            *("ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/O=api"),
            *("-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key", "-out", "ca.crt"),
        ],
        check=True,
        capture_output=True,
        cwd=folder,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "ca.crt", folder / "key")
    (folder / "token").write_text("secret\n")
    with Server(("127.0.0.1", 0), Nodes) as server:
        server.context = context
        serving = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        serving.start()
        (folder / "port").write_text(str(server.server_port))
        yield folder
        server.shutdown()


def variables(account: Path, node: str) -> dict[str, str]:
    """Return the variables by which a pod on ``node`` finds the API server."""
    return {
        "ULTRASCALE_NODE": node,
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": (account / "port").read_text(),
    }
