"""Threads of a replica that carry out the outbox's entries in the cluster."""

import logging
import threading
from collections.abc import Callable
from datetime import timedelta

import psycopg

from ultrascale.cluster_api.server import Cluster
from ultrascale.errors import ClusterError
from ultrascale_backend import objects, store
from ultrascale_backend.database import Connection, Database
from ultrascale_backend.objects import NotOursError
from ultrascale_backend.records import ACTIVE, Entry

_LOG = logging.getLogger(__name__)
_THREADS = 4
# Seconds between two searches for entries of other replicas; the replica's own are done at once.
_POLL_SECONDS = 1.0
_DATABASE_WAIT_SECONDS = 1.0
_LONGEST_WAIT_SECONDS = 60
_LONGEST_REASON = 1000


class Workers:
    """Threads that empty the outbox.

    Args:
        database: The database of the outbox.
        cluster: The cluster of the jobs.
        done: Called with each outcome: `submitted`, `refused`, `cancelled`, `ended` or `later`.
    """

    def __init__(
        self, database: Database, cluster: Cluster, *, done: Callable[[str], None]
    ) -> None:
        self._database = database
        self._cluster = cluster
        self._done = done
        self._stopping = threading.Event()
        self._due = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, name=f"worker-{number}", daemon=True)
            for number in range(_THREADS)
        ]

    def start(self) -> None:
        """Start the threads; they begin with entries that an earlier process left."""
        for thread in self._threads:
            thread.start()

    def wake(self) -> None:
        """Tell the threads that the outbox has an entry."""
        self._due.set()

    def stop(self, *, timeout_seconds: float) -> None:
        """Take no further entry, and wait for entries in progress."""
        self._stopping.set()
        self._due.set()
        for thread in self._threads:
            thread.join(timeout=timeout_seconds / len(self._threads))

    @property
    def alive(self) -> bool:
        """Return whether every thread runs; only a bug ends a thread."""
        return all(thread.is_alive() for thread in self._threads)

    def _work(self) -> None:
        while not self._stopping.is_set():
            try:
                with self._database.connection() as connection, connection.transaction():
                    worked = self._process_entry(connection)
            except psycopg.OperationalError as error:
                # The entry's lock ended with the connection, so another worker takes the entry.
                _LOG.warning("the outbox is out of reach", extra={"error": str(error)})
                self._stopping.wait(_DATABASE_WAIT_SECONDS)
                continue
            if not worked and not self._stopping.is_set():
                self._due.wait(_POLL_SECONDS)
                self._due.clear()

    def _process_entry(self, connection: Connection) -> bool:
        entry = store.claim(connection)
        if entry is None:
            return False
        try:
            outcome, reason = self._carry_out(connection, entry)
        except (ClusterError, LookupError) as error:
            # A later version of the backend may know a kind that this version does not.
            outcome, reason = "later", str(error)
            wait = timedelta(seconds=min(_LONGEST_WAIT_SECONDS, 2 ** min(entry.attempts, 10)))
            store.record_later(connection, entry, wait, reason[:_LONGEST_REASON])
        self._done(outcome)
        level = logging.INFO if outcome in ("submitted", "cancelled") else logging.WARNING
        about = {"request": str(entry.request_id), "outcome": outcome, "reason": reason}
        _LOG.log(level, "outbox entry done", extra=about)
        return True

    def _carry_out(self, connection: Connection, entry: Entry) -> tuple[str, str]:
        """Create or delete a job, record that, and return the outcome and its reason."""
        job = (self._cluster, entry.namespace, entry.request_id, entry.objects)
        if entry.cancelled:
            if entry.state in ACTIVE and (result := objects.result_of(*job)):
                store.record_done(connection, entry, result, "it ended before it was cancelled")
                return "ended", result
            objects.take_away(*job)
            store.record_done(connection, entry, "cancelled", "as was asked for")
            return "cancelled", ""
        if entry.state not in ACTIVE:
            store.record_done(connection, entry, entry.state)
            return "ended", entry.state
        try:
            objects.make(*job)
        except (ClusterError, NotOursError) as error:
            if not objects.is_final(error):
                raise
            objects.take_away(*job)
            store.record_done(connection, entry, "failed", str(error)[:_LONGEST_REASON])
            return "refused", str(error)
        store.record_done(connection, entry, "submitted")
        return "submitted", ""
