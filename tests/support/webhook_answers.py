"""A server that stands in for the webhooks of charts whose pods do not run: it allows everything.

The API server reaches it by the addresses of the webhooks' Services, which an EndpointSlice gives
each, so it has to take those itself: kube-apiserver with `--enable-aggregator-routing=true`.
"""

import base64
import json
import ssl
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Document = dict[str, Any]
_PORT = 29443


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asked = review["request"]
        answer: Document = {"uid": asked["uid"], "allowed": True}
        if review["kind"] == "ConversionReview":
            version = asked["desiredAPIVersion"]
            objects = [{**each, "apiVersion": version} for each in asked["objects"]]
            result = {"status": "Success"}
            answer = {"uid": asked["uid"], "convertedObjects": objects, "result": result}
        text = json.dumps({**review, "request": None, "response": answer}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:
        pass


class WebhookAnswers:
    """The server, at an address of this machine."""

    def __init__(self, address: str, port: int, authority: bytes) -> None:
        self._address, self._port = address, port
        self.authority = base64.b64encode(authority).decode()

    def slice(self, namespace: str, service: str, names: Iterable[str]) -> Document:
        """Return the endpoint of a Service with ports of these names."""
        return {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": f"{service}-answers",
                "namespace": namespace,
                "labels": {"kubernetes.io/service-name": service},
            },
            "addressType": "IPv4",
            "endpoints": [{"addresses": [self._address], "conditions": {"ready": True}}],
            "ports": [{"name": n, "port": self._port, "protocol": "TCP"} for n in sorted(names)],
        }


@contextmanager
def answer_webhooks(address: str, folder: Path) -> Generator[WebhookAnswers]:
    """Let the server answer at ``address`` meanwhile, for the Services of every namespace."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "answers")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName(f"{each}.svc") for each in _SERVICES]),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    certificate = signed.public_bytes(serialization.Encoding.PEM)
    own = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (folder / "answers.pem").write_bytes(own + certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "answers.pem")
    server = ThreadingHTTPServer((address, _PORT), _Handler)
    server.daemon_threads = True
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        yield WebhookAnswers(address, server.server_port, certificate)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


# A name of a certificate may be a wildcard in its first part alone: `*.kueue-system.svc`.
_SERVICES = [
    f"*.{namespace}"
    for namespace in (
        *("aws-hyperpod", "envoy-gateway-system", "jobset-system", "keda", "kube-system"),
        *("kubeflow", "kueue-system", "lws-system", "volcano-system", "default"),
    )
]
