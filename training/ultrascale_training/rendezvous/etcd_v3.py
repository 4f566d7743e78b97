"""The rendezvous backend ``etcd-v3`` of torchrun, the store of its agents, and its options.

torch's own etcd backends speak the v2 API, which etcd 3.6 no longer has, through an unmaintained
client. This backend speaks v3, to etcd 3.4 and later::

    torchrun --rdzv-backend etcd-v3 --rdzv-endpoint etcd-client:2379 --rdzv-id JOB-ATTEMPT ...

Source: https://docs.pytorch.org/docs/stable/elastic/rendezvous.html
"""

import math
import random
import ssl
import time
import uuid
import zlib
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

from torch.distributed import DistStoreError, Store
from torch.distributed.elastic.rendezvous.api import RendezvousHandler, RendezvousParameters
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import (
    RendezvousBackend,
    create_handler,
)
from torch.distributed.elastic.rendezvous.utils import parse_rendezvous_endpoint

from ultrascale_training.rendezvous.etcd_client import EtcdClient
from ultrascale_training.rendezvous.etcd_keys import JobKeys, Value

# --- Options of the connection to etcd: ``--rdzv-endpoint`` and ``--rdzv-conf`` -------------------


_PORT = 2379
_FILES = ("ca_cert", "ssl_cert", "ssl_cert_key")
# Seconds: default, and shortest useful value. The server rounds a shorter lease up.
_SECONDS = {"read_timeout": (10, 1), "retry_timeout": (300, 1), "lease_ttl": (600, 5)}


def keys_of(params: RendezvousParameters) -> JobKeys:
    """Return the keys of the job in ``params``; nothing is sent yet.

    The endpoint is one or more ``host[:port]``, separated by commas. The keys of ``--rdzv-conf``
    are those of torch's etcd-v2 backend, ``protocol`` (http or https), ``ca_cert``, ``ssl_cert``,
    ``ssl_cert_key`` and ``read_timeout`` (10), and ``retry_timeout`` (300) and ``lease_ttl`` (600).

    Raises:
        ValueError: An option is wrong; the message lists all mistakes.
    """
    mistakes: list[str] = []
    endpoints = list(_endpoints(params.endpoint, mistakes))
    seconds = {key: _seconds(params, key, mistakes) for key in _SECONDS}
    mistakes += _conflicts(params)
    if mistakes:
        raise ValueError("rendezvous backend etcd-v3: " + "; ".join(mistakes))
    client = EtcdClient(
        endpoints,
        tls=_tls(params),
        read_timeout=seconds["read_timeout"],
        retry_timeout=seconds["retry_timeout"],
    )
    return JobKeys(client, params.run_id, ttl=seconds["lease_ttl"])


def _endpoints(text: str, mistakes: list[str]) -> Iterator[str]:
    for part in text.split(","):
        if not part.strip():
            mistakes.append(f"--rdzv-endpoint: no host in {text!r}; write host:port[,host:port]")
            continue
        try:
            host, port = parse_rendezvous_endpoint(part.strip(), default_port=_PORT)
        except ValueError as error:
            mistakes.append(f"--rdzv-endpoint: {error}")
        else:
            yield f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _seconds(params: RendezvousParameters, key: str, mistakes: list[str]) -> int:
    default, shortest = _SECONDS[key]
    try:
        value = int(params.get(key, default))
    except ValueError:
        value = 0
    if value < shortest:
        mistakes.append(
            f"{key}: not a time, got {params.get(key)!r}; write whole seconds, {shortest} or more"
        )
    return value


def _conflicts(params: RendezvousParameters) -> Iterator[str]:
    protocol = params.get("protocol", "http")
    if protocol not in ("http", "https"):
        yield f"protocol: unknown, got {protocol!r}; write http or https"
    for key in filter(params.get, _FILES):
        if protocol == "http":
            yield f"{key}: means nothing over http; add protocol=https"
        if not Path(params.get(key)).is_file():
            yield f"{key}: no such file, got {params.get(key)!r}; mount it into the pod"
    if params.get("ssl_cert_key") and not params.get("ssl_cert"):
        yield "ssl_cert_key: needs ssl_cert; add it"
    for key in filter(params.get, ("user", "password_file")):
        yield f"{key}: etcd's own users are not supported; let etcd ask for certificates: ssl_cert"


def _tls(params: RendezvousParameters) -> ssl.SSLContext | None:
    if params.get("protocol", "http") == "http":
        return None
    context = ssl.create_default_context(cafile=params.get("ca_cert"))
    if certificate := params.get("ssl_cert"):
        # The certificate's own file may contain the key.
        context.load_cert_chain(certificate, params.get("ssl_cert_key"))
    return context


# --- Store in which torchrun's agents of a job tell each other their ranks ------------------------


_FIRST_WAIT_SECONDS = 0.05
_LONGEST_WAIT_SECONDS = 0.5
_FOLDER = "store"


