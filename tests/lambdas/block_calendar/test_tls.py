"""The certificate by which the block calendar knows its API server."""

import base64
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from ultrascale.lambdas.kubernetes import tls_context

HOST = "0123456789.gr7.us-west-2.eks.amazonaws.com"


@pytest.fixture(autouse=True)
def as_in_python_3_13(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let contexts be strict, as they are in the runtime of AWS Lambda."""
    create = ssl.create_default_context

    def strict(*, cadata: str) -> ssl.SSLContext:
        context = create(cadata=cadata)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", strict)


def openssl(*args: object) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    subprocess.run(["openssl", *map(str, args)], check=True, capture_output=True)


def authority(folder: Path, name: str) -> str:
    """Make an authority as EKS makes them, and return its certificate in base64."""
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    configuration = folder / f"{name}.cnf"
    configuration.write_text(
        "[req]\ndistinguished_name=name\nprompt=no\nx509_extensions=authority\n"
        "[name]\nCN=kubernetes\n"
        "[authority]\nbasicConstraints=critical,CA:TRUE\n"
        "subjectKeyIdentifier=none\nauthorityKeyIdentifier=none\n"
    )
    files = ("-keyout", folder / f"{name}.key", "-out", folder / f"{name}.crt")
    openssl("req", "-x509", "-config", configuration, *key, "-days", "2", *files)
    return base64.b64encode((folder / f"{name}.crt").read_bytes()).decode()


def server(folder: Path, signed_by: str) -> ssl.SSLContext:
    """Return the context of a server at `HOST`."""
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    request, certificate, private = (folder / f"server.{end}" for end in ("csr", "crt", "key"))
    openssl("req", *key, "-subj", "/CN=kube-apiserver", "-keyout", private, "-out", request)
    extensions = folder / "server.cnf"
    extensions.write_text(f"subjectAltName=DNS:{HOST}\nauthorityKeyIdentifier=none\n")
    signer = ("-CA", folder / f"{signed_by}.crt", "-CAkey", folder / f"{signed_by}.key")
    openssl(
        *("x509", "-req", "-in", request, *signer, "-CAcreateserial", "-days", "2"),
        *("-extfile", extensions, "-out", certificate),
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, private)
    return context


def shake_hands(client: ssl.SSLContext, server: ssl.SSLContext, host: str = HOST) -> None:
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(back, there, server_hostname=host),
        server.wrap_bio(there, back, server_side=True),
    ]
    for _ in range(4):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert ends[0].version() == "TLSv1.3"


def test_the_authority_of_the_cluster_is_trusted_though_it_has_no_key_identifiers(
    tmp_path: Path,
) -> None:
    context = tls_context(authority(tmp_path, "cluster"))
    shake_hands(context, server(tmp_path, "cluster"))


def test_no_other_authority_and_no_other_host_is_trusted(tmp_path: Path) -> None:
    context = tls_context(authority(tmp_path, "cluster"))
    authority(tmp_path, "other")
    assert len(context.get_ca_certs()) == 1
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(context, server(tmp_path, "other"))
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        shake_hands(context, server(tmp_path, "cluster"), host="elsewhere.example")
