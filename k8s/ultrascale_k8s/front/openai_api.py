"""OpenAI's API at the proxies: the model of a request, the list of models, and errors."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal

from ultrascale.documents import Json
from ultrascale.parts.front.model import LimitsPlan
from ultrascale.plan.names import CLIENT_HEADER, MODEL_HEADER, MODELS_METADATA

# --- Errors of the front in the form of OpenAI's API, which clients can read ----------------------
# Sources:
#     https://platform.openai.com/docs/guides/error-codes
#     https://gateway.envoyproxy.io/docs/tasks/traffic/response-override/


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


def response_overrides(body_mib: int) -> list[Json]:
    """Return the answers that replace plain texts of the proxies.

    Errors of services are passed on unchanged.

    Args:
        body_mib: Size of the largest request, in MiB.
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
            "this token or client may not use the model",
            "invalid_request_error",
            code="not_allowed",
        ),
        _override(
            [413],
            f"the request is larger than {body_mib} MiB",
            "invalid_request_error",
            code="request_too_large",
        ),
        _override(
            [429],
            "this client has as many requests as it may have now: try again",
            "invalid_request_error",
            code="rate_limit_exceeded",
            retry=True,
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


# --- The script by which proxies read the model of a request from its body, and list the models
# Routes choose by headers, and OpenAI-style requests name their model in JSON. The script runs in
# each proxy before the route is chosen again; it jumps from one structural character or quote to
# the next, so that megabytes of a prompt cost milliseconds, and reads only the key of the outermost
# object. It gives a request up after a number of jumps: the proxy's worker has others to serve.
#
# Envoy counts the requests of a client only behind the script, and none that are under way. So the
# script counts both by client, in each worker, before a body is read. A coroutine lives as long as
# its request: one that ends or breaks off leaves the table of weak keys at the next collection.
# Envoy Gateway tries the script outside of a coroutine, and without setmetatable.
#
# The list of models names what the proxy can serve: the script asks the proxy's own administration,
# over loopback, for the services with ready pods. Routes of services carry their models' names
# there.
#
# Sources:
#     https://www.envoyproxy.io/docs/envoy/v1.39.1/configuration/http/http_filters/lua_filter
#     https://github.com/envoyproxy/gateway/tree/v1.9.0/internal/gatewayapi/luavalidator
#     https://www.rfc-editor.org/rfc/rfc8259
#     https://www.envoyproxy.io/docs/envoy/v1.39.1/operations/admin#get--config_dump?resource=
#     https://platform.openai.com/docs/api-reference/chat/create#chat-create-model
#     https://platform.openai.com/docs/api-reference/models/list


ADMIN_CLUSTER = "prometheus_stats"
"""Envoy Gateway's name for a proxy's own administration, which listens on loopback.

Source: https://github.com/envoyproxy/gateway/blob/v1.9.0/internal/xds/bootstrap/bootstrap.yaml.tpl
"""

# Only metadata is requested, not endpoints and keys of clients.
_SERVICES = "/config_dump?resource=dynamic_active_clusters&mask=cluster.metadata"
_PATIENCE_MS = 1000
# The administration has a single thread, which writes the services in milliseconds.
_KEPT_MS = 2000
# Steps that one request may cost a proxy's worker, which serves others meanwhile: a tenth of a
# second of LuaJIT 2.1, measured. A prompt is one step, and each quote in it another. Patterns
# between strings read two bytes in that time, and sixteen backslashes are counted.
_MOST_STEPS = 3_000_000
_SLASHES_OF_A_STEP, _BYTES_OF_A_STEP = 16, 2
# A client may take a twentieth of a worker's time, and hardly more at once. Names in tokens are
# endless, the table is not.
_STEPS_OF_A_MS = _MOST_STEPS // 2000
_STEPS_LEFT = _MOST_STEPS // 4
_MOST_CLIENTS = 10_000
# A copy of a body that is larger is freed at once.
_LARGE_BODY = 1 << 20
_TOO_DEEP = error(
    "the request has too many parts before its model: write model first",
    "invalid_request_error",
    code="model_not_reached",
    param="model",
)
_UNKNOWN = error("the list of models is not known now: try again", "server_error", code="busy")

# Values of the script, whose places there have their names between two `@`.
_VALUES: Mapping[str, int | str] = {
    "MOST_STEPS": _MOST_STEPS,
    "SLASHES_OF_A_STEP": _SLASHES_OF_A_STEP,
    "BYTES_OF_A_STEP": _BYTES_OF_A_STEP,
    "CLIENT_HEADER": CLIENT_HEADER,
    "MOST_CLIENTS": _MOST_CLIENTS,
    "STEPS_OF_A_MS": _STEPS_OF_A_MS,
    "STEPS_LEFT": _STEPS_LEFT,
    "ADMIN_CLUSTER": ADMIN_CLUSTER,
    "SERVICES": _SERVICES,
    "PATIENCE_MS": _PATIENCE_MS,
    "MODELS_METADATA": MODELS_METADATA,
    "KEPT_MS": _KEPT_MS,
    "UNKNOWN": _UNKNOWN,
    "UNKNOWN_MODEL": UNKNOWN_MODEL,
    "LARGE_BODY": _LARGE_BODY,
    "TOO_DEEP": _TOO_DEEP,
    "MODEL_HEADER": MODEL_HEADER,
}


@cache
def _script() -> str:
    """Return the script, in Lua 5.1, that copies the body's model into the header.

    A request whose body names no model keeps its header. If a body has `model` twice, requests are
    routed by the first, and most servers read the last: they answer that they do not have it.
    """
    script = Path(__file__).with_suffix(".lua").read_text(encoding="utf-8")
    return re.sub("@([A-Z_]+)@", lambda place: str(_VALUES[place[1]]), script)


_HIDES_TOKEN = """\
  handle:headers():remove("authorization")
"""


def model_script(
    *,
    hides_token: bool,
    models_by_client: Mapping[str, Sequence[str]] | None = None,
    limits: LimitsPlan | None = None,
) -> str:
    """Return the script, which runs after authentication.

    Args:
        hides_token: Whether the script removes a client's token, which services could misuse.
        models_by_client: Models that each client may use; None: each may use all.
        limits: Limits of each client; None: clients have no names.
    """
    head = "function envoy_on_request(handle)\n"
    script = _script().replace(head, head + _HIDES_TOKEN) if hides_token else _script()
    tables = {"models_of_clients": _lua_table(models_by_client), "limits": _lua_limits(limits)}
    return "".join(f"local {name} = {value}\n\n" for name, value in tables.items()) + script


def _lua_limits(limits: LimitsPlan | None) -> str:
    if limits is None:
        return "nil"
    requests = "math.huge" if limits.in_flight is None else str(limits.in_flight)
    mib = 1 << 20
    return (
        f"{{requests = {requests}, bytes = {limits.in_flight_mib * mib}, "
        f"body = {limits.body_mib * mib}}}"
    )


def _lua_table(models_by_client: Mapping[str, Sequence[str]] | None) -> str:
    """Return Lua's table of the models of each client; its names need no escapes."""
    if models_by_client is None:
        return "nil"
    clients: list[str] = []
    for client, models in models_by_client.items():
        own = ", ".join(f'["{model}"] = true' for model in models)
        clients.append(f'["{client}"] = {{{own}}}')
    return "{" + ", ".join(clients) + "}"
