"""The front's objects: valid under upstream's definitions, and what clients rely on.

`tests/data/front_crds.jsonl` holds the definitions.
"""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest
import yaml

from tests.support.crd_schemas import CrdSet
from tests.support.folders import ROOT
from tests.support.queued_pools import planned as planned_file
from ultrascale.parts.front import Plan
from ultrascale.plan import ClusterPlan, names
from ultrascale_k8s import define_charts

Document = dict[str, Any]
JWT = {
    "issuer": "https://login.example.com",
    "audiences": ["models"],
    "jwks_uri": "https://login.example.com/keys",
}

LIMITED = (
    "{exposure: cluster, api_keys: keys, "
    "limits: {body_mib: 64, in_flight_mib: 512, requests_per_second: 9}}"
)


@cache
def upstream() -> CrdSet:
    lines = (ROOT / "tests" / "data" / "front_crds.jsonl").read_text().splitlines()
    return CrdSet.from_documents(json.loads(line) for line in lines if not line.startswith("#"))


@cache
def planned(front: str = "{exposure: cluster}") -> ClusterPlan:
    document = yaml.safe_load((ROOT / "clusters" / "serving.yaml").read_text())
    document["serving"] = {"front": yaml.safe_load(front)}
    return planned_file(document)


@cache
def objects(front: str = "{exposure: cluster}") -> Mapping[str, Document]:
    *_, chart = define_charts(planned(front)).of_layers["serving-front"]
    found: list[Document] = [dict(each) for each in chart.manifests]
    return {each["kind"]: each for each in found}


@pytest.mark.parametrize(
    "front",
    [
        "{exposure: cluster}",
        "{exposure: cluster, api_keys: front-keys, replicas: 3}",
        f"{{exposure: cluster, jwt: {JWT}}}",
        LIMITED,
    ],
)
def test_upstreams_definitions_take_every_object(front: str) -> None:
    assert [wrong for each in objects(front).values() for wrong in upstream().validate(each)] == []


def test_proxies_run_apart_on_system_nodes_and_finish_answers_as_they_go() -> None:
    spec = objects()["EnvoyProxy"]["spec"]
    kubernetes = spec["provider"]["kubernetes"]
    deployment = kubernetes["envoyDeployment"]
    assert deployment["replicas"] == 2
    assert deployment["pod"]["nodeSelector"] == {"ultrascale.dev/role": "system"}
    assert deployment["pod"]["topologySpreadConstraints"][0]["whenUnsatisfiable"] == "DoNotSchedule"
    # Of a hundred proxies, drains of nodes may not take ninety-nine.
    budget = kubernetes["envoyPDB"]
    assert budget["maxUnavailable"] == 1
    # One that does not serve keeps no node from being drained.
    assert budget["patch"]["value"]["spec"] == {"unhealthyPodEvictionPolicy": "AlwaysAllow"}
    assert kubernetes["envoyService"]["type"] == "ClusterIP"
    # A load balancer keeps connections of no request, and they count as answers: a proxy that goes
    # holds a drain of its node for less than EKS waits.
    found = planned("{}").part(Plan)
    assert found is not None
    assert found.drain_seconds < 15 * 60 - 60
    assert spec["shutdown"]["drainTimeout"] == f"{found.drain_seconds}s"
    # A rollout waits until the load balancer sends to the new proxy: it needs two good checks, 5 s
    # apart, and with two proxies, no other one may be left.
    assert deployment["patch"]["value"]["spec"]["minReadySeconds"] >= 20


def test_a_proxy_has_memory_for_one_client_at_its_limits_beside_the_others() -> None:
    """Envoy refuses the requests of all clients from 80 % of its memory on."""
    for front in ("{exposure: cluster, api_keys: keys}", LIMITED):
        plan = planned(front).part(Plan)
        assert plan is not None
        spec = objects(front)["EnvoyProxy"]["spec"]
        container = spec["provider"]["kubernetes"]["envoyDeployment"]["container"]
        most = int(container["resources"]["limits"]["memory"].removesuffix("Mi"))
        of_client = spec["concurrency"] * (plan.limits.in_flight_mib + plan.limits.body_mib)
        assert of_client + 512 <= 0.8 * most
        buffer = objects(front)["ClientTrafficPolicy"]["spec"]["connection"]["bufferLimit"]
        assert buffer == f"{plan.limits.body_mib}Mi"


