"""A Kubernetes API server in memory.

It knows lists in pages, watches with bookmarks and `410 Gone`, dry runs, strict field validation of
the top level, server-side apply, merge and JSON patches, foreground deletion and logs that are
followed. Tests write what controllers would write.
"""

import gzip
import itertools
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from threading import Condition
from typing import Any

from tests.support.stub_api_objects import (
    LIST,
    Object,
    Query,
    UnequalError,
    change,
    is_in,
    join,
    matches,
    namespace_of,
    owned,
    plural_of,
)

_TOP_LEVEL = {"apiVersion", "kind", "metadata", "spec", "status", "data", "rules", "webhooks"}
_LOG = re.compile(r"(?P<pod>.+/pods/[^/]+)/log")
_CORE = "/api/v1"
_GROUPS = frozenset(
    {
        "/api/v1",
        "/apis/apps/v1",
        "/apis/batch/v1",
        "/apis/batch.volcano.sh/v1alpha1",
        "/apis/jobset.x-k8s.io/v1alpha2",
        "/apis/kueue.x-k8s.io/v1beta2",
        "/apis/networking.k8s.io/v1",
        "/apis/policy/v1",
        "/apis/scheduling.k8s.io/v1",
        "/apis/scheduling.volcano.sh/v1beta1",
    }
)


@dataclass
class Refusal:
    """An answer that is given instead of the ordinary one."""

    status: int  # HTTP status; 0 closes the connection without an answer
    message: str = "refused"  # What it says
    reason: str = ""  # Kubernetes' word for it
    text: str = ""  # Body that is sent instead of a Status, as a proxy does
    headers: Mapping[str, str] = field(default_factory=dict[str, str])  # More headers
    times: int | None = None  # How often; None for ever
    dry_run: bool | None = None  # Whether only dry runs are refused, or only the others; None: both
    after: bool = False  # Whether the request is carried out all the same


@dataclass
class Request:
    """A request that came; the names of its headers in small letters."""

    method: str
    path: str
    query: Query
    headers: Mapping[str, str]
    body: Any

    @property
    def dry_run(self) -> bool:
        return self.query.get("dryRun") == "All"


@dataclass
class Reply:
    """Answer of the server: an object, or lines of a stream; status 0 hangs up."""

    status: int
    answer: Object = field(default_factory=dict[str, Any])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    text: str = ""
    lines: Iterator[bytes] | None = None


class RefusedError(Exception):
    """Becomes a Status of the API server."""

    def __init__(self, status: int, message: str, reason: str = "") -> None:
        self.status, self.message, self.reason = status, message, reason


