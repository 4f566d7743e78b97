"""What a refusal of the API server means to a user."""

import json

import urllib3

from ultrascale.cluster_api.objects import Object
from ultrascale.documents import mapping, number, text
from ultrascale.errors import RefusedError

_UNAUTHORIZED, _FORBIDDEN = 401, 403
_REMEDIES = {
    _UNAUTHORIZED: "renew your credentials (`aws sso login`), and see that your IAM role has an "
    "access entry of this cluster",
    _FORBIDDEN: "ask who administers the cluster for this right, or choose another --context",
}
_SERVER_FAULT = 500
_SERVER_REMEDY = "try again; if it stays, ask who runs the cluster"


def cause(error: urllib3.exceptions.HTTPError) -> str:
    """Return what lies behind an error that retries have wrapped."""
    reason = getattr(error, "reason", None)
    return str(reason or error)


def unreachable(why: str) -> str:
    """Return what to do about a server that does not answer."""
    return (
        f"the API server cannot be reached: {why}; if its endpoint is private, connect to the "
        "cluster's network first, and see that the kubeconfig's context is the one you mean"
    )


def refused(about: str, status: int, body: object) -> RefusedError:
    """Return what an answer that is no success says, and what to do about it.

    Args:
        about: What the request was about.
        status: HTTP status.
        body: What was answered: a Status of Kubernetes, or what something before it says.
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
