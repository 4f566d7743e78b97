"""The rendezvous backend ``etcd-v3`` of torchrun.

torch's own etcd backends speak the v2 API, which etcd 3.6 no longer has, through an unmaintained
client. This backend speaks v3, to etcd 3.4 and later::

    torchrun --rdzv-backend etcd-v3 --rdzv-endpoint etcd-client:2379 --rdzv-id JOB-ATTEMPT ...

Source: https://docs.pytorch.org/docs/stable/elastic/rendezvous.html
"""

import math
import random
import time
import zlib

from torch.distributed.elastic.rendezvous.api import RendezvousHandler, RendezvousParameters
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import (
    RendezvousBackend,
    create_handler,
)

from ultrascale_training.rendezvous.etcd_keys import JobKeys, Value
from ultrascale_training.rendezvous.etcd_options import keys_of
from ultrascale_training.rendezvous.etcd_store import EtcdStore

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
