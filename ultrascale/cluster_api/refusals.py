"""Errors of API servers, in words that tell the user what to do; `retries` comes before them."""

import json

import urllib3

from ultrascale.cluster_api.objects import Object
from ultrascale.documents import mapping, number, text
from ultrascale.errors import RefusedError

_UNAUTHORIZED, _FORBIDDEN = 401, 403
_REMEDIES = {
    _UNAUTHORIZED: "renew your credentials (`aws sso login`), and check that your IAM role has an "
    "access entry in this cluster",
    _FORBIDDEN: "ask an administrator of the cluster for this right, or choose another --context",
}
_SERVER_FAULT = 500
_SERVER_REMEDY = "try again; if the error stays, ask an administrator of the cluster"


def cause(error: urllib3.exceptions.HTTPError) -> str:
    """Return the reason inside an error that retries have wrapped."""
    reason = getattr(error, "reason", None)
    return str(reason or error)


def unreachable(why: str) -> str:
    """Return the message for a server that does not respond."""
    return (
        f"the API server cannot be reached: {why}; if its endpoint is private, connect to the "
        "cluster's network first, and check that the kubeconfig's context is the right one"
    )


def refused(about: str, status: int, body: object) -> RefusedError:
    """Return the error of a request that the server refused, with a remedy.

    Args:
        about: The object or the path of the request.
        status: HTTP status.
        body: The body: a Status of Kubernetes, or the text of a proxy.
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
        answer: object = json.loads(raw)
    except ValueError:
        # A proxy or a load balancer answered.
        return {"message": raw.decode(errors="replace") if isinstance(raw, bytes) else raw}
    return mapping({"answer": answer}, "answer")
