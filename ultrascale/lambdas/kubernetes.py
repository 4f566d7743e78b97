"""Client of an EKS cluster's Kubernetes API, of the standard library and botocore alone."""

import base64
import json
import os
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException, HTTPResponse
from typing import TYPE_CHECKING

import boto3
from botocore.session import Session
from botocore.signers import RequestSigner

if TYPE_CHECKING:
    from .kubernetes_objects import Object, Page


JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"

_TIMEOUT_SECONDS = 10
_PAGE = 500
_PART_BYTES = 2**16
# Metrics of a model server have some hundred kilobytes.
_MOST_TEXT_BYTES = 8 * 2**20
# The API server learns of a new access entry only after some seconds.
_ATTEMPTS = 5
_SECONDS_BETWEEN = 5
# Form of a token of `aws eks get-token`. The API server accepts a token for 15 minutes.
# Source: https://github.com/kubernetes-sigs/aws-iam-authenticator#api-authorization-from-outside-a-cluster
_TOKEN_PREFIX = "k8s-aws-v1."
_CLUSTER_HEADER = "x-k8s-aws-id"
_SIGNED_FOR_SECONDS = 60


class KubernetesError(Exception):
    """Error: the API server refused a request."""

    def __init__(self, status: int, request: str, message: str) -> None:
        super().__init__(f"{request}: {status}: {message}")
        self.status = status  # HTTP status


class KubernetesApi:
    """API server of one cluster."""

    def __init__(
        self,
        *,
        endpoint: str,
        context: ssl.SSLContext,
        token: str,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._endpoint = endpoint
        self._token = token
        self._sleep = sleep
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )

    def get(self, path: str) -> "Object":
        """Return the object at ``path``.

        Raises:
            KubernetesError: The API server refused.
            OSError: It could not be reached.
        """
        answer: Object = json.loads(self._call("GET", path))
        return answer

    def text(self, path: str, *, timeout: float) -> str:
        """Return the answer at ``path``, such as a pod's answer through the API server.

        Args:
            path: Path of the request.
            timeout: Seconds of silence after which the pod counts as unreachable; also the most
                seconds from the answer's first byte to its last.

        Raises:
            KubernetesError: The API server refused, or did not reach the pod.
            OSError: The server could not be reached, or its answer is too long or too slow.
        """
        whole = partial(_limited_answer, seconds=timeout)
        # A 401 may come from the pod itself, which answers the same at the next attempt.
        answer = self._call(
            "GET", path, accept="text/plain", timeout=timeout, whole=whole, attempts=1
        )
        return answer.decode(errors="replace")

    def list(self, path: str, **query: str) -> "Iterator[Object]":
        """Yield the objects at ``path`` that the selectors in ``query`` match.

        The objects come from the API server's cache, some moments old: etcd would have to read
        every node of a large cluster. The cache ignores page sizes, so use `list` if few objects
        match.

        Raises:
            KubernetesError: The API server refused.
            OSError: It could not be reached.

        Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-get-and-list
        """
        return self._pages(path, query, {"resourceVersion": "0"})

    def stream(self, path: str, **query: str) -> "Iterator[Object]":
        """Yield the objects at ``path`` page by page: the nodes of a fleet exceed the memory.

        Since Kubernetes 1.34 the pages come from a snapshot of the cache, not from etcd.

        Raises:
            KubernetesError: The API server refused.
            OSError: It could not be reached.

        Source: https://www.kubernetes.dev/resources/keps/4988/
        """
        return self._pages(path, query, {})

    def _pages(
        self, path: str, selectors: Mapping[str, str], first: Mapping[str, str]
    ) -> "Iterator[Object]":
        query = {**selectors, "limit": str(_PAGE)}
        page = {**query, **first}
        while True:
            answer: Page = json.loads(self._call("GET", f"{path}?{urllib.parse.urlencode(page)}"))
            yield from answer["items"]
            token = answer["metadata"].get("continue")
            if not token:
                return
            page = {**query, "continue": token}

    def patch(self, path: str, patch: object, *, kind: str) -> None:
        """Change the object at ``path``.

        Args:
            path: Its path.
            patch: The patch.
            kind: `JSON_PATCH` or `MERGE_PATCH`.

        Raises:
            KubernetesError: The API server refused.
            OSError: It could not be reached.
        """
        self._call("PATCH", path, patch, kind)

    def create(self, path: str, manifest: object) -> None:
        """Create ``manifest`` in the collection at ``path``.

        Raises:
            KubernetesError: The API server refused.
            OSError: It could not be reached.
        """
        self._call("POST", path, manifest)

    def delete(self, path: str) -> None:
        """Delete the object at ``path``.

        Raises:
            KubernetesError: The API server refused.
            OSError: It could not be reached.
        """
        self._call("DELETE", path)

    def _call(
        self,
        method: str,
        path: str,
        body: object = None,
        content_type: str = "application/json",
        *,
        accept: str = "application/json",
        timeout: float = _TIMEOUT_SECONDS,
        whole: Callable[[HTTPResponse], bytes] = HTTPResponse.read,
        attempts: int = _ATTEMPTS,
    ) -> bytes:
        request = urllib.request.Request(
            self._endpoint + path,
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={
                "Authorization": f"Bearer {self._token}",
                "Accept": accept,
                "Content-Type": content_type,
            },
        )
        for left in reversed(range(attempts)):
            try:
                with self._opener.open(request, timeout=timeout) as answer:
                    return whole(answer)
            except urllib.error.HTTPError as error:
                if error.code != 401 or left == 0:
                    text = error.read().decode(errors="replace")
                    raise KubernetesError(error.code, f"{method} {path}", text) from error
            except HTTPException as error:
                # Reason: an answer that ends before its length, for example, raises no OSError.
                raise ConnectionError(f"{method} {path}: {error!r}") from error
            self._sleep(_SECONDS_BETWEEN)
        raise AssertionError("unreachable")


