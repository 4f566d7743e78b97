"""Callers of the backend: service accounts of a stub cluster, and people of an issuer."""

import json
import ssl
import time
from base64 import urlsafe_b64encode
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import IPv4Address
from pathlib import Path
from threading import Thread
from typing import Any, cast

import jwt
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID
from jwt.algorithms import RSAAlgorithm

from tests.support.stub_api_server import Object, RefusedError, Request, StubApiServer

AUDIENCE = "ultrascale-backend"
HOUR = 3600


class SigningKey:
    """A private key by which tokens are signed."""

    def __init__(self, key_id: str) -> None:
        self.id = key_id
        self.private = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    @property
    def public_pem(self) -> bytes:
        return self.private.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )

    @property
    def jwk(self) -> dict[str, Any]:
        published = RSAAlgorithm.to_jwk(self.private.public_key(), as_dict=True)
        return {**published, "kid": self.id, "use": "sig", "alg": "RS256"}

    def sign(self, claims: dict[str, Any]) -> str:
        return jwt.encode(claims, self.private, algorithm="RS256", headers={"kid": self.id})


def unsigned(header: dict[str, Any], claims: dict[str, Any]) -> str:
    """Return a token without a signature, whatever its header says."""
    parts = (json.dumps(part).encode() for part in (header, claims))
    return ".".join(urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts) + "."


class ReviewingServer(StubApiServer):
    """An API server that knows its service accounts by their tokens.

    Attributes:
        lacks: Whether its clients have no right to ask it whose a token is.
        away: Whether it answers no such question.
        knows_audiences: Whether it judges for an audience; an old authenticator does not.
        deleted: Tokens whose pods are gone.
    """

    def __init__(self) -> None:
        super().__init__()
        self.groups |= {"/apis/authentication.k8s.io/v1", "/apis/authorization.k8s.io/v1"}
        self.key = SigningKey("cluster")
        self.lacks = self.away = False
        self.knows_audiences = True
        self.deleted: set[str] = set()

    def token_of(self, account: str = "web:web", **changes: Any) -> str:
        """Return what the kubelet projects into a pod of an account, as NAMESPACE:NAME."""
        now = int(time.time())
        claims = {
            "iss": "https://kubernetes.default.svc",
            "sub": f"system:serviceaccount:{account}",
            "aud": [AUDIENCE],
            "iat": now,
            "nbf": now,
            "exp": now + HOUR,
        }
        return self.key.sign({**claims, **changes})

    def reviews(self) -> list[Request]:
        """Return the questions whose a token is."""
        return self.asked("POST", "/tokenreviews")

    def _answer(self, request: Request) -> tuple[int, Object]:
        if request.path.endswith("/selfsubjectaccessreviews"):
            return 201, {"status": {"allowed": not self.lacks}}
        if request.path.endswith("/tokenreviews"):
            self._authenticate(request)
            if self.lacks:
                raise RefusedError(403, "cannot create resource tokenreviews", "Forbidden")
            if self.away:
                raise RefusedError(503, "etcd has no leader", "ServiceUnavailable")
            return 201, {"status": self._review(request.body["spec"])}
        return super()._answer(request)

    def _review(self, spec: dict[str, Any]) -> Object:
        token, audiences = spec["token"], spec["audiences"]
        options = {"verify_aud": self.knows_audiences}
        try:
            claims = jwt.decode(
                token,
                self.key.public_pem,
                algorithms=["RS256"],
                audience=audiences if self.knows_audiences else None,
                options=cast("Any", options),
            )
        except jwt.PyJWTError as error:
            return {"authenticated": False, "error": f"invalid bearer token, {error}"}
        if token in self.deleted:
            return {"authenticated": False, "error": "Token has been invalidated"}
        namespace = claims["sub"].split(":")[2] if claims["sub"].count(":") == 3 else ""
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
        status: Object = {
            "authenticated": True,
            "user": {"username": claims["sub"], "groups": [*groups, "system:authenticated"]},
        }
        return {**status, "audiences": audiences} if self.knows_audiences else status


class IssuerServer:
    """An OpenID Connect issuer, over TLS."""

    def __init__(self, folder: Path) -> None:
        self.url = ""  # Its URL
        self.ca_file = folder / "issuer.pem"  # The certificate authority of its server
        self.keys = [SigningKey("one")]  # The keys that it publishes
        self.asked: list[str] = []  # Paths that it was asked for
        self.away = False  # Whether it answers with an error
        self._certify()

    def token_of(self, user: str = "ada", groups: Sequence[str] = (), **changes: Any) -> str:
        """Return a token of a user; a claim that changes to None is left out."""
        claims = self.claims(user, groups, **changes)
        return self.keys[-1].sign(claims)

    def claims(self, user: str, groups: Sequence[str] = (), **changes: Any) -> dict[str, Any]:
        now = int(time.time())
        stated = {
            "iss": self.url,
            "sub": user,
            "aud": "jobs",
            "iat": now,
            "exp": now + HOUR,
            "groups": [*groups],
        }
        return {key: value for key, value in {**stated, **changes}.items() if value is not None}

    def answer(self, path: str) -> dict[str, Any] | None:
        self.asked.append(path)
        if self.away:
            return None
        if path == "/.well-known/openid-configuration":
            return {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}
        return {"keys": [key.jwk for key in self.keys]} if path == "/keys" else None

    @contextmanager
    def serve(self) -> Generator["IssuerServer"]:
        """Answer at `url` meanwhile."""
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                found = issuer.answer(self.path)
                self.send_response(503 if found is None else 200)
                self.end_headers()
                self.wfile.write(json.dumps(found).encode())

            def log_message(self, format: str, *args: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.ca_file)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        self.url = f"https://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def _certify(self) -> None:
        """Write a key and a certificate that it signs itself."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "issuer")])
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(1)
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(
                x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]),
                critical=False,
            )
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        self.ca_file.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
