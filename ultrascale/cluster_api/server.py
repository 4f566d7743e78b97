"""Requests to an API server: get, list, create, apply, patch, delete and stream."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

import urllib3

from ultrascale.cluster_api.connection import Failure, Transport, connect
from ultrascale.cluster_api.identity import ClusterArn
from ultrascale.cluster_api.objects import Kind, Object
from ultrascale.documents import look_up, mapping, number, objects, parse_json, text
from ultrascale.errors import ClusterError, RefusedError

if TYPE_CHECKING:
    from urllib3.response import BaseHTTPResponse

FIELD_MANAGER = "ultrascale"
# Objects on one page of a list, as many as kubectl asks for.
_PAGE = 500
# Seconds until a connection, and until a response, counts as failed. A webhook may take 10 s.
_CONNECT_TIMEOUT = 10.0
_READ_TIMEOUT = 60.0

_JSON = "application/json"
_APPLY = "application/apply-patch+yaml"
_JSON_PATCH = "application/json-patch+json"
NOT_FOUND, CONFLICT, FORBIDDEN, GONE = 404, 409, 403, 410

Query = Mapping[str, str]


class Stream:
    """An open response, such as a watch or a log, which is read line by line."""

    def __init__(self, response: "BaseHTTPResponse") -> None:
        self._response = response

    def lines(self) -> Iterator[bytes]:
        """Yield lines without line ends, until the server or `stop` ends the response.

        Raises:
            ClusterError: The connection broke.
        """
        rest = b""
        try:
            for chunk in self._response.stream(None, decode_content=True):
                *whole, rest = (rest + chunk).split(b"\n")
                yield from whole
        except urllib3.exceptions.HTTPError as error:
            raise ClusterError(f"the connection to the API server broke: {error}") from error
        if rest:
            yield rest

    def stop(self) -> None:
        """End `lines`; any thread may call this method."""
        self._response.shutdown()


class Cluster:
    """API server of one cluster."""

    def __init__(
        self, transport: Transport, name: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        self._transport = transport
        self.name = name  # The cluster's name in the kubeconfig; empty within a pod
        self._headers = headers or {}  # Headers of each request beside the usual ones

    @classmethod
    def connected(cls, kubeconfig: Path | None = None, context: str | None = None) -> "Cluster":
        """Connect to the cluster of a kubeconfig's context, or to the cluster of this pod.

        Raises:
            ClusterError: There is no kubeconfig, it has mistakes, or it gives no credentials.
        """
        return cls(*connect(kubeconfig, context))

    def impersonating(self, user: str, groups: Sequence[str]) -> "Cluster":
        """Return the API server, asked on behalf of somebody.

        Source: https://kubernetes.io/docs/reference/access-authn-authz/authentication/#user-impersonation
        """
        # The server wants a header for each group, and the client sends each name once. Letters
        # large or small are the same to the server: the bits of a number say which are large.
        headers = {
            "".join(
                letter.upper() if number >> place & 1 else letter
                for place, letter in enumerate("impersonate-group")
            ): group
            for number, group in enumerate(groups)
        }
        return Cluster(self._transport, self.name, {**headers, "Impersonate-User": user})

    @property
    def arn(self) -> ClusterArn | None:
        """The cluster's ARN; None if the kubeconfig names the cluster otherwise."""
        return ClusterArn.parse(self.name)

    @property
    def account(self) -> str | None:
        """The cluster's AWS account; None if its ARN is not known."""
        return self.arn.account if self.arn else None

    def get(self, path: str, query: Query | None = None) -> Object:
        """Return the object at ``path``.

        Raises:
            RefusedError: The server refuses the request, or has no such object (status 404).
            ClusterError: The server cannot be reached.
        """
        return self._object("GET", path, query)

    def find(self, path: str) -> Object | None:
        """Return the object at ``path``; None if it does not exist."""
        try:
            return self.get(path)
        except RefusedError as error:
            if error.status == NOT_FOUND:
                return None
            raise

    def pages(self, path: str, query: Query | None = None) -> Iterator[Object]:
        """Yield the pages of a list: a single response must not hold ten thousand pods."""
        token = ""
        while True:
            more = {"continue": token} if token else {}
            page = self.get(path, {"limit": str(_PAGE), **(query or {}), **more})
            yield page
            token = text(page, "metadata", "continue")
            if not token:
                return

    def items(self, path: str, query: Query | None = None) -> Iterator[Object]:
        """Yield the objects of a list."""
        for page in self.pages(path, query):
            yield from objects(page, "items")

    def collection(self, kind: Kind, namespace: str, query: Query) -> list[Object]:
        """Return the objects of a kind; empty if the cluster does not serve the kind.

        Raises:
            RefusedError: The cluster serves the kind, and the user may not list it.
        """
        try:
            return [*self.items(kind.path(namespace), query)]
        except RefusedError as error:
            # The server checks rights before it looks for the kind: a user without the right gets
            # 403 for a kind that is not installed. Every user may ask which kinds are served.
            hidden = error.status == FORBIDDEN and self.find(kind.group_path) is None
            if error.status != NOT_FOUND and not hidden:
                raise
            return []

    def served_kinds(self, api_version: str) -> Mapping[str, Kind]:
        """Return the kinds that the cluster serves at a version of a group, by their names."""
        answer = self.find(Kind(api_version, "", "").group_path)
        return {
            text(row, "kind"): Kind(
                api_version, text(row, "kind"), text(row, "name"), row.get("namespaced") is True
            )
            for row in objects(answer, "resources")
            if "/" not in text(row, "name")
        }

    def create(self, kind: Kind, namespace: str, manifest: Object, *, dry_run: bool) -> Object:
        """Create an object; the server refuses a field that the schema lacks."""
        return self._object(
            "POST", kind.path(namespace), _write(dry_run), manifest, media=_JSON, on=manifest
        )

    def review(self, kind: Kind, manifest: Object, *, timeout_seconds: float) -> Object:
        """Return the answer to a review, such as a TokenReview; the server stores nothing.

        Raises:
            RefusedError: The server refuses the request.
            ClusterError: The server cannot be reached, or does not answer in time.
        """
        return self.ask(kind.path(), manifest, timeout_seconds=timeout_seconds, about=kind.kind)

    def ask(
        self, path: str, body: Object, *, timeout_seconds: float, about: str | None = None
    ) -> Object:
        """Return the answer to a question, such as one to a pod behind the API server's proxy.

        Raises:
            RefusedError: The server, or the program behind it, refuses the request.
            ClusterError: It cannot be reached, or does not answer in time.
        """
        response = self._send("POST", path, {}, body, _JSON, timeout_seconds, about or path)
        return _object_in(response, about or path)

    def apply(
        self,
        kind: Kind,
        namespace: str,
        manifest: Object,
        *,
        dry_run: bool,
        force: bool = False,
    ) -> Object:
        """Apply an object by server-side apply: fields of other managers stay.

        Args:
            kind: Its kind.
            namespace: Its namespace.
            manifest: The object.
            dry_run: Whether nothing is stored.
            force: Take over fields that other managers have set.

        Raises:
            RefusedError: Another manager has set a field to another value. The message names the
                field and the manager.
        """
        path = kind.path(namespace, text(manifest, "metadata", "name"))
        try:
            query = {**_write(dry_run), "force": "true"} if force else _write(dry_run)
            return self._object("PATCH", path, query, manifest, media=_APPLY, on=manifest)
        except RefusedError as error:
            if error.status != CONFLICT:
                raise
            raise RefusedError(
                f"{error}; undo that change there, or take the fields over by `kubectl apply "
                f"--server-side --force-conflicts --field-manager={FIELD_MANAGER}`",
                status=error.status,
                reason=error.reason,
                message=error.message,
            ) from error

    def patch(self, path: str, operations: Sequence[Object]) -> Object:
        """Change the object at ``path`` by a JSON patch; all of its operations succeed, or none.

        Raises:
            RefusedError: The server refuses the patch, or a `test` operation fails.
            ClusterError: The server cannot be reached.

        Source: https://www.rfc-editor.org/rfc/rfc6902
        """
        return self._object("PATCH", path, _write(False), operations, media=_JSON_PATCH)

    def delete(self, kind: Kind, namespace: str, manifest: Object) -> None:
        """Delete exactly this object, identified by its UID, after the objects that it owns.

        Source: https://kubernetes.io/docs/concepts/architecture/garbage-collection/#foreground-deletion
        """
        path = kind.path(namespace, text(manifest, "metadata", "name"))
        body = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Foreground",
            "preconditions": {"uid": text(manifest, "metadata", "uid")},
        }
        self._object("DELETE", path, None, body, media=_JSON)

    def rehearse_deletion(self, kind: Kind, namespace: str, name: str) -> None:
        """Have the server judge the deletion of an object, which stays.

        Raises:
            RefusedError: The server refuses it.
        """
        self._object("DELETE", kind.path(namespace, name), {"dryRun": "All"})

    @contextmanager
    def stream(
        self, path: str, query: Query, *, read_timeout: float | None = None
    ) -> Generator[Stream]:
        """Open a response that stays open, such as a watch or a log.

        Args:
            path: Path of the resource.
            query: Parameters of the request.
            read_timeout: Seconds of silence after which the connection counts as broken.
        """
        response = self._send("GET", path, query, None, _JSON, read_timeout)
        try:
            yield Stream(response)
        finally:
            response.close()

    def _object(
        self,
        method: str,
        path: str,
        query: Query | None,
        body: Object | Sequence[Object] | None = None,
        *,
        media: str = _JSON,
        on: Object | None = None,
    ) -> Object:
        about = _about(on) if on is not None else path
        response = self._send(method, path, query or {}, body, media, _READ_TIMEOUT, about)
        return _object_in(response, about)

    def _send(
        self,
        method: str,
        path: str,
        query: Query,
        body: Object | Sequence[Object] | None,
        media: str,
        read_timeout: float | None,
        about: str = "",
    ) -> "BaseHTTPResponse":
        from kubernetes.client.exceptions import ApiException

        try:
            return self._transport.call_api(
                path,
                method,
                query_params=list(query.items()),
                header_params={
                    "Accept": _JSON,
                    "Accept-Encoding": "gzip",
                    "Content-Type": media,
                    **self._headers,
                },
                body=body,
                auth_settings=["BearerToken"],
                _preload_content=False,
                _return_http_data_only=True,
                _request_timeout=(_CONNECT_TIMEOUT, read_timeout),
            )
        except ApiException as error:
            failure = cast("Failure", error)
            if not failure.status:
                raise ClusterError(unreachable(str(failure.reason))) from error
            raise refused(about or path, failure.status, failure.body) from error
        except urllib3.exceptions.HTTPError as error:
            raise ClusterError(unreachable(cause(error))) from error


