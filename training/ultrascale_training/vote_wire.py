"""Connections between voting workers, and the messages on these connections.

A message is a line of JSON, a list that begins with its kind. ``answer`` and
``probe`` go down the tree, ``vote`` and ``suspects`` go up, ``lost`` and ``bye`` go both ways;
``hello`` is the first message.
"""

import json
import os
import socket
from contextlib import suppress

_LONGEST_LINE = 1 << 26
# A node that loses its power closes no connection. A node that acknowledges nothing for a minute
# counts as gone; Linux would wait for a quarter of an hour, or two hours when nothing is sent.
# Source: https://man7.org/linux/man-pages/man7/tcp.7.html
_OPTIONS = (
    (socket.TCP_NODELAY, 1),
    (socket.TCP_KEEPIDLE, 20),
    (socket.TCP_KEEPINTVL, 10),
    (socket.TCP_KEEPCNT, 4),
    (socket.TCP_USER_TIMEOUT, 60_000),
)


class Peer:
    """A connection to the worker above or to a worker below this one."""

    def __init__(self, connection: socket.socket, *, rank: int = -1, node: str = "?") -> None:
        for option, value in _OPTIONS:
            connection.setsockopt(socket.IPPROTO_TCP, option, value)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self.connection = connection
        self.rank, self.node = rank, node
        self.known = False
        self.left = False
        self._rest = bytearray()

    def send(self, *message: object) -> None:
        """Send a message; only the reader of the connection notices a failure."""
        with suppress(OSError):
            self.connection.sendall(json.dumps(message).encode() + b"\n")

    def receive(self) -> list[bytearray] | None:
        """Return the messages that have arrived; None after the end of the connection."""
        try:
            received = self.connection.recv(1 << 16)
        except OSError:
            return None
        self._rest += received
        if not received or len(self._rest) > _LONGEST_LINE:
            return None
        if b"\n" not in received:
            return []
        *lines, self._rest = self._rest.split(b"\n")
        return lines


def own_address() -> str:
    """Return this machine's address on the route to the first worker."""
    master = os.environ.get("MASTER_ADDR", "localhost")
    family, _, _, _, address = socket.getaddrinfo(master, 9, type=socket.SOCK_DGRAM)[0]
    # Connecting a datagram socket sends nothing; it only selects a route.
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(address)
        return str(probe.getsockname()[0])


def family(address: str) -> int:
    """Return the socket family of an IP address."""
    return socket.AF_INET6 if ":" in address else socket.AF_INET
