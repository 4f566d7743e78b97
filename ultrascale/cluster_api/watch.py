"""Watches of lists of objects: the list first, then its changes, across broken connections."""

import queue
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager

from ultrascale.cluster_api.objects import Object
from ultrascale.cluster_api.server import FORBIDDEN, GONE, NOT_FOUND, Cluster, Query, Stream
from ultrascale.documents import mapping, number, objects, parse_json, text
from ultrascale.errors import ClusterError, RefusedError
from ultrascale.frozen import Frozen

# Seconds that the server keeps a watch open. It sends a bookmark each minute, so a longer silence
# means a broken connection.
# Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#watch-bookmarks
_WATCH_SECONDS = 300
_SILENCE = 330.0
# Seconds before each new attempt after a broken connection, about five minutes in all.
_WAITS = (0.5, 1, 2, 4, 8, 15, 30, 30, 30, 30, 30, 30, 30, 30, 30)
_FINAL = frozenset({401, 403, 404})


class Watched(Frozen):
    """A list of objects to watch."""

    path: str  # Path of the list
    query: Query  # Parameters that select objects
    # Returns the fields of an object to keep: ten thousand whole pods take a gigabyte.
    slim: Callable[[Object], Object] = lambda manifest: manifest


class Change(Frozen):
    """A change in a watched list."""

    source: str  # Name of the watch
    gone: bool = False  # Whether ``manifest`` was deleted
    manifest: Object | None = None  # The object after the change, or before its deletion
    # All objects, after a new list; other objects are gone.
    listed: tuple[Object, ...] | None = None


class Feed:
    """Changes of several lists of objects; a thread watches each list."""

    def __init__(self, cluster: Cluster, watched: Mapping[str, Watched]) -> None:
        self._cluster = cluster
        self._changes: queue.SimpleQueue[Change | ClusterError] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._streams: dict[str, Stream] = {}
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._watch, args=(source, watch), daemon=True)
            for source, watch in watched.items()
        ]

    def changes(self, seconds: float) -> Iterator[Change]:
        """Yield the changes so far; wait at most ``seconds`` for the first change.

        Raises:
            ClusterError: The server refuses a watch, or its connection stays broken.
        """
        deadline: float | None = seconds
        while True:
            try:
                change = self._changes.get(timeout=deadline)
            except queue.Empty:
                return
            if isinstance(change, ClusterError):
                raise change
            yield change
            deadline = 0

    def start(self) -> None:
        """Start all watches."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End all watches."""
        self._stopping.set()
        with self._lock:
            for stream in self._streams.values():
                stream.stop()
        for thread in self._threads:
            thread.join(timeout=1)

    def _watch(self, source: str, watched: Watched) -> None:
        try:
            for change in self._follow(source, watched):
                self._changes.put(change)
        except ClusterError as error:
            if not self._stopping.is_set():
                self._changes.put(error)

    def _follow(self, source: str, watched: Watched) -> Iterator[Change]:
        failures = 0
        version = ""
        while not self._stopping.is_set():
            try:
                if not version:
                    listed, version = _listed_objects(self._cluster, watched)
                    yield Change(source=source, listed=listed)
                for event in self._events(source, watched, version):
                    failures = 0
                    kind, manifest = text(event, "type"), mapping(event, "object")
                    if kind == "ERROR":
                        version = _after_error(manifest, version)
                        break
                    version = text(manifest, "metadata", "resourceVersion") or version
                    if kind != "BOOKMARK":
                        slim = watched.slim(manifest)
                        yield Change(source=source, manifest=slim, gone=kind == "DELETED")
            except ClusterError as error:
                if isinstance(error, RefusedError) and error.status in _FINAL:
                    raise
                if isinstance(error, RefusedError) and error.status == GONE:
                    version = ""
                if failures == len(_WAITS):
                    raise
                self._stopping.wait(_WAITS[failures])
                failures += 1

    def _events(self, source: str, watched: Watched, version: str) -> Iterator[Object]:
        asked = {
            **watched.query,
            "resourceVersion": version,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_WATCH_SECONDS),
        }
        with self._cluster.stream(watched.path, asked, read_timeout=_SILENCE) as stream:
            with self._lock:
                if self._stopping.is_set():
                    return
                self._streams[source] = stream
            try:
                for line in stream.lines():
                    yield mapping(parse_json(line))
            finally:
                with self._lock:
                    del self._streams[source]


@contextmanager
def feed(cluster: Cluster, watched: Mapping[str, Watched]) -> Generator[Feed]:
    """Watch several lists until the block ends; the keys of ``watched`` name the watches."""
    watching = Feed(cluster, watched)
    watching.start()
    try:
        yield watching
    finally:
        watching.stop()


def readable(cluster: Cluster, path: str) -> bool:
    """Return whether the server has a list at ``path`` that this user may read."""
    try:
        cluster.get(path, {"limit": "1"})
    except RefusedError as error:
        if error.status in (NOT_FOUND, FORBIDDEN):
            return False
        raise
    return True


def _listed_objects(cluster: Cluster, watched: Watched) -> tuple[tuple[Object, ...], str]:
    """Return the objects of a list, and the version from which a watch continues."""
    manifests: list[Object] = []
    version = ""
    for page in cluster.pages(watched.path, watched.query):
        manifests.extend(watched.slim(item) for item in objects(page, "items"))
        version = text(page, "metadata", "resourceVersion")
    return tuple(manifests), version


def _after_error(status: Object, version: str) -> str:
    """Return the version from which to continue after an error event; empty: list again."""
    if number(status, "code") == GONE:
        return ""
    time.sleep(_WAITS[0])
    return version