def test_each_client_has_a_rate_of_its_own() -> None:
    assert "rateLimit" not in objects()["BackendTrafficPolicy"]["spec"]
    (rule,) = objects(LIMITED)["BackendTrafficPolicy"]["spec"]["rateLimit"]["local"]["rules"]
    (selector,) = rule["clientSelectors"]
    assert selector == {"headers": [{"name": names.CLIENT_HEADER, "type": "Distinct"}]}
    assert rule["limit"] == {"requests": 9, "unit": "Second"}


def test_no_request_ends_for_want_of_a_word_within_an_hour() -> None:
    """Envoy ends streams that are idle for 5 minutes, and Envoy Gateway requests after 15 s."""
    client = objects()["ClientTrafficPolicy"]["spec"]["timeout"]["http"]
    policy = objects()["BackendTrafficPolicy"]["spec"]
    backend = policy["timeout"]["http"]
    assert client["streamIdleTimeout"] == backend["streamIdleTimeout"] == "3900s"
    assert backend["requestTimeout"] == "0s"
    # Servers of vLLM close an idle connection after 5 s, and what is sent meanwhile is lost: 503.
    assert int(backend["connectionIdleTimeout"].removesuffix("s")) < 5
    # A request is sent again only where no model has seen it.
    assert policy["retry"]["retryOn"] == {"triggers": ["connect-failure", "refused-stream"]}


def test_a_connection_without_a_word_is_kept_alive_and_one_without_a_peer_is_found() -> None:
    """A long answer may say nothing for minutes; security groups forget after 350 s."""
    for policy in ("ClientTrafficPolicy", "BackendTrafficPolicy"):
        keepalive = objects()[policy]["spec"]["tcpKeepalive"]
        seconds = {key: int(str(value).removesuffix("s")) for key, value in keepalive.items()}
        assert seconds["idleTime"] + seconds["probes"] * seconds["interval"] < 350


def test_errors_of_the_proxies_have_the_form_that_clients_of_openai_read() -> None:
    rules = objects()["BackendTrafficPolicy"]["spec"]["responseOverride"]
    codes = [code for each in rules for code in each["match"]["statusCodes"]]

    for status in (401, 403, 408, 413, 429, 500, 503, 504):
        assert codes.count({"type": "Value", "value": status}) == 1
    for rule in rules:
        text = rule["response"]["body"]["inline"]
        assert rule["source"] == "Local"
        assert {"message", "type", "param", "code"} == json.loads(text)["error"].keys()
        # Envoy would read it as a value of its own.
        assert "%" not in text


def test_authentication_is_asked_for_where_the_file_says_so() -> None:
    keys = objects("{exposure: cluster, api_keys: front-keys}")["SecurityPolicy"]["spec"]
    assert keys["apiKeyAuth"]["credentialRefs"][0]["name"] == "front-keys"
    assert keys["apiKeyAuth"]["sanitize"] is True
    tokens = objects(f"{{exposure: cluster, jwt: {JWT}}}")["SecurityPolicy"]["spec"]
    (provider,) = tokens["jwt"]["providers"]
    assert provider["issuer"] == JWT["issuer"]
    assert provider["audiences"] == ["models"]
    assert provider["claimToHeaders"] == [{"claim": "sub", "header": "x-ultrascale-client"}]


def test_authentication_goes_with_its_key_of_the_file() -> None:
    """A deployment deletes no object that has left the manifests: its policy would stay."""
    left = objects()["SecurityPolicy"]

    kept = objects("{exposure: cluster, api_keys: front-keys}")["SecurityPolicy"]
    assert left["metadata"] == kept["metadata"]
    assert left["spec"] == {"targetRefs": kept["spec"]["targetRefs"]}