class StubApiServer:
    """Objects by their path, and every request that came."""

    def __init__(self, *, token: str | None = "secret", strict: bool = True) -> None:
        self.url = ""  # Where it answers
        self.requests: list[Request] = []  # Every request, in order
        self.groups = set(_GROUPS)  # Paths of the groups that are served
        self.token = token  # The only token that is good; None takes any
        self.page: int | None = None  # Most objects on one page of a list
        # Whether a change names its field manager and asks for strict field validation, and a
        # deletion the UID, as the command line does
        self.strict = strict
        # Is told each object that was created
        self.on_create: Callable[[str, Object], None] = lambda _path, _found: None
        self.closing = False
        self.objects: dict[str, Object] = {}  # Each object, by its path
        # Kinds of each group, by its path
        self.resources: dict[str, list[Object]] = {}
        # Judges requests on behalf of a person of some groups, and refuses them
        self.judge_person: Callable[[str, list[str], Request], None] | None = None
        # The answer to a review of somebody's rights
        self.review: Callable[[Object], bool] = lambda _: False
        # Answers of pods behind the server, by path, one after the other; the last stays
        self.proxied: dict[str, list[str]] = {}
        self._logs: dict[str, tuple[list[bytes], bool]] = {}
        self._refusals: list[tuple[str, re.Pattern[str], Refusal]] = []
        self._events: list[tuple[int, str, str, Object]] = []
        self._oldest = 0
        self._version = itertools.count(1)
        self._changed = Condition()
        self._broken = 0
        self.put("/api/v1/namespaces/training", {"kind": "Namespace"})

    # What a test, or a controller, does.

    def put(self, path: str, found: Object) -> Object:
        """Store an object as it is, and tell who watches."""
        with self._changed:
            known = path in self.objects
            metadata = found.setdefault("metadata", {})
            metadata.setdefault("name", path.rpartition("/")[2])
            metadata.setdefault("uid", f"uid-{next(self._version)}")
            metadata.setdefault("creationTimestamp", "2026-11-21T12:00:00Z")
            if namespace := namespace_of(path):
                metadata.setdefault("namespace", namespace)
            self._tell(path, "MODIFIED" if known else "ADDED", found)
            self.objects[path] = found
        return found

    def update(self, path: str, **fields: Any) -> None:
        """Join fields into an object, such as its status."""
        found = deepcopy(self.objects[path])
        join(found, fields)
        self.put(path, found)

    def edit(self, path: str, manager: str, **fields: Any) -> None:
        """Join fields into an object as a manager of them."""
        self.update(path, **fields)
        entry = {"manager": manager, "operation": "Update", "fieldsV1": owned(fields)}
        self.objects[path]["metadata"].setdefault("managedFields", []).append(entry)

    def remove(self, path: str) -> None:
        """Delete an object and what it owns."""
        with self._changed:
            found = self.objects.pop(path)
            self._logs.pop(path, None)
            self._tell(path, "DELETED", found)
            uid = found["metadata"]["uid"]
            owned = [
                other
                for other, each in self.objects.items()
                if any(o["uid"] == uid for o in each["metadata"].get("ownerReferences", ()))
            ]
        for other in owned:
            self.remove(other)

    def write(self, pod: str, *lines: str, ends: bool = False) -> None:
        """Let a pod print lines, each a time stamp and a text; with ``ends`` it prints no more."""
        with self._changed:
            before, _ = self._logs.get(pod, ([], False))
            self._logs[pod] = ([*before, *(f"{line}\n".encode() for line in lines)], ends)
            self._changed.notify_all()

    def restart_log(self, pod: str) -> None:
        """Let a pod begin its log anew, as a restarted container does."""
        with self._changed:
            self._logs[pod] = ([], False)

    def refuse(self, method: str, path: str, refusal: Refusal) -> None:
        """Answer requests whose path matches the regular expression ``path`` by ``refusal``."""
        self._refusals.append((method, re.compile(path), refusal))

    def compact(self) -> None:
        """Forget what has happened: an older resource version is gone."""
        with self._changed:
            self._oldest = next(self._version)
            self._broken += 1
            self._changed.notify_all()

    def break_streams(self) -> None:
        """End every watch and log that is open, as a load balancer does."""
        with self._changed:
            self._broken += 1
            self._changed.notify_all()

    def find(self, path: str) -> Object | None:
        return self.objects.get(path)

    def paths(self) -> set[str]:
        """Return the paths of all objects but the namespace."""
        return set(self.objects) - {"/api/v1/namespaces/training"}

    def asked(self, method: str, part: str = "") -> list[Request]:
        """Return the requests of a method whose path contains ``part``."""
        return [each for each in self.requests if each.method == method and part in each.path]

    # What a client sees.

    def respond(self, request: Request) -> Reply:
        """Return the answer to a request."""
        self.requests.append(request)
        refusal = self._refusal(request)
        try:
            if refusal is None:
                if (answers := self.proxied.get(request.path)) is not None:
                    self._authenticate(request)
                    text = (answers.pop(0) if len(answers) > 1 else answers[0]).encode()
                    # As Prometheus' client for Python answers whoever takes it.
                    zipped = "gzip" in request.headers.get("accept-encoding", "")
                    headers = {"Content-Encoding": "gzip"} if zipped else {}
                    parts = iter([gzip.compress(text) if zipped else text])
                    return Reply(200, headers=headers, lines=parts)
                lines = self._stream(request)
                return Reply(200, lines=lines) if lines else Reply(*self._answer(request))
            if refusal.after:
                self._answer(request)
            raise RefusedError(refusal.status, refusal.message, refusal.reason)
        except RefusedError as error:
            if refusal is None:
                return Reply(error.status, _status(error))
            return Reply(error.status, _status(error), refusal.headers, refusal.text)

    def _answer(self, request: Request) -> tuple[int, Object]:
        self._authenticate(request)
        if self.judge_person is not None and "impersonate-user" in request.headers:
            groups = request.headers.get("impersonate-group", "").split(", ")
            self.judge_person(request.headers["impersonate-user"], groups, request)
        if request.path == "/version":
            return 200, {"gitVersion": "v1.36.2"}
        if request.path in self.groups:
            resources = self.resources.get(request.path, [])
            return 200, {"kind": "APIResourceList", "resources": resources}
        if not any(request.path.startswith(f"{group}/") for group in self.groups):
            message = "the server could not find the requested resource"
            raise RefusedError(404, message, "NotFound")
        return {
            "GET": self._get,
            "POST": self._post,
            "PATCH": self._patch,
            "DELETE": self._delete,
        }[request.method](request)

    def _authenticate(self, request: Request) -> None:
        sent = request.headers.get("authorization", "").lower()
        if self.token is not None and sent != f"bearer {self.token}":
            raise RefusedError(401, "Unauthorized", "Unauthorized")

    def _refusal(self, request: Request) -> Refusal | None:
        for method, path, refusal in self._refusals:
            if method != request.method or not path.search(request.path) or refusal.times == 0:
                continue
            if refusal.dry_run not in (None, request.dry_run):
                continue
            if refusal.times is not None:
                refusal.times -= 1
            return refusal
        return None

    def _stream(self, request: Request) -> Iterator[bytes] | None:
        """Return the lines of an answer that goes on; None for one that does not."""
        log = _LOG.fullmatch(request.path)
        if log is None and request.query.get("watch") != "true":
            return None
        self._authenticate(request)
        if log is None:
            return self._watch(request)
        if log["pod"] not in self._logs:
            raise RefusedError(400, "container is waiting to start: ContainerCreating")
        return self._log(log["pod"], request.query)

    def _get(self, request: Request) -> tuple[int, Object]:
        if (found := self.objects.get(request.path)) is not None:
            return 200, found
        match = LIST.fullmatch(request.path)
        if match is None:
            raise RefusedError(404, f"{request.path.rpartition('/')[2]} not found", "NotFound")
        if request.path.startswith(f"{_CORE}/namespaces/") and request.path.count("/") == 4:
            raise RefusedError(404, f'namespaces "{request.path.rpartition("/")[2]}" not found')
        with self._changed:
            every = [o for path, o in self.objects.items() if is_in(path, request.path)]
            version = str(self._now())
        matching = [each for each in every if matches(each, request.query)]
        if {"resourceVersion", "continue"} <= request.query.keys():
            raise RefusedError(400, "resourceVersion and continue exclude each other", "BadRequest")
        start = int(request.query.get("continue", "0"))
        size = min(int(request.query.get("limit", "500")), self.page or 500)
        rest = str(start + size) if start + size < len(matching) else ""
        return 200, {
            "kind": "List",
            "metadata": {"resourceVersion": version, "continue": rest},
            "items": matching[start : start + size],
        }

    def _post(self, request: Request) -> tuple[int, Object]:
        if request.path.endswith("/subjectaccessreviews"):
            return 201, {"status": {"allowed": self.review(request.body["spec"])}}
        found, name = request.body, request.body["metadata"]["name"]
        self._judge(request)
        path = f"{request.path}/{name}"
        with self._changed:
            if path in self.objects:
                raise RefusedError(
                    409, f'{plural_of(path)} "{name}" already exists', "AlreadyExists"
                )
            if not request.dry_run:
                found = self.put(path, deepcopy(found))
        if not request.dry_run:
            self.on_create(path, found)
        return 201, found

    def _patch(self, request: Request) -> tuple[int, Object]:
        kind = request.headers["content-type"]
        if kind == "application/apply-patch+yaml":
            return self._apply(request)
        found = deepcopy(self.objects.get(request.path))
        if found is None:
            raise RefusedError(404, f"{request.path.rpartition('/')[2]} not found", "NotFound")
        if kind == "application/merge-patch+json":
            join(found, request.body)
        else:
            assert kind == "application/json-patch+json"
            try:
                change(found, request.body)
            except UnequalError as error:
                raise RefusedError(422, str(error), "Invalid") from None
        return 200, self.put(request.path, found)

    def _apply(self, request: Request) -> tuple[int, Object]:
        self._judge(request)
        found: Object = deepcopy(self.objects.get(request.path) or {})
        if request.query.get("force") != "true":
            _judge_replicas(found, request.body)
        join(found, request.body)
        known = request.path in self.objects
        if not request.dry_run:
            self.put(request.path, found)
            if not known:
                self.on_create(request.path, found)
        return 200 if known else 201, found

    def _judge(self, request: Request) -> None:
        namespace = namespace_of(request.path)
        if namespace and f"{_CORE}/namespaces/{namespace}" not in self.objects:
            raise RefusedError(404, f'namespaces "{namespace}" not found', "NotFound")
        if not self.strict:
            return
        assert request.query["fieldManager"] == "ultrascale"
        assert request.query["fieldValidation"] == "Strict"
        if unknown := sorted(set(request.body) - _TOP_LEVEL):
            message = f'strict decoding error: unknown field "{unknown[0]}"'
            raise RefusedError(400, message, "BadRequest")

    def _delete(self, request: Request) -> tuple[int, Object]:
        found = self.objects.get(request.path)
        if found is None:
            raise RefusedError(404, f"{request.path.rpartition('/')[2]} not found", "NotFound")
        if request.dry_run:
            return 200, found
        uid = request.body["preconditions"]["uid"] if self.strict else found["metadata"]["uid"]
        if uid != found["metadata"]["uid"]:
            raise RefusedError(409, "the UID in the precondition is another", "Conflict")
        self.remove(request.path)
        return 200, {"kind": "Status", "status": "Success"}

    def _watch(self, request: Request) -> Iterator[bytes]:
        version = int(request.query["resourceVersion"])
        broken = self._broken
        if version < self._oldest:
            gone = {"kind": "Status", "code": 410, "reason": "Expired"}
            yield _line({"type": "ERROR", "object": gone})
            return
        while True:
            with self._changed:
                first = bisect_right(self._events, version, key=lambda event: event[0])
                later = self._events[first:]
                new = [
                    (at, kind, found)
                    for at, path, kind, found in later
                    if is_in(path, request.path) and matches(found, request.query)
                ]
                if not new:
                    if self.closing or self._broken != broken:
                        return
                    self._changed.wait(0.05)
            for at, kind, found in new:
                version = at
                yield _line({"type": kind, "object": found})
            if new:
                mark = {"kind": "Bookmark", "metadata": {"resourceVersion": str(version)}}
                yield _line({"type": "BOOKMARK", "object": mark})

    def _log(self, pod: str, query: Query) -> Iterator[bytes]:
        assert query["timestamps"] == "true"
        since = query.get("sinceTime", "")
        tail = int(query["tailLines"]) if "tailLines" in query else None
        read, broken = 0, self._broken
        if tail is not None:
            read = max(0, len(self._logs[pod][0]) - tail)
        while True:
            with self._changed:
                lines, ended = self._logs.get(pod, ([], True))
                # The kubelet compares whole seconds.
                fresh = [x for x in lines[read:] if x.decode()[:19] >= since[:19]]
                read = len(lines)
                over = ended or self.closing or self._broken != broken
                if not fresh and not over:
                    self._changed.wait(0.05)
            yield from fresh
            if "follow" not in query or (over and read == len(self._logs.get(pod, ([], True))[0])):
                return

    def _tell(self, path: str, kind: str, found: Object) -> None:
        version = next(self._version)
        found["metadata"]["resourceVersion"] = str(version)
        self._events.append((version, path, kind, deepcopy(found)))
        self._changed.notify_all()

    def _now(self) -> int:
        return max(self._events[-1][0] if self._events else 0, self._oldest)


def _line(event: Object) -> bytes:
    return json.dumps(event).encode() + b"\n"


def _judge_replicas(found: Object, wanted: Object) -> None:
    """Refuse another number of replicas than a manager has set who is not the one that applies."""
    replicas = wanted.get("spec", {}).get("replicas")
    if replicas in (None, found.get("spec", {}).get("replicas")):
        return
    for entry in found["metadata"].get("managedFields", ()) if found else ():
        manager, owned = entry["manager"], entry["fieldsV1"].get("f:spec", {})
        if manager != "ultrascale" and "f:replicas" in owned:
            told = f'Apply failed with 1 conflict: conflict with "{manager}": .spec.replicas'
            raise RefusedError(409, told, "Conflict")


def _status(error: RefusedError) -> Object:
    return {
        "kind": "Status",
        "status": "Failure",
        "message": error.message,
        "reason": error.reason,
        "code": error.status,
    }
