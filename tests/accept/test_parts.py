"""Checks that parts add: the fabric's floor, answers of services, the front's key, alarms."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support import job_manifests as given
from tests.support.accept_runs import AT, make_run
from tests.support.account import fake_account
from tests.support.folders import ROOT
from tests.support.jobs import job_cluster
from tests.support.model_servers import metrics_path, server
from tests.support.node_checks import NODES, Volcano, fabric
from tests.support.operate_cluster import Time
from tests.support.pools import ODCR, POOL, as_text
from tests.support.stub_api_http import kubeconfig
from tests.support.stub_api_server import Refusal, StubApiServer
from ultrascale import plan
from ultrascale.accept import levels
from ultrascale.accept.model import Level, Run
from ultrascale.cluster_api.server import Cluster
from ultrascale.findings import Finding, State

GPUS = POOL | {"role": "reserved", "purchase": ODCR, "nodes": {"static": 8}}
SERVING = ROOT / "clusters" / "serving.yaml"
FRONT = "/api/v1/namespaces/envoy-gateway-system/services/front:80/proxy/v1/completions"


def findings(run: Run, level: Level, name: str = "") -> list[Finding]:
    checks = levels.checks(run.plan, [level])
    return [f for check in checks if name in ("", check.name) for f in check.run(run)]


# The fabric.


@pytest.fixture
def fabric_run(checked: StubApiServer, tmp_path: Path) -> Run:
    file = tmp_path / "cluster.yaml"
    file.write_text(as_text(job_cluster(GPUS, name="trainium-bert")))
    cluster = Cluster.connected(kubeconfig(tmp_path, checked.url))
    return replace(make_run(cluster, tmp_path, plan=plan.load(file)), file=file)


@pytest.mark.parametrize(
    ("verdict", "state"),
    [
        ({}, "pass"),
        ({"bad": {"node-1": "9.5 GB/s, below 353.7"}}, "failed"),
        ({"paths": [["node-0", "node-1"]]}, "differs"),
    ],
)
def test_two_free_nodes_are_measured_and_none_is_cordoned(
    checked: StubApiServer, fabric_run: Run, verdict: dict[str, Any], state: State
) -> None:
    volcano = Volcano(checked, [fabric(**verdict)])
    (found,) = findings(fabric_run, "fabric")
    assert found.state == state, found
    (made,) = volcano.made
    assert made["spec"]["minAvailable"] == 2
    assert made["metadata"]["labels"]["ultrascale.dev/acceptance"] == fabric_run.id
    assert not checked.objects[f"{NODES}/node-1"]["spec"].get("unschedulable")


def test_nodes_of_other_jobs_are_not_waited_for(checked: StubApiServer, fabric_run: Run) -> None:
    volcano = Volcano(checked, [])
    for number in range(3):
        held = given.pod(f"held-{number}", "other", **given.running(f"node-{number}"))
        checked.put(f"{given.PODS}/held-{number}", held)
    (found,) = findings(fabric_run, "fabric")
    assert (found.state, found.evidence) == ("not run", "1 of 4 nodes are free, and it measures 2")
    assert volcano.made == []


# Services, and the front.


@pytest.fixture
def serving_run(cluster: Cluster, stub: StubApiServer, tmp_path: Path) -> Run:
    stub.groups.add("/apis/gateway.envoyproxy.io/v1alpha1")
    return replace(make_run(cluster, tmp_path, plan=plan.load(SERVING)), file=SERVING)


def put_server(run: Run, stub: StubApiServer, *answers: object) -> str:
    """Let a pod of the first service of vLLM be ready and answer; return the service."""
    service = next(each for each in run.plan.services if each.server == "vllm")
    place = f"/api/v1/namespaces/{service.namespace}/pods"
    stub.put(f"/api/v1/namespaces/{service.namespace}", {"kind": "Namespace"})
    pod = server("a")
    pod["metadata"] |= {"namespace": service.namespace}
    pod["metadata"]["labels"]["ultrascale.dev/job"] = service.name
    stub.put(f"{place}/a", pod)
    api = metrics_path("a").replace("/metrics", "/v1").replace(given.PODS, place)
    for path, answer in zip(("models", "completions"), answers, strict=True):
        stub.proxied[f"{api}/{path}"] = [json.dumps(answer)]
    return service.name


@pytest.mark.parametrize(
    ("usage", "state"),
    [({"prompt_tokens": 5, "completion_tokens": 1}, "pass"), ({}, "failed")],
)
def test_a_service_answers_with_a_count_of_tokens(
    serving_run: Run, stub: StubApiServer, usage: dict[str, int], state: State
) -> None:
    name = put_server(serving_run, stub, {"data": [{"id": "llama"}]}, {"usage": usage})
    found = {each.subject: each for each in findings(serving_run, "serving", "service")}
    assert found.pop(name).state == state
    assert {each.state for each in found.values()} <= {"not run"}


@pytest.mark.parametrize(
    ("refusal", "state"),
    [
        (Refusal(401, text='{"error": {"code": "invalid_api_key"}}'), "pass"),
        (Refusal(401, reason="Unauthorized"), "failed"),
        (Refusal(403, reason="Forbidden"), "not run"),
        (Refusal(503, text="no healthy upstream"), "failed"),
        (None, "failed"),
    ],
)
def test_only_the_fronts_own_refusal_of_a_request_without_a_key_passes(
    serving_run: Run, stub: StubApiServer, refusal: Refusal | None, state: State
) -> None:
    stub.proxied[FRONT] = ["{}"]
    if refusal is not None:
        stub.refuse("POST", FRONT, refusal)
    (found,) = findings(serving_run, "serving", "front")
    assert found.state == state, found


# Alarms.


def alarm(name: str, **fields: Any) -> dict[str, Any]:
    topic = "arn:aws:sns:us-west-2:111122223333:{}"
    actions = [topic.format(fields.pop("topic"))]
    given = {"AlarmName": name, "StateValue": "OK", "ActionsEnabled": True}
    return given | {"AlarmActions": actions, **fields}


def alarm_states(
    run: Run, alarms: Sequence[dict[str, Any]], history: Sequence[str]
) -> tuple[list[Finding], list[tuple[str, str]]]:
    items = [{"HistorySummary": line} for line in history]
    account, aws = fake_account(
        {
            "cloudwatch:DescribeAlarms": {"MetricAlarms": [*alarms]},
            "cloudwatch:SetAlarmState": {},
            "cloudwatch:DescribeAlarmHistory": {"AlarmHistoryItems": items},
        }
    )
    found = findings(replace(run, account=account, clock=Time(now=AT).clock), "alarms")
    asked = aws.parameters("cloudwatch:SetAlarmState")
    return found, [(each["AlarmName"], each["StateValue"]) for each in asked]


@pytest.mark.parametrize(
    ("history", "state"),
    [
        (["Successfully executed action arn:aws:sns:…"], "pass"),
        (["Failed to execute action arn:aws:sns:…"], "failed"),
        ([], "failed"),
    ],
)
def test_each_alarm_is_set_once_and_set_back(
    serving_run: Run, history: list[str], state: State
) -> None:
    topic = serving_run.plan.alarm_topic
    assert topic is not None
    alarms = [
        alarm("serving-one", topic=topic.name),
        alarm("serving-two", topic=topic.name, StateValue="ALARM"),
        alarm("serving-2-other", topic="another"),
    ]
    found, calls = alarm_states(serving_run, alarms, history)
    assert [each.state for each in found] == ["differs", state, "not run"]
    assert calls == [("serving-one", "ALARM"), ("serving-one", "OK")]


def test_alarms_are_not_run_where_aws_is_not_asked(serving_run: Run) -> None:
    assert [each.state for each in findings(serving_run, "alarms")] == ["not run"]