def _object_in(response: "BaseHTTPResponse", about: str) -> Object:
    try:
        return mapping(parse_json(response.data))
    except (ValueError, urllib3.exceptions.HTTPError) as error:
        raise ClusterError(f"{about}: the response is not JSON: {error}") from error


def _write(dry_run: bool) -> Query:
    query = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict"}
    return {**query, "dryRun": "All"} if dry_run else query


def _about(manifest: Object) -> str:
    return f"{text(manifest, 'kind')} {text(manifest, 'metadata', 'name')}"


_UNAUTHORIZED, _FORBIDDEN = 401, 403
_REMEDIES = {
    _UNAUTHORIZED: "renew your credentials (`aws sso login`), and check that your IAM role has an "
    "access entry in this cluster",
    _FORBIDDEN: "ask an administrator of the cluster for this right, or choose another --context",
}
_SERVER_FAULT = 500
_SERVER_REMEDY = "try again; if the error stays, ask an administrator of the cluster"


def cause(error: urllib3.exceptions.HTTPError) -> str:
    """Return the cause that an error of exhausted retries contains."""
    reason = getattr(error, "reason", None)
    return str(reason or error)


def unreachable(why: str) -> str:
    """Return the message for a server that cannot be reached."""
    return (
        f"the API server cannot be reached: {why}; if its endpoint is private, connect to the "
        "cluster's network first, and check that the kubeconfig's context is the right one"
    )


