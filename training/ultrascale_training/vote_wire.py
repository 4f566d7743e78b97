"""Connections between workers that vote, and the frames that go over them."""

import os
import socket
import struct
from contextlib import suppress
from enum import IntEnum
from typing import NamedTuple

# Kind, bytes of the payload, number of the vote, a number.
_HEAD = struct.Struct("!BIQI")
_BIGGEST = 1 << 26
# A node that loses its power ends no connection: one that acknowledges nothing for a minute has
# gone, where Linux would wait for a quarter of an hour, or for two when nothing is sent.
# Source: https://man7.org/linux/man-pages/man7/tcp.7.html
_OPTIONS = (
    (socket.TCP_NODELAY, 1),
    (socket.TCP_KEEPIDLE, 20),
    (socket.TCP_KEEPINTVL, 10),
    (socket.TCP_KEEPCNT, 4),
    (socket.TCP_USER_TIMEOUT, 60_000),
)


class Kind(IntEnum):
    """Kinds of frames: down the tree go answers and probes, up go votes and suspects."""

    HELLO = 0
    VOTE = 1
    ANSWER = 2
    LOST = 3
    PROBE = 4
    SUSPECTS = 5
    BYE = 6


class Frame(NamedTuple):
    """A message.

    Attributes:
        vote: Number of the vote, from 0.
        number: Workers that wish to stop, a rank, or milliseconds, by the kind.
        payload: Times, suspects or text, by the kind.
    """

    kind: Kind
    vote: int
    number: int
    payload: bytes


class Peer:
    """A connection to a worker above or below this one."""

    def __init__(self, connection: socket.socket, *, rank: int = -1, node: str = "?") -> None:
        for option, value in _OPTIONS:
            connection.setsockopt(socket.IPPROTO_TCP, option, value)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self.connection = connection
        self.rank, self.node = rank, node
        self.known = False
        self.left = False
        self._received = bytearray()

    def send(self, kind: Kind, *, index: int = 0, number: int = 0, payload: bytes = b"") -> None:
        """Send a frame; one that cannot be sent is noticed by who reads from the connection."""
        with suppress(OSError):
            self.connection.sendall(_HEAD.pack(kind, len(payload), index, number) + payload)

    def receive(self) -> list[Frame] | None:
        """Return the frames that have come, None at the end of the connection."""
        try:
            received = self.connection.recv(1 << 16)
        except OSError:
            return None
        if not received:
            return None
        self._received += received
        frames: list[Frame] = []
        while len(self._received) >= _HEAD.size:
            kind, length, index, number = _HEAD.unpack_from(self._received)
            if length > _BIGGEST or kind >= len(Kind):
                return None
            end = _HEAD.size + length
            if len(self._received) < end:
                break
            frames.append(Frame(Kind(kind), index, number, bytes(self._received[_HEAD.size : end])))
            del self._received[:end]
        return frames


def own_address() -> str:
    """Return the address of this machine on the way to the first worker."""
    master = os.environ.get("MASTER_ADDR", "localhost")
    family, _, _, _, address = socket.getaddrinfo(master, 9, type=socket.SOCK_DGRAM)[0]
    # A datagram socket that connects sends nothing; it only picks a route.
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(address)
        return str(probe.getsockname()[0])


def family(address: str) -> int:
    """Return the family of sockets for an IP address."""
    return socket.AF_INET6 if ":" in address else socket.AF_INET
