"""Errors of the front in the form of OpenAI's API, which clients can read.

Sources:
    https://platform.openai.com/docs/guides/error-codes
    https://gateway.envoyproxy.io/docs/tasks/traffic/response-override/
"""

import json
from typing import Literal

from ultrascale.documents import Json

_JSON = "application/json"
# Seconds before OpenAI's clients retry; a replica may take minutes to start.
_RETRY_SECONDS = 10

Kind = Literal["invalid_request_error", "server_error"]


def error(message: str, kind: Kind, *, code: str, param: str | None = None) -> str:
    """Return the body of an error."""
    fields = {"message": message, "type": kind, "param": param, "code": code}
    return json.dumps({"error": fields}, separators=(",", ":"))


UNKNOWN_MODEL = error(
    "no model of this name is served here: GET /v1/models lists them",
    "invalid_request_error",
    code="model_not_found",
    param="model",
)
"""Answer to a request for a model that no service has."""

CLOSED_PATH = error(
    "no such path here: those of OpenAI's API begin with /v1",
    "invalid_request_error",
    code="unknown_url",
)
"""Answer to a request for a path that is not open."""


def response_overrides() -> list[Json]:
    """Return the answers that replace plain texts of the proxies.

    Errors of services are passed on unchanged.
    """
    return [
        _override(
            [401],
            "no valid key or token came along: send it as Authorization: Bearer KEY",
            "invalid_request_error",
            code="invalid_api_key",
        ),
        _override(
            [403],
            "the token is not for this address",
            "invalid_request_error",
            code="invalid_audience",
        ),
        _override(
            [413],
            "the request is larger than 64 MiB",
            "invalid_request_error",
            code="request_too_large",
        ),
        # Envoy Gateway gives this answer while a policy cannot be applied.
        _override(
            [500],
            "the front is not set up: its SecurityPolicy and routes say why in their status",
            "server_error",
            code="front_not_ready",
        ),
        _override(
            [503],
            "no replica of the model takes requests now: try again",
            "server_error",
            code="model_not_ready",
            retry=True,
        ),
        _override(
            [408, 504],
            "no word came for too long",
            "server_error",
            code="timeout",
        ),
    ]


def _override(
    statuses: list[int], message: str, kind: Kind, *, code: str, retry: bool = False
) -> Json:
    matched: list[Json] = [{"type": "Value", "value": status} for status in statuses]
    wait: list[Json] = [{"name": "retry-after", "value": str(_RETRY_SECONDS)}]
    header: dict[str, Json] = {"header": {"set": wait}} if retry else {}
    return {
        "match": {"statusCodes": matched},
        "source": "Local",
        "response": {
            "contentType": _JSON,
            "body": {"type": "Inline", "inline": error(message, kind, code=code)},
            **header,
        },
    }