def refused(about: str, status: int, body: object) -> RefusedError:
    """Return the error for a request that the server refused, with a remedy.

    Args:
        about: The object or the path of the request.
        status: HTTP status.
        body: The response's body: a Status of Kubernetes, or the text of a proxy.
    """
    answer = _status(body)
    message = text(answer, "message") or f"HTTP status {status}"
    remedy = _REMEDIES.get(status, _SERVER_REMEDY if status >= _SERVER_FAULT else "")
    line = f"{about}: {message}"
    return RefusedError(
        f"{line}; {remedy}" if remedy else line,
        status=number(answer, "code", default=status),
        reason=text(answer, "reason"),
        message=message,
    )


def _status(body: object) -> Object:
    raw = body if isinstance(body, str | bytes) else b""
    try:
        answer: object = parse_json(raw)
    except ValueError:
        # A proxy or a load balancer answered.
        return {"message": raw.decode(errors="replace") if isinstance(raw, bytes) else raw}
    return mapping({"answer": answer}, "answer")


# Source: https://kubernetes.io/docs/reference/access-authn-authz/authorization/#checking-api-access
_REVIEW = Kind(
    "authorization.k8s.io/v1",
    "SelfSubjectAccessReview",
    "selfsubjectaccessreviews",
    namespaced=False,
)


def missing_rights(cluster: Cluster, rights: Sequence[tuple[str, Kind]]) -> Sequence[str]:
    """Return the rights that the user lacks, such as `patch nodes`.

    Args:
        cluster: The API server.
        rights: Pairs of a verb and a kind without namespace.

    Raises:
        ClusterError: The server cannot be reached.
    """
    return [
        f"{verb} {kind.resource}" for verb, kind in rights if not _is_allowed(cluster, verb, kind)
    ]


def _is_allowed(cluster: Cluster, verb: str, kind: Kind) -> bool:
    group = kind.api_version.rpartition("/")[0]
    review = {
        "apiVersion": _REVIEW.api_version,
        "kind": _REVIEW.kind,
        "spec": {"resourceAttributes": {"verb": verb, "group": group, "resource": kind.plural}},
    }
    return look_up(cluster.create(_REVIEW, "", review, dry_run=False), "status", "allowed") is True
