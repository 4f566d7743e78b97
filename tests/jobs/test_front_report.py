"""State of the front for a service, as `status` and `submit` read it from its objects."""

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support import job_manifests as given
from tests.support.stub_api_http import serve
from tests.support.stub_api_server import Refusal, StubApiServer
from ultrascale.cli import job_views
from ultrascale.cluster_api.server import Cluster
from ultrascale.jobs.prerequisites import check
from ultrascale.jobs.status import job_status
from ultrascale.parts.front.report import FrontReport, front_report_of, report_of

API = "/apis/gateway.networking.k8s.io/v1"
ROUTES = f"{API}/namespaces/training/httproutes"
EXTENSIONS = "/apis/gateway.envoyproxy.io/v1alpha1"
POLICIES = f"{EXTENSIONS}/namespaces/envoy-gateway-system/securitypolicies"
# As Envoy Gateway 1.9 words it.
MISSING = "APIKeyAuth: secret envoy-gateway-system/front-keys does not exist."


@pytest.fixture
def stub() -> Iterator[StubApiServer]:
    with serve(StubApiServer()) as stub:
        stub.groups |= {API, EXTENSIONS}
        stub.put(f"{given.DEPLOYMENTS}/chat", given.deployment())
        stub.put(f"{ROUTES}/chat", route())
        yield stub


def route(**conditions: str) -> dict[str, Any]:
    """Return the route of the service, with conditions that do not hold and their messages."""
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {
            "name": "chat",
            "namespace": "training",
            "labels": {given.JOB_LABEL: "chat"},
            "annotations": {"gateway.envoyproxy.io/models": "chat chat-latest"},
        },
        "status": {"parents": [{"conditions": false(**conditions)}]},
    }


def policy(**conditions: str) -> dict[str, Any]:
    return {
        "metadata": {"name": "front"},
        "spec": {"apiKeyAuth": {"credentialRefs": [{"name": "front-keys"}]}},
        "status": {"ancestors": [{"conditions": false(**conditions)}]},
    }


def false(**conditions: str) -> list[dict[str, str]]:
    holds = {"type": "Accepted", "status": "True"}
    return [
        *({"type": kind, "status": "False", "message": m} for kind, m in conditions.items()),
        *([] if "Accepted" in conditions else [holds]),
    ]


def report(cluster: Cluster) -> FrontReport | None:
    return front_report_of(cluster, job_status(cluster, "training", "chat"))


def test_a_service_behind_the_front_says_by_which_models(
    stub: StubApiServer, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    stub.put(f"{POLICIES}/front", policy())
    found = report(cluster)
    assert found is not None
    assert found == FrontReport(models=("chat", "chat-latest"), problems=())
    printed = report_of(cluster, job_status(cluster, "training", "chat"))
    assert printed is not None
    job_views.print_lines([printed])
    assert capsys.readouterr().out.split() == ["front:", "models", "chat,", "chat-latest"]


def test_a_missing_secret_of_keys_is_named_with_the_command_that_makes_it(
    stub: StubApiServer, cluster: Cluster
) -> None:
    """Every request is answered with 500 meanwhile, and pods of the service are well."""
    stub.put(f"{POLICIES}/front", policy(Accepted=MISSING))
    found = report(cluster)
    assert found is not None
    (problem,) = found.problems
    assert "secret envoy-gateway-system/front-keys does not exist" in problem
    assert "kubectl create secret generic front-keys -n envoy-gateway-system" in problem


def test_who_sends_a_service_to_a_closed_front_is_told(
    stub: StubApiServer, cluster: Cluster
) -> None:
    service = given.service()
    routed = replace(service, objects=(*service.objects, route()))
    stub.put(f"{POLICIES}/front", policy(Accepted=MISSING))

    assert check(cluster, service) == ()
    (note,) = check(cluster, routed)
    assert note.startswith("the front: every request is answered with 500")


def test_a_route_that_is_refused_or_not_taken_is_told(
    stub: StubApiServer, cluster: Cluster
) -> None:
    stub.put(f"{ROUTES}/chat", route(ResolvedRefs="Service training/chat not found."))
    found = report(cluster)
    assert found is not None
    assert found.problems == ("route chat is refused, Service training/chat not found",)

    stub.put(f"{ROUTES}/chat", route() | {"status": {}})
    found = report(cluster)
    assert found is not None
    assert "its controller may not run" in found.problems[0]


def test_who_may_not_read_the_policy_of_the_front_still_sees_the_route(
    stub: StubApiServer, cluster: Cluster
) -> None:
    stub.put(f"{POLICIES}/front", policy(Accepted=MISSING))
    stub.refuse("GET", f"{POLICIES}/front", Refusal(403, "securitypolicies is forbidden"))
    assert report(cluster) == FrontReport(models=("chat", "chat-latest"), problems=())


def test_a_service_without_a_route_is_not_of_the_front(
    stub: StubApiServer, cluster: Cluster
) -> None:
    stub.remove(f"{ROUTES}/chat")
    assert report(cluster) is None
