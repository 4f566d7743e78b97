"""Traffic of a service, as `status` reads it from its pods behind the API server."""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from tests.support import job_manifests as given
from tests.support.model_servers import BUSY, IDLE, counted, metrics_path, server
from tests.support.stub_api_http import serve
from tests.support.stub_api_server import Refusal, StubApiServer
from ultrascale.cli import job_views
from ultrascale.cluster_api.server import Cluster
from ultrascale.jobs.serving_report import SECONDS, ServingReport, serving_report_of
from ultrascale.jobs.status import job_status
from ultrascale.plan.model import Figure, ServiceNeeds

# What a replica costs by the cluster file.
NEEDS = ServiceNeeds(
    service="chat",
    pools=("train",),
    is_bound=False,
    figures={"usd_per_hour_share": Figure(id="", value=7.2, unit="USD per hour", formula="a node")},
)


@pytest.fixture
def stub() -> Iterator[StubApiServer]:
    with serve(StubApiServer()) as stub:
        stub.put(f"{given.DEPLOYMENTS}/chat", given.deployment())
        yield stub


def furnish(stub: StubApiServer, **answers: list[str]) -> None:
    """Let the service have ready pods that answer; without an answer one is not ready."""
    for name, texts in answers.items():
        stub.put(f"{given.PODS}/{name}", server(name, ready=bool(texts)))
        if texts:
            stub.proxied[metrics_path(name)] = texts


def report(cluster: Cluster, needs: ServiceNeeds | None = NEEDS) -> ServingReport:
    clock = iter(range(99))
    # All readings of one moment have one time.
    found = serving_report_of(
        cluster,
        job_status(cluster, "training", "chat"),
        needs,
        sleep=lambda _: None,
        now=lambda: SECONDS * (next(clock) >= 1),
    )
    assert found is not None
    return found


def test_a_service_says_what_it_does_and_what_its_tokens_cost(
    stub: StubApiServer, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    furnish(stub, a=[IDLE, BUSY])

    found = report(cluster)

    assert found.traffic is not None
    assert (found.traffic.waiting, found.traffic.running, found.ready) == (20, 4, 1)
    tokens = "vllm:generation_tokens_total"
    rate = (counted(BUSY, tokens) - counted(IDLE, tokens)) / SECONDS
    assert found.traffic.generated_tokens_per_second == pytest.approx(rate)
    assert found.usd_per_million_tokens == pytest.approx(7.2 / rate / 3600 * 1e6)
    job_views.print_serving(found)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == (
        "  requests: 20 waiting, 4 running on 1 of 1 ready replicas; KV cache 0.1 % in use"
    )
    assert "USD for a million generated" in lines[1]
    assert lines[2].endswith("answers now")


def test_an_idle_service_tells_of_the_waits_since_its_start(
    stub: StubApiServer, cluster: Cluster
) -> None:
    furnish(stub, a=[BUSY])

    found = report(cluster)

    assert found.traffic is not None
    assert found.traffic.generated_tokens_per_second == 0
    assert found.usd_per_million_tokens is None
    assert (found.recent, found.traffic.answers) == (False, 6)


def test_a_pod_that_is_cut_off_is_named_and_the_others_count(
    stub: StubApiServer, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    furnish(stub, a=[BUSY], b=[BUSY], c=[])
    stub.refuse("GET", "/pods/b:", Refusal(503, "dial tcp 10.0.0.7:8000: i/o timeout"))

    found = report(cluster)

    assert found.traffic is not None
    assert (found.traffic.replicas, found.ready) == (1, 2)
    job_views.print_serving(found)
    assert "metrics that are missing: dial tcp 10.0.0.7:8000" in capsys.readouterr().out


def test_whoever_may_not_read_metrics_is_told_which_right_is_missing(
    stub: StubApiServer, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    furnish(stub, a=[BUSY])
    stub.refuse("GET", "/proxy/metrics", Refusal(403, "pods/proxy is forbidden"))

    job_views.print_serving(report(cluster))

    out = capsys.readouterr().out
    assert "requests: unknown, no pod tells its metrics" in out
    assert "get on pods/proxy" in out
    assert "policy edit" in out


def test_a_service_that_starts_says_that_no_pod_is_ready(
    stub: StubApiServer, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    furnish(stub, a=[])

    job_views.print_serving(report(cluster))

    assert capsys.readouterr().out.strip() == "requests: unknown, no pod is ready"


def test_no_other_job_is_asked_for_metrics(stub: StubApiServer, cluster: Cluster) -> None:
    status = job_status(cluster, "training", "chat")

    assert serving_report_of(cluster, status) is None
    assert serving_report_of(cluster, replace(status, kind="JobSet.jobset.x-k8s.io")) is None
    assert not stub.asked("GET", "/proxy/")
