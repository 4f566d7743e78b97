"""The one lease that all keys of a job hang on."""

import random
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from ultrascale_training.rendezvous.etcd_client import EtcdClient, LeaseNotFoundError
from ultrascale_training.rendezvous.etcd_keys import absent, job_key, put, read, transact

Result = TypeVar("Result")

_ATTEMPTS = 5


class JobLease:
    """A lease that every node of a job keeps alive.

    The job's keys so live as long as one of its nodes, for weeks or for a minute, and are gone
    ``ttl`` seconds after the last one. A lease of each node's own would take with it what other
    nodes still read.

    Nothing renews it in the background: torchrun asks its rendezvous for waiting nodes every
    second and sends a heartbeat, and whoever calls `renew` then does so when it is due.

    Args:
        client: How etcd is reached.
        run_id: The job's rendezvous id.
        ttl: Seconds that the keys outlive the last node.

    Source: https://etcd.io/docs/v3.5/learning/api/#lease-api
    """

    def __init__(self, client: EtcdClient, run_id: str, *, ttl: int) -> None:
        self._client = client
        self._key = job_key(run_id, "lease")
        self._ttl = ttl
        self._id: int | None = None
        self._due = 0.0
        self._lock = threading.Lock()

    def write(self, action: Callable[[int], Result]) -> Result:
        """Return what ``action`` returns, given the lease.

        It is repeated with a new lease if the old one has expired.

        Raises:
            EtcdRefusedError: etcd refused it.
            RendezvousConnectionError: etcd did not answer.
        """
        for _ in range(_ATTEMPTS - 1):
            lease = self._current()
            try:
                return action(lease)
            except LeaseNotFoundError:
                self._forget(lease)
        return action(self._current())

    def renew(self) -> None:
        """Keep the lease alive if a third of its time is over."""
        if time.monotonic() < self._due or not self._lock.acquire(blocking=False):
            return
        try:
            if self._id is not None:
                self._keep_alive(self._id)
        finally:
            self._lock.release()

    def _current(self) -> int:
        with self._lock:
            if self._id is None:
                self._id = self._shared()
                self._keep_alive(self._id)
            return self._id

    def _forget(self, lease: int) -> None:
        with self._lock:
            if self._id == lease:
                self._id = None

    def _shared(self) -> int:
        """Return the lease that the job's nodes agree on."""
        found = transact(self._client, success=[read(self._key)]).read[0]
        if found is not None:
            return int(found.data)
        lease = int(self._client.call("/lease/grant", {"TTL": str(self._ttl)})["ID"])
        outcome = transact(
            self._client,
            compare=[absent(self._key)],
            success=[put(self._key, str(lease).encode(), lease=lease)],
            failure=[read(self._key)],
        )
        if outcome.succeeded:
            return lease
        (first,) = outcome.read
        # The answer to the write got lost on its way, and it was sent again.
        if first is not None and int(first.data) == lease:
            return lease
        self._client.call("/lease/revoke", {"ID": str(lease)})
        return self._shared()

    def _keep_alive(self, lease: int) -> None:
        # That the lease is gone already is told by the next write.
        self._client.call("/lease/keepalive", {"ID": str(lease)})
        # Apart from each other, so that the nodes of a large job do not come at once.
        self._due = time.monotonic() + self._ttl / 3 * random.uniform(0.7, 1.0)