def test_a_service_gets_no_token_of_a_client_and_no_client_says_that_it_is_another() -> None:
    """Whoever runs a service could use a token at the front, and elsewhere."""
    tokens = f"{{exposure: cluster, jwt: {JWT}}}"
    for front in ("{exposure: cluster}", "{exposure: cluster, api_keys: keys}", tokens):
        (lua,) = objects(front)["EnvoyExtensionPolicy"]["spec"]["lua"]
        assert ('remove("authorization")' in lua["inline"]) is (front == tokens)
    for front in ("{exposure: cluster}", "{exposure: cluster, api_keys: keys}"):
        # Services read the header, which the filter for keys alone sets.
        headers = objects(front)["ClientTrafficPolicy"]["spec"]["headers"]
        assert headers["earlyRequestHeaders"]["remove"] == ["x-ultrascale-client"]


def test_routes_count_in_namespaces_of_services_alone() -> None:
    spec = objects()["Gateway"]["spec"]
    (listener,) = spec["listeners"]
    (names,) = listener["allowedRoutes"]["namespaces"]["selector"]["matchExpressions"]
    # The API server sets this label, and lets nobody change it.
    assert names["key"] == "kubernetes.io/metadata.name"
    assert names["values"] == ["envoy-gateway-system", "serving"]
    assert [each["kind"] for each in listener["allowedRoutes"]["kinds"]] == ["HTTPRoute"]
    # Without it no ListenerSet of another namespace adds a listener.
    assert "allowedListeners" not in spec


def test_a_mirror_has_the_proxies_too() -> None:
    document = yaml.safe_load((ROOT / "clusters" / "serving.yaml").read_text())
    document["images"]["mirror"] = "registry.example.com/mirror"
    plan = planned_file(document)
    *_, chart = define_charts(plan).of_layers["serving-front"]
    (proxy,) = (each for each in chart.manifests if each["kind"] == "EnvoyProxy")
    assert "registry.example.com/mirror/docker.io/envoyproxy/envoy:" in json.dumps(proxy)


def policies(front: str, namespace: str) -> Mapping[str, Document]:
    charts = define_charts(planned(front)).platform
    found: list[Document] = [dict(each) for chart in charts for each in chart.manifests]
    return {
        each["metadata"]["name"]: each
        for each in found
        if each["kind"] == "NetworkPolicy" and each["metadata"]["namespace"] == namespace
    }


def test_policies_open_proxies_to_clients_and_neither_controller_nor_service_to_others() -> None:
    found = policies("{exposure: cluster}", "envoy-gateway-system")
    beside = policies("{exposure: cluster}", "serving")["allow-same-namespace"]["spec"]
    closed = {each["key"]: each["operator"] for each in beside["podSelector"]["matchExpressions"]}

    assert found.keys() == {"default-deny-ingress", "proxies-ingress", "controller-ingress"}
    port = {"port": 10080, "protocol": "TCP"}
    assert found["proxies-ingress"]["spec"]["ingress"] == [{"ports": [port]}]
    (rule,) = found["controller-ingress"]["spec"]["ingress"]
    assert rule["from"] == [{"podSelector": {"matchLabels": {"app.kubernetes.io/name": "envoy"}}}]
    # Pods beside a service of the front do not reach it.
    assert closed["ultrascale.dev/front"] == "DoesNotExist"


def test_a_load_balancer_hears_from_a_proxy_that_it_is_well() -> None:
    """Otherwise it would lead nobody to a model, and be paid for."""
    policy = objects()["ClientTrafficPolicy"]["spec"]
    assert policy["healthCheck"] == {"path": names.FRONT_HEALTH_PATH}


def test_the_replica_with_the_fewest_requests_gets_the_next() -> None:
    """Answers take from a second to minutes: in turn, long ones would pile up at one replica."""
    policy = objects()["BackendTrafficPolicy"]["spec"]
    assert policy["loadBalancer"] == {"type": "LeastRequest"}
