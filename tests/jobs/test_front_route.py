"""Services behind the front: their routes, and who reaches their pods."""

import json
from typing import Any

from tests.support.crd_schemas import CrdSet
from tests.support.folders import ROOT
from tests.support.jobs import SERVICE, having, job_cluster, objects, pod_spec, prepared, refusals
from tests.support.pools import pool_document
from ultrascale.jobs.manifests import JobManifests

GPUS = pool_document(instance_types=["g6e.12xlarge"])
VLLM = SERVICE | {
    "image": "docker.io/vllm/vllm-openai:v0.33.0",
    "args": ["--model=/models/chat", "--served-model-name", "chat", "chat-latest"],
}
_LINES = (ROOT / "tests" / "data" / "front_crds.jsonl").read_text().splitlines()
HTTP_ROUTES = CrdSet.from_documents(
    json.loads(line) for line in _LINES if '"kind":"HTTPRoute"' in line
)


def behind_the_front(**keys: Any) -> JobManifests:
    """Return the objects of a service of vLLM in a cluster with a front."""
    serving = {"front": {"exposure": "cluster"}}
    job = VLLM | keys
    return prepared(having(job_cluster(GPUS, serving=serving), job), job)


def test_requests_for_its_models_reach_a_service_by_the_paths_of_openais_api() -> None:
    job = behind_the_front()
    (route,) = objects(job, "HTTPRoute")
    (service,) = objects(job, "Service")

    assert HTTP_ROUTES.validate(route) == []
    (rule,) = route["spec"]["rules"]
    assert [match["headers"][0]["value"] for match in rule["matches"]] == ["chat", "chat-latest"]
    # Metrics, and what loads other models, have other paths.
    assert {match["path"]["value"] for match in rule["matches"]} == {"/v1"}
    assert rule["backendRefs"] == [
        {"name": service["metadata"]["name"], "port": service["spec"]["ports"][0]["port"]}
    ]
    # By it the front lists the models.
    assert route["metadata"]["annotations"]["gateway.envoyproxy.io/models"] == "chat chat-latest"
    assert route["spec"]["parentRefs"] == [{"name": "front", "namespace": "envoy-gateway-system"}]


def test_a_service_with_many_adapters_has_a_route_that_the_api_server_takes() -> None:
    adapters = [f"tenant-{number}" for number in range(127)]
    loaded = ["--enable-lora", "--lora-modules", *(f"{name}=/models/{name}" for name in adapters)]
    job = behind_the_front(model_names=["chat", *adapters], args=[*VLLM["args"], *loaded])
    (route,) = objects(job, "HTTPRoute")
    rules = route["spec"]["rules"]

    assert HTTP_ROUTES.validate(route) == []
    served = [match["headers"][0]["value"] for rule in rules for match in rule["matches"]]
    assert served == ["chat", *adapters]


def test_the_proxies_and_its_own_pods_alone_reach_a_service_of_the_front() -> None:
    job = behind_the_front()
    (policy,), (deployment,) = objects(job, "NetworkPolicy"), objects(job, "Deployment")
    proxies, own = policy["spec"]["ingress"]
    gateway = {"kubernetes.io/metadata.name": "envoy-gateway-system"}
    assert [peer for peer in proxies["from"] if "ipBlock" not in peer] == [
        {
            "namespaceSelector": {"matchLabels": gateway},
            "podSelector": {"matchLabels": {"app.kubernetes.io/name": "envoy"}},
        }
    ]
    assert own == {"from": [{"podSelector": {"matchLabels": {"ultrascale.dev/job": job.name}}}]}
    # The policy of the namespace passes pods with this label by.
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert labels["ultrascale.dev/front"] == "true"
    # Namespaces that are let in still reach it.
    (policy,) = objects(behind_the_front(allow_from=["web"]), "NetworkPolicy")
    assert "'web'" in str(policy["spec"]["ingress"][0])


def test_a_service_takes_no_model_that_the_cluster_file_does_not_give_it() -> None:
    """The API server refuses its route, which could be before that of the model's own service."""
    cluster = having(job_cluster(GPUS, serving={"front": {"exposure": "cluster"}}), VLLM)
    for changed in ({"name": "mine"}, {"model_names": ["chat", "talk"]}):
        assert refusals(cluster, VLLM | changed)[-1:] == ["model_names: models_are_of_the_file"]
    assert not refusals(cluster, VLLM | {"model_names": ["chat"]})
    assert not refusals(cluster, VLLM | {"name": "mine", "model_names": []})


def test_a_service_that_the_front_knows_no_model_of_is_as_without_a_front() -> None:
    job = behind_the_front(model_names=[])
    plain = prepared(job_cluster(GPUS), VLLM | {"model_names": []})
    assert job.objects == plain.objects
    assert not objects(job, "HTTPRoute")
    assert "ultrascale.dev/front" not in str(job.objects)
    assert pod_spec(job) == pod_spec(plain)
