"""The rendezvous backend ``etcd-v3`` of torchrun.

torch's own etcd backends speak the v2 API, which etcd 3.6 no longer has, through a client that
nobody keeps up. This one speaks v3, to etcd 3.4 and later::

    torchrun --rdzv-backend etcd-v3 --rdzv-endpoint etcd-client:2379 --rdzv-id JOB-ATTEMPT ...

Source: https://docs.pytorch.org/docs/stable/elastic/rendezvous.html
"""

import math
import random
import time
import zlib

from torch.distributed.elastic.rendezvous.api import (
    RendezvousHandler,
    RendezvousParameters,
    RendezvousStateError,
)
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import (
    RendezvousBackend,
    create_handler,
)

from ultrascale_training.rendezvous.etcd_client import EtcdClient
from ultrascale_training.rendezvous.etcd_keys import (
    Value,
    job_key,
    put,
    read,
    read_newer,
    transact,
    unchanged,
)
from ultrascale_training.rendezvous.etcd_lease import JobLease
from ultrascale_training.rendezvous.etcd_options import Options, parse_options
from ultrascale_training.rendezvous.etcd_store import EtcdStore

NAME = "etcd-v3"

# What all nodes of a job together may ask of one etcd member.
_READS_PER_SECOND = 2000
_HEARTBEATS_PER_SECOND = 50
_HEARTBEAT_BYTES_PER_SECOND = 2_000_000
# torch's state takes about 70 bytes a node, which shrink to this.
_STATE_BYTES_PER_NODE = 10
_HEARTBEAT_SECONDS = 5
_COLLISION_SECONDS = 0.01
_MOST_COLLISIONS = 8


class EtcdV3Backend(RendezvousBackend):
    """Holds the state of a rendezvous under one key of etcd.

    Args:
        client: How etcd is reached.
        run_id: The job's rendezvous id.
        lease: What the key hangs on.
        read_interval: Seconds for which a state that was read answers the next question, too.
    """

    def __init__(
        self, client: EtcdClient, run_id: str, *, lease: JobLease, read_interval: float = 0.0
    ) -> None:
        self._client = client
        self._key = job_key(run_id, "state")
        self._lease = lease
        self._read_interval = read_interval
        self._seen: tuple[bytes, int] | None = None
        self._seen_at = -math.inf
        self._collisions = 0

    @property
    def name(self) -> str:
        """See base class."""
        return NAME

    def get_state(self) -> tuple[bytes, int] | None:
        """See base class."""
        self._lease.renew()
        if self._seen is not None and time.monotonic() < self._seen_at + self._read_interval:
            return self._seen
        return self._fetch()

    def set_state(self, state: bytes, token: object = None) -> tuple[bytes, int, bool] | None:
        """See base class."""
        self._lease.renew()
        if not isinstance(token, int | None):
            found = self._fetch()
            return None if found is None else (*found, False)
        packed = zlib.compress(state, level=1)
        outcome = self._lease.write(
            lambda lease: transact(
                self._client,
                compare=[unchanged(self._key, token or 0)],
                success=[put(self._key, packed, lease=lease)],
                failure=[read(self._key)],
            )
        )
        if outcome.succeeded:
            self._collisions = 0
            return *self._remember(state, outcome.revision), True
        (found,) = outcome.read
        if found is not None and found.data == packed:
            # The answer to the write got lost on its way, and it was sent again.
            return *self._remember(state, found.revision), True
        return self._after_collision(found)

    def _after_collision(self, found: Value | None) -> tuple[bytes, int, bool] | None:
        """Return the state to try again with.

        torch tries at once, and of the nodes that do so one wins and all others lose. They have to
        draw apart, the more the longer it goes on.
        """
        self._collisions = min(self._collisions + 1, _MOST_COLLISIONS)
        if self._collisions == 1:
            return None if found is None else (*self._unpacked(found), False)
        time.sleep(random.uniform(0, _COLLISION_SECONDS * 2**self._collisions))
        newer = self._fetch()
        return None if newer is None else (*newer, False)

    def _fetch(self) -> tuple[bytes, int] | None:
        known = 0 if self._seen is None else self._seen[1]
        exists, newer = read_newer(self._client, self._key, known)
        self._seen_at = time.monotonic()
        if newer is not None:
            return self._unpacked(newer)
        if not exists:
            self._seen = None
        return self._seen

    def _unpacked(self, value: Value) -> tuple[bytes, int]:
        try:
            return self._remember(zlib.decompress(value.data), value.revision)
        except zlib.error as error:
            raise RendezvousStateError(
                f"{self._key} in etcd is not a state of this backend ({error}); use another "
                "--rdzv-id"
            ) from error

    def _remember(self, state: bytes, revision: int) -> tuple[bytes, int]:
        self._seen = (state, revision)
        self._seen_at = time.monotonic()
        return self._seen


def create(params: RendezvousParameters) -> RendezvousHandler:
    """Return the handler of a job.

    ``--rdzv-conf`` takes torch's own keys, and those of `parse_options`.

    Raises:
        ValueError: An option is wrong; the message lists all mistakes.
    """
    options = parse_options(params)
    client = connect(options)
    lease = JobLease(client, params.run_id, ttl=options.lease_ttl)
    read_interval = params.max_nodes / _READS_PER_SECOND
    backend = EtcdV3Backend(client, params.run_id, lease=lease, read_interval=read_interval)
    store = EtcdStore(client, params.run_id, lease=lease, longest_wait=max(0.5, read_interval))
    params.config.setdefault("keep_alive_interval", heartbeat_seconds(params.max_nodes))
    return create_handler(store, backend, params)


def connect(options: Options) -> EtcdClient:
    """Return a client as ``options`` say; nothing is sent yet."""
    return EtcdClient(
        options.endpoints,
        tls=options.tls,
        credentials=options.credentials,
        read_timeout=options.read_timeout,
        retry_timeout=options.retry_timeout,
    )


def heartbeat_seconds(nodes: int) -> int:
    """Return how often each of ``nodes`` may send a heartbeat.

    A heartbeat rewrites the state of all nodes, and etcd keeps what it replaced until the next
    compaction: torch's 5 seconds would fill etcd's quota within the hour at 1,000 nodes.
    """
    rate = min(
        _HEARTBEATS_PER_SECOND, _HEARTBEAT_BYTES_PER_SECOND / (_STATE_BYTES_PER_NODE * nodes)
    )
    return max(_HEARTBEAT_SECONDS, math.ceil(nodes / rate))
