"""Watches of requests' jobs, and the record of their states in the database."""

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from uuid import UUID

from ultrascale.cluster_api.objects import Kind, Object, label, name
from ultrascale.cluster_api.server import Cluster
from ultrascale.cluster_api.watch import Change, Feed, Watched, feed
from ultrascale.documents import text
from ultrascale.errors import ClusterError
from ultrascale.jobs.workloads import WorkloadState, joint_state, read_workload, workload_kinds
from ultrascale_backend import store
from ultrascale_backend.database import Database
from ultrascale_backend.errors import UnavailableError
from ultrascale_backend.objects import REQUEST_LABEL, workloads
from ultrascale_backend.records import Observation

_LOG = logging.getLogger(__name__)
# Seconds between two checks for the end, and until a broken watch begins again.
_TICK_SECONDS = 0.5
_AGAIN_SECONDS = 10.0
# Seconds over which changes are collected, so that a thousand jobs are not a thousand transactions.
_PAUSE_SECONDS = 0.1
_GONE = "its job was deleted in the cluster"

_BY_RESOURCE: Mapping[str, Kind] = {kind.resource: kind for kind in workload_kinds()}


class Follower:
    """A thread that watches the jobs of one kind in one namespace.

    Args:
        database: The database of the requests.
        cluster: The cluster of the jobs.
        namespace: Namespace of the jobs.
        kind: Kind of the jobs, such as `jobs.batch`.
    """

    def __init__(self, database: Database, cluster: Cluster, *, namespace: str, kind: str) -> None:
        self._database = database
        self._cluster = cluster
        self._namespace = namespace
        self._kind = _BY_RESOURCE[kind]
        self._seen: dict[UUID, dict[str, WorkloadState]] = {}
        self._deleting: set[UUID] = set()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"{namespace}-{kind}", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self, *, timeout_seconds: float) -> None:
        """End the watch."""
        self._stopping.set()
        self._thread.join(timeout=timeout_seconds)

    @property
    def alive(self) -> bool:
        """Return whether the thread runs; only a bug ends it."""
        return self._thread.is_alive()

    def _run(self) -> None:
        selector = {"labelSelector": REQUEST_LABEL}
        watched = Watched(path=self._kind.path(self._namespace), query=selector)
        while not self._stopping.is_set():
            try:
                with feed(self._cluster, {self._kind.resource: watched}) as watching:
                    self._follow(watching)
            except (ClusterError, UnavailableError) as error:
                about = {"namespace": self._namespace, "kind": self._kind.resource}
                _LOG.warning("jobs are not followed", extra={**about, "error": str(error)})
                self._stopping.wait(_AGAIN_SECONDS)

    def _follow(self, watching: Feed) -> None:
        while not self._stopping.is_set():
            seen: dict[UUID, Observation] = {}
            for change in watching.changes(_TICK_SECONDS):
                seen |= {each.request_id: each for each in self._observations(change)}
            if seen:
                self._database.run(partial(store.record_seen, seen=[*seen.values()]))
                self._stopping.wait(_PAUSE_SECONDS)

    def _observations(self, change: Change) -> Iterator[Observation]:
        if change.listed is not None:
            self._seen.clear()
            self._deleting.clear()
            for found in change.listed:
                self._record_state(found)
            for request_id in self._seen:
                yield self._observation(request_id)
            yield from self._missing_jobs()
        elif (
            change.manifest is not None and (request_id := _request_of(change.manifest)) is not None
        ):
            self._record_state(change.manifest)
            observation = self._observation(request_id)
            if change.gone:
                left = self._seen[request_id]
                left.pop(name(change.manifest), None)
                if not left:
                    del self._seen[request_id]
                    self._deleting.discard(request_id)
                    observation = _without_job(observation)
            yield observation

    def _record_state(self, found: Object) -> None:
        request_id = _request_of(found)
        if request_id is None:
            return
        state = read_workload(self._kind, found)
        self._seen.setdefault(request_id, {})[name(found)] = state
        if text(found, "metadata", "deletionTimestamp"):
            self._deleting.add(request_id)

    def _observation(self, request_id: UUID) -> Observation:
        states = self._seen[request_id]
        state = joint_state(states.values())
        running = state.up or state.phase == "Running"
        return Observation(
            request_id=request_id,
            state=state.result or ("running" if running else "submitted"),
            reason=": ".join(part for part in (state.phase, state.reason) if part),
            seen=len(states),
            stays=request_id not in self._deleting,
        )

    def _missing_jobs(self) -> Iterator[Observation]:
        """Yield observations of requests whose job should exist and was not in the list.

        The list may be older than a submission by another replica, so each missing job is read by
        its name.
        """
        expected = self._database.run(
            partial(store.submitted, namespace=self._namespace, kind=self._kind.resource)
        )
        for request_id in expected - self._seen.keys():
            made = self._database.run(partial(store.objects_of, request_id=request_id))
            self._read_by_name(each for kind, each in workloads(made) if kind == self._kind)
            if request_id in self._seen:
                yield self._observation(request_id)
            else:
                yield Observation(
                    request_id=request_id, state="cancelled", reason=_GONE, seen=0, stays=False
                )

    def _read_by_name(self, wanted: Iterable[Object]) -> None:
        for manifest in wanted:
            found = self._cluster.find(self._kind.path(self._namespace, name(manifest)))
            if found is not None:
                self._record_state(found)


def _request_of(found: Object) -> UUID | None:
    """Return the request id of an object; None if the backend did not write its label."""
    try:
        return UUID(label(found, REQUEST_LABEL))
    except ValueError:
        return None


def _without_job(last: Observation) -> Observation:
    """Return a deleted job's last observation: its end if it had ended, else `cancelled`."""
    state, reason = last.state, last.reason
    if state not in ("succeeded", "failed"):
        state, reason = "cancelled", _GONE
    return Observation(
        request_id=last.request_id, state=state, reason=reason, seen=last.seen, stays=False
    )
