"""Fleet metrics from model servers: recorded answers of vLLM 0.32, as its pods give them."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.support.model_servers import BUSY, IDLE, counted, metrics_path, server
from tests.support.observability_plans import of, serving
from ultrascale.lambdas.fleet_metrics.measures import Key, Measures
from ultrascale.lambdas.fleet_metrics.pods import Readings, ServicePods, measure_services
from ultrascale.lambdas.fleet_metrics.settings import Services, Settings
from ultrascale.lambdas.kubernetes import KubernetesError

SETTINGS = Settings.parse(json.loads(json.dumps(of(serving()).fleet_metrics.input)))
CHAT: Key = ("Service", "training/chat")
LEADER = "leaderworkerset.sigs.k8s.io/worker-index"


def own() -> Services:
    assert SETTINGS.services is not None
    return SETTINGS.services


def measure(
    *pods: Any,
    answers: Mapping[str, str | Exception],
    earlier: Readings | None = None,
    at: float = 0,
    services: Services | None = None,
) -> tuple[Measures, Readings]:
    measures, found = Measures(), ServicePods(services or own(), SETTINGS.job_label)
    assert [*found.among(pods)] == [*pods]

    def fetch(asked: str) -> str:
        answer = {metrics_path(name): each for name, each in answers.items()}[asked]
        if isinstance(answer, Exception):
            raise answer
        return answer

    later = measure_services(
        found.pods, services or own(), measures, fetch=fetch, earlier=earlier or {}, now=lambda: at
    )
    return measures, later


def test_requests_and_tokens_of_a_minute_follow_from_two_calls() -> None:
    begun, first = measure(server("a"), answers={"a": IDLE}, at=0)
    measures, _ = measure(server("a"), answers={"a": BUSY}, earlier=first, at=60)

    # The first call knows no rates and invents none.
    assert begun.get("service_generated_tokens", CHAT) is None
    assert measures.get("service_replicas", CHAT) == 1
    assert measures.get("service_waiting", CHAT) == 20
    assert measures.get("service_running", CHAT) == 4
    grown = {
        name: counted(BUSY, name) - counted(IDLE, name)
        for name in ("vllm:prompt_tokens_total", "vllm:generation_tokens_total")
    }
    assert grown["vllm:generation_tokens_total"] > 1000
    assert measures.get("service_generated_tokens", CHAT) == pytest.approx(
        grown["vllm:generation_tokens_total"] / 60
    )
    assert measures.get("service_prompt_tokens", CHAT) == pytest.approx(
        grown["vllm:prompt_tokens_total"] / 60
    )
    assert measures.get("service_cache", CHAT) == pytest.approx(0.0977, abs=0.001)
    half = measures.get("service_first_token_half", CHAT)
    most = measures.get("service_first_token_most", CHAT)
    assert half is not None
    assert most is not None
    assert 0.05 < half < most <= 0.5


def test_replicas_add_up_and_share_one_average_of_their_caches() -> None:
    measures, _ = measure(server("a"), server("b"), answers={"a": BUSY, "b": IDLE})
    assert measures.get("service_replicas", CHAT) == 2
    assert measures.get("service_waiting", CHAT) == 20
    assert measures.get("service_cache", CHAT) == pytest.approx(0.0977 / 2, abs=0.001)


def test_a_server_that_began_anew_counts_from_nought() -> None:
    _, first = measure(server("a"), answers={"a": BUSY}, at=0)
    restarted = BUSY.replace("} 1799.0", "} 600.0")
    measures, _ = measure(server("a"), answers={"a": restarted}, earlier=first, at=60)
    assert measures.get("service_generated_tokens", CHAT) == 10


def test_no_words_of_a_pod_end_the_measuring_of_others() -> None:
    words = (
        'vllm:num_requests_waiting{engine="0"} 1-e.\n'
        'vllm:num_requests_waiting{engine="1"} 2\n'
        'vllm:time_to_first_token_seconds_bucket{le="many"} 4\n'
    )
    measures, _ = measure(server("a"), server("b"), answers={"a": words, "b": BUSY})
    assert measures.get("service_replicas", CHAT) == 2
    assert measures.get("service_waiting", CHAT) == 22


@pytest.mark.parametrize("error", [TimeoutError("timed out"), KubernetesError(503, "GET", "no")])
def test_a_pod_that_does_not_answer_is_no_replica_and_hides_no_other(error: Exception) -> None:
    measures, later = measure(server("a"), server("b"), answers={"a": error, "b": BUSY})
    assert measures.get("service_replicas", CHAT) == 1
    assert measures.get("service_running", CHAT) == 4
    assert [*later] == ["uid-of-b"]


def test_a_service_of_which_no_pod_is_ready_has_no_replica_and_is_not_idle() -> None:
    measures, _ = measure(server("a", ready=False), answers={})
    assert measures.get("service_replicas", CHAT) == 0
    assert measures.get("service_waiting", CHAT) is None


def test_of_a_replica_on_several_nodes_the_leader_alone_is_asked() -> None:
    group = [server("chat-0", {LEADER: "0"}), server("chat-0-1", {LEADER: "1"})]
    measures, _ = measure(*group, answers={"chat-0": BUSY})
    assert measures.get("service_replicas", CHAT) == 1


def test_pods_of_other_programs_and_namespaces_are_not_asked() -> None:
    strange = server("a", {"ultrascale.dev/server": "other"})
    elsewhere = server("b")
    elsewhere["metadata"]["namespace"] = "kube-system"
    measures, _ = measure(strange, elsewhere, answers={})
    assert measures.get("service_replicas", CHAT) is None


def test_a_sample_stands_for_a_large_service_and_stays_the_same() -> None:
    pods = [server(f"p{index}") for index in range(20)]
    answers = {f"p{index}": BUSY for index in range(20)}
    few = replace(own(), most=5)

    runs = [measure(*pods, answers=answers, services=few) for _ in range(2)]

    for measures, _ in runs:
        assert measures.get("service_replicas", CHAT) == 20
        assert measures.get("service_waiting", CHAT) == 400
    assert [*runs[0][1]] == [*runs[1][1]]
    assert len(runs[0][1]) == 5


def test_services_share_the_pods_that_are_asked() -> None:
    """Pods that hang take seconds each, and the function has a minute."""
    others = [server(f"q{index}", {"ultrascale.dev/job": f"s{index}"}) for index in range(4)]
    pods = [server(f"p{index}") for index in range(20)]
    names = [each["metadata"]["name"] for each in (*pods, *others)]

    measures, readings = measure(
        *pods, *others, answers=dict.fromkeys(names, BUSY), services=replace(own(), most=10)
    )

    assert len(readings) == 4 + 2
    assert measures.get("service_waiting", CHAT) == 400
    assert measures.get("service_waiting", ("Service", "training/s3")) == 20