def _limited_answer(answer: HTTPResponse, *, seconds: float) -> bytes:
    """Return a pod's answer up to limits of length and time: any program may have written it.

    Raises:
        OSError: The answer is too long, or takes more than ``seconds``.
    """
    found, end = bytearray(), time.monotonic() + seconds
    while part := answer.read1(_PART_BYTES):
        found += part
        if len(found) > _MOST_TEXT_BYTES:
            raise OSError(f"its answer is longer than {_MOST_TEXT_BYTES:,} bytes")
        if time.monotonic() > end:
            raise TimeoutError(f"its answer took longer than {seconds:g} seconds")
    return bytes(found)


def tls_context(certificate_authority: str) -> ssl.SSLContext:
    """Return a TLS context that trusts only the cluster's own authority.

    Args:
        certificate_authority: Its certificate, in base64 as EKS has it.
    """
    pem = base64.b64decode(certificate_authority).decode()
    context = ssl.create_default_context(cadata=pem)
    # EKS creates authorities without key identifiers. They are valid, but Python 3.13 refuses them
    # (kubernetes-client/python#2394).
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def bearer_token(session: Session, *, cluster: str, region: str) -> str:
    """Return a token for ``cluster``: a signed request to STS that identifies the caller.

    Args:
        session: botocore session with the credentials.
        cluster: Name of the cluster that the token is bound to.
        region: Region of the STS endpoint.
    """
    sts = session.create_client("sts", region_name=region)
    credentials = session.get_credentials()
    assert credentials is not None, "Lambda gives each function credentials"
    signer = RequestSigner(
        sts.meta.service_model.service_id,
        region,
        "sts",
        "v4",
        credentials,
        session.get_component("event_emitter"),
    )
    url = signer.generate_presigned_url(
        {
            "method": "GET",
            "url": f"{sts.meta.endpoint_url}/?Action=GetCallerIdentity&Version=2011-06-15",
            "body": {},
            "headers": {_CLUSTER_HEADER: cluster},
            "context": {},
        },
        region_name=region,
        expires_in=_SIGNED_FOR_SECONDS,
        operation_name="",
    )
    return _TOKEN_PREFIX + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")


# --- Endpoint and certificate authority of an EKS cluster, read from EKS at the time of the call
# EKS rotates the authority of a cluster: with an authority frozen in a template, all calls fail.
#
# Sources:
#     https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeCluster.html
#     https://docs.aws.amazon.com/eks/latest/APIReference/API_Certificate.html


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiServer:
    """The API server of a cluster."""

    endpoint: str  # Its URL
    certificate_authority: str  # Its certificate authority, in base64


def look_up(name: str) -> ApiServer:
    """Return the API server of the cluster ``name``.

    Raises:
        ClientError: EKS refused.
    """
    cluster = boto3.client("eks").describe_cluster(name=name)["cluster"]
    return ApiServer(
        endpoint=cluster["endpoint"],
        certificate_authority=cluster["certificateAuthority"]["data"],
    )


def api_of(cluster: str) -> KubernetesApi:
    """Return the Kubernetes API of a cluster, in the Region of the function.

    Raises:
        ClientError: EKS refused.
    """
    server = look_up(cluster)
    return KubernetesApi(
        endpoint=server.endpoint,
        context=tls_context(server.certificate_authority),
        token=bearer_token(Session(), cluster=cluster, region=os.environ["AWS_REGION"]),
    )
