"""OpenAI's API at the proxies: the model of a request, the list of models, and errors."""

import json
from collections.abc import Mapping, Sequence
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

_SCRIPT = f"""\
local most, left = {_MOST_STEPS}, 0

local function model_of(text)
  left = most
  local function behind_string(quote)
    local at = quote + 1
    while left > 0 do
      local found = string.find(text, '"', at, true)
      if found == nil then return nil end
      local before = found - 1
      while string.byte(text, before) == 92 do before = before - 1 end
      local slashes = found - 1 - before
      left = left - 1 - slashes / {_SLASHES_OF_A_STEP}
      if slashes % 2 == 0 then return found + 1 end
      at = found + 1
    end
    return nil
  end
  local at, depth, quote = 1, 0, 0
  while true do
    if quote < at then
      quote = string.find(text, '"', at, true)
      if quote == nil then return nil end
      left = left - (quote - at) / {_BYTES_OF_A_STEP}
    end
    left = left - 1
    if left <= 0 then return nil end
    local found = string.find(text, '["{{}}%[%]]', at)
    local char = string.sub(text, found, found)
    if char == '"' then
      at = behind_string(found)
      if at == nil then return nil end
      if depth == 1 and string.sub(text, found + 1, at - 2) == "model" then
        local value = string.match(text, '^%s*:%s*()"', at)
        if value ~= nil then
          local ends = behind_string(value)
          if ends == nil then return nil end
          return (string.gsub(string.sub(text, value + 1, ends - 2), "\\\\/", "/"))
        end
      end
    else
      if char == "{{" or char == "[" then depth = depth + 1 else depth = depth - 1 end
      at = found + 1
    end
  end
end

local function model_object(id, at)
  return '{{"id":"' .. id .. '","object":"model","created":' .. at .. ',"owned_by":"ultrascale"}}'
end

local function answer(handle, status, text)
  handle:respond({{[":status"] = status, ["content-type"] = "application/json"}}, text)
end

local clients, known_clients = {{}}, 0

local function client_of(handle)
  if limits == nil then return nil end
  -- Tokens may have no sub.
  local name, now = handle:headers():get("{CLIENT_HEADER}") or "", handle:timestamp()
  local client = clients[name]
  if client == nil then
    if known_clients == {_MOST_CLIENTS} then clients, known_clients = {{}}, 0 end
    client = {{steps = most, at = now, requests = 0, bytes = 0, under_way = {{}}}}
    if setmetatable ~= nil then setmetatable(client.under_way, {{__mode = "k"}}) end
    clients[name], known_clients = client, known_clients + 1
  end
  client.steps = math.min(most, client.steps + (now - client.at) * {_STEPS_OF_A_MS})
  client.at = now
  return client
end

local function has_room(client, length)
  return client.requests < limits.requests and client.bytes + length <= limits.bytes
end

local function takes(handle, client)
  local length = tonumber(handle:headers():get("content-length"))
  if length == nil then
    length = handle:headers():get(":method") == "GET" and 0 or limits.body
  end
  if not has_room(client, length) then
    collectgarbage()
    client.requests, client.bytes = 0, 0
    for _, bytes in pairs(client.under_way) do
      client.requests, client.bytes = client.requests + 1, client.bytes + bytes
    end
  end
  if client.steps < {_STEPS_LEFT} or not has_room(client, length) then return false end
  client.under_way[coroutine.running() or "none"] = length
  client.requests, client.bytes = client.requests + 1, client.bytes + length
  return true
end

local kept, kept_until = nil, 0

local function models(handle)
  local now = handle:timestamp()
  if kept ~= nil and now < kept_until then return kept end
  local headers, told = handle:httpCall(
    "{ADMIN_CLUSTER}",
    {{[":method"] = "GET", [":path"] = "{_SERVICES}", [":authority"] = "localhost"}},
    nil, {_PATIENCE_MS})
  if headers[":status"] ~= "200" or told == nil then return nil end
  local found = {{ids = {{}}, known = {{}}}}
  for ids in string.gmatch(told, '"{MODELS_METADATA}": *"([^"]*)"') do
    for id in string.gmatch(ids, "[%w%._/:@+-]+") do
      if not found.known[id] then
        found.known[id] = true
        table.insert(found.ids, id)
      end
    end
  end
  table.sort(found.ids)
  kept, kept_until = found, now + {_KEPT_MS}
  return found
end

local function tell_models(handle, wanted)
  local found = models(handle)
  local now = string.format("%d", math.floor(handle:timestamp() / 1000))
  if found == nil then
    answer(handle, "502", '{_UNKNOWN}')
  elseif wanted == nil then
    local list = {{}}
    for number, id in ipairs(found.ids) do list[number] = model_object(id, now) end
    answer(handle, "200", '{{"object":"list","data":[' .. table.concat(list, ",") .. "]}}")
  elseif found.known[wanted] then
    answer(handle, "200", model_object(wanted, now))
  else
    answer(handle, "404", '{UNKNOWN_MODEL}')
  end
end

function envoy_on_request(handle)
  local path = string.match(handle:headers():get(":path"), "^[^?]*")
  if handle:headers():get(":method") == "GET" then
    if path == "/v1/models" or path == "/v1/models/" then return tell_models(handle, nil) end
    local wanted = string.match(path, "^/v1/models/(.+)$")
    if wanted ~= nil then
      wanted = string.gsub(wanted, "%%(%x%x)", function(code)
        return string.char(tonumber(code, 16))
      end)
      return tell_models(handle, wanted)
    end
  end
  local client = client_of(handle)
  if client ~= nil and not takes(handle, client) then return answer(handle, "429", "") end
  local body = handle:body()
  -- Others of the same client may have been read meanwhile.
  client = client_of(handle)
  if client ~= nil and client.steps < {_STEPS_LEFT} then return answer(handle, "429", "") end
  if body ~= nil then
    local model = model_of(body:getBytes(0, body:length()))
    if client ~= nil then client.steps = client.steps - most + left end
    if body:length() > {_LARGE_BODY} then collectgarbage() end
    if left <= 0 then return answer(handle, "400", '{_TOO_DEEP}') end
    if model ~= nil and string.find(model, "^[%w%._/:@+-]+$") then
      handle:headers():replace("{MODEL_HEADER}", model)
    end
  end
  local model = handle:headers():get("{MODEL_HEADER}")
  if models_of_clients == nil or model == nil then return end
  local own = models_of_clients[handle:headers():get("{CLIENT_HEADER}") or ""]
  if own == nil or not own[model] then answer(handle, "403", "") end
end
"""
"""The script, in Lua 5.1, that copies the body's model into the header.

A request whose body names no model keeps its header. If a body has `model` twice, requests are
routed by the first, and most servers read the last: they answer that they do not have that model.
"""

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
    script = _SCRIPT.replace(head, head + _HIDES_TOKEN) if hides_token else _SCRIPT
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