class EtcdStore(Store):
    """A c10d store of a job in etcd, with the methods that torchrun's agents call.

    The store polls for a key at growing intervals: a watch would cost etcd a stream for each
    waiting node, and would end with its member. torch's base class builds the methods for several
    keys from `get` and `set`.

    Source: https://github.com/pytorch/pytorch/blob/v2.13.0/torch/distributed/elastic/utils/store.py
    """

    def __init__(self, keys: JobKeys) -> None:
        super().__init__()
        self._keys = keys

    def set(self, key: str, value: str | bytes) -> None:
        """Write ``value`` under ``key``."""
        self._keys.write(_FOLDER, key, data=value.encode() if isinstance(value, str) else value)

    def get(self, key: str) -> bytes:
        """Return the value of ``key`` once somebody has written it.

        Raises:
            DistStoreError: Nobody wrote it within the store's timeout.
        """
        return self._value_once_written(key, self.timeout, time.monotonic()).data

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until somebody has written each of ``keys``.

        Raises:
            DistStoreError: A key is missing after ``timeout``, by default the store's own.
        """
        start = time.monotonic()
        for key in keys:
            self._value_once_written(key, self.timeout if timeout is None else timeout, start)

    def add(self, key: str, amount: int) -> int:
        """Count ``key`` up by one, exactly once, and return the count.

        Each call writes a key of its own. So nodes that count at the same moment, as all nodes of a
        job do at its end, never collide, and a call that arrives twice because its answer was lost
        counts once.

        Raises:
            ValueError: The amount is one that no agent of torchrun adds.
        """
        if amount != 1:
            raise ValueError(f"a counter in etcd goes up by 1, got {amount}")
        _, mark = self._keys.write(_FOLDER, key, str(uuid.uuid4()), data=b"")
        assert mark is not None
        return self._keys.count_at(mark.created, _FOLDER, key)

    def _value_once_written(self, key: str, timeout: timedelta, start: float) -> Value:
        wait = _FIRST_WAIT_SECONDS
        while (value := self._keys.read(_FOLDER, key)) is None:
            left = start + timeout.total_seconds() - time.monotonic()
            if left <= 0:
                raise DistStoreError(
                    f"nobody wrote the key {key!r} within {timeout.total_seconds():g} s"
                )
            time.sleep(min(wait * random.uniform(0.7, 1.3), left))
            wait = min(1.5 * wait, _LONGEST_WAIT_SECONDS)
        return value


# --- The rendezvous backend ``etcd-v3`` of torchrun -----------------------------------------------


NAME = "etcd-v3"

# Bytes a second that all nodes of a job together may write to one etcd member.
_HEARTBEATS_PER_SECOND = 50
_HEARTBEAT_BYTES_PER_SECOND = 2_000_000
# Compressed bytes of torch's state for each node; about 70 uncompressed.
_STATE_BYTES_PER_NODE = 10
_HEARTBEAT_SECONDS = 5
_COLLISION_SECONDS = 0.01
_MOST_COLLISIONS = 8
_STATE = "state"


class EtcdV3Backend(RendezvousBackend):
    """Backend that stores the state of a rendezvous under one key of etcd."""

    def __init__(self, keys: JobKeys) -> None:
        self._keys = keys
        self._seen: Value | None = None
        self._collisions = 0

    @property
    def name(self) -> str:
        """See base class."""
        return NAME

    def get_state(self) -> tuple[bytes, int] | None:
        """See base class."""
        self._keys.renew()
        self._seen = self._keys.read(_STATE, known=self._seen)
        return self._seen and (zlib.decompress(self._seen.data), self._seen.revision)

    def set_state(self, state: bytes, token: object = None) -> tuple[bytes, int, bool] | None:
        """See base class."""
        self._keys.renew()
        packed = zlib.compress(state, level=1)
        revision = token if isinstance(token, int) else 0
        written, held = self._keys.write(_STATE, data=packed, revision=revision)
        # If the answer to a write was lost, the write was sent again.
        written = written or (held is not None and held.data == packed)
        if written:
            self._collisions = 0
        else:
            # torch retries at once, and of all nodes that write together only one succeeds. So the
            # others wait random times, which grow with each failure.
            self._collisions = min(self._collisions + 1, _MOST_COLLISIONS)
            time.sleep(random.uniform(0, _COLLISION_SECONDS * 2**self._collisions))
            held = self._keys.read(_STATE, known=held)
        self._seen = held
        return held and (zlib.decompress(held.data), held.revision, written)


def create(params: RendezvousParameters) -> RendezvousHandler:
    """Return the rendezvous handler of a job.

    ``--rdzv-conf`` takes torch's own keys, and the keys of `keys_of`.

    Raises:
        ValueError: An option is wrong; the message lists all mistakes.
    """
    keys = keys_of(params)
    params.config.setdefault("keep_alive_interval", heartbeat_seconds(params.max_nodes))
    return create_handler(EtcdStore(keys), EtcdV3Backend(keys), params)


def heartbeat_seconds(nodes: int) -> int:
    """Return the seconds between two heartbeats of each of ``nodes``.

    A heartbeat rewrites the state of all nodes, and etcd keeps the old state until the next
    compaction: torch's 5 seconds would fill etcd's quota within the hour at 1,000 nodes.
    """
    rate = min(
        _HEARTBEATS_PER_SECOND, _HEARTBEAT_BYTES_PER_SECOND / (_STATE_BYTES_PER_NODE * nodes)
    )
    return max(_HEARTBEAT_SECONDS, math.ceil(nodes / rate))
