"""A remote shell between the pods of one check, in place of ssh.

mpirun and nccom-test start their processes on other nodes by `ssh HOST COMMAND`. Pods have no sshd
and no keys; each runs this server for the time of the check. It takes commands from clients that
know the token of the check, which the first pod makes and gives to the others.

Source: https://docs.open-mpi.org/en/v5.0.x/launching-apps/ssh.html
"""

import hmac
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import BinaryIO, cast

TOKEN, PEERS = "FABRIC_TOKEN", "FABRIC_PEERS"
_CONNECT_SECONDS = 30
_MOST_BYTES = 2**20
# Options of ssh that take a value.
_WITH_VALUE = frozenset("bcDEeFIiJLlmOoPpQRSWw")


class Server:
    """Runs commands for pods that know the token."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._socket = socket.create_server(("", 0))
        self.port: int = self._socket.getsockname()[1]  # TCP port on which it listens
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, cast("BinaryIO", connection.makefile("rwb")) as stream:
            try:
                asked = read(stream)
            except (OSError, ValueError):
                return
            if not is_token(asked.get("token"), self._token):
                return
            # The daemon of Open MPI stays and holds the pipe: its parent's end ends the command.
            with subprocess.Popen(
                ["bash", "-c", str(asked["command"])],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            ) as process:
                threading.Thread(target=_end_with, args=(connection, process), daemon=True).start()
                reader = threading.Thread(target=_pass_on, args=(process, stream), daemon=True)
                reader.start()
                status = process.wait()
                reader.join(timeout=1)
                if process.stdout is not None and not reader.is_alive():
                    process.stdout.close()
            _write(stream, {"status": status})


def read(stream: BinaryIO) -> dict[str, object]:
    """Return a message, which is one line.

    Raises:
        OSError: The connection is broken.
        ValueError: The connection was closed, or the line is no message.
    """
    line = stream.readline(_MOST_BYTES)
    message = json.loads(line) if line else None
    if not isinstance(message, dict):
        raise ValueError("no message")
    return cast("dict[str, object]", message)


def is_token(said: object, token: str) -> bool:
    """Return whether the other side has sent the token."""
    return hmac.compare_digest(str(said or "").encode(), token.encode())


def _end_with(connection: socket.socket, process: subprocess.Popen[bytes]) -> None:
    """End a command whose caller has gone.

    A measurement after its timeout would hold this node's devices, and spoil the next one.
    """
    with suppress(OSError):
        # Callers send nothing more: `recv` returns at the end of the connection.
        connection.recv(1)
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _pass_on(process: subprocess.Popen[bytes], stream: BinaryIO) -> None:
    for line in process.stdout or ():
        _write(stream, {"line": line.decode(errors="replace")})


def _write(stream: BinaryIO, message: Mapping[str, object]) -> None:
    try:
        stream.write(json.dumps(message).encode() + b"\n")
        stream.flush()
    except (OSError, ValueError):
        pass


def call(host: str, command: str) -> int:
    """Run a command on a peer, print what it prints, and return its exit status.

    Raises:
        KeyError: The host is no peer.
        OSError: The peer cannot be reached.
    """
    address, _, port = json.loads(os.environ[PEERS])[host].rpartition(":")
    with socket.create_connection((address, int(port)), timeout=_CONNECT_SECONDS) as connection:
        connection.settimeout(None)
        with cast("BinaryIO", connection.makefile("rwb")) as stream:
            _write(stream, {"token": os.environ[TOKEN], "command": command})
            for line in stream:
                message = json.loads(line)
                if "status" in message:
                    return int(message["status"])
                sys.stdout.write(message["line"])
                sys.stdout.flush()
    return 255


def main(arguments: Sequence[str]) -> int:
    """Take the place of ssh: skip its options, then a host and a command."""
    words = [*arguments]
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if len(option) == 2 and option[1] in _WITH_VALUE and words:
            words.pop(0)
    host, *command = words
    return call(host.rpartition("@")[2], " ".join(command))
