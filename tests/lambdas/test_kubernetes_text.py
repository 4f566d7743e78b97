"""Answers of pods behind the API server: no pod may end the function that asks all of them."""

import socket
import ssl
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from itertools import repeat
from threading import Thread

import pytest

from ultrascale.lambdas.kubernetes import KubernetesApi, KubernetesError

HEAD = b"HTTP/1.1 200 OK\r\n"


@contextmanager
def answering(*parts: bytes, pause: float = 0, last: bytes = b"") -> Generator[KubernetesApi]:
    """Answer one request with ``parts``, and with ``last`` until the client leaves."""

    def answer() -> None:
        client, _ = listener.accept()
        with client, suppress(OSError):
            client.recv(65536)
            for part in parts:
                client.sendall(part)
            for part in repeat(last) if last else ():
                client.sendall(part)
                time.sleep(pause)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = Thread(target=answer, daemon=True)
        thread.start()
        port = listener.getsockname()[1]
        context = ssl.create_default_context()
        yield KubernetesApi(endpoint=f"http://127.0.0.1:{port}", context=context, token="own")
        thread.join(5)


def test_an_answer_of_a_pod_is_read_whole() -> None:
    with answering(HEAD, b"Content-Length: 6\r\n\r\n", b"abc", b"def") as api:
        assert api.text("/metrics", timeout=2) == "abcdef"


@pytest.mark.parametrize(
    ("parts", "last", "pause", "why"),
    [
        ((HEAD, b"\r\n"), b"x" * 2**20, 0, "longer than"),
        ((HEAD, b"\r\n"), b"x", 0.02, "took longer"),
        ((HEAD, b"Transfer-Encoding: chunked\r\n\r\n5\r\nab"), b"", 0, "IncompleteRead"),
        ((b"nonsense\r\n\r\n",), b"", 0, "BadStatusLine"),
    ],
    ids=["endless", "in drops", "cut off", "no HTTP"],
)
def test_an_answer_without_an_end_counts_as_none(
    parts: tuple[bytes, ...], last: bytes, pause: float, why: str
) -> None:
    with answering(*parts, last=last, pause=pause) as api, pytest.raises(OSError, match=why):
        api.text("/metrics", timeout=0.3)


def test_a_pod_that_asks_for_a_password_is_not_asked_again() -> None:
    """The API server's own 401 is worth a wait; each of a pod's would take 20 seconds."""
    head = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"
    started = time.monotonic()
    with answering(head) as api, pytest.raises(KubernetesError, match="401"):
        api.text("/metrics", timeout=1)
    assert time.monotonic() - started < 2
