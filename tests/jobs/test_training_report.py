"""Progress and tracebacks of a training job, as `status` finds them in the cluster."""

import json
import shlex
from typing import Any

import pytest

from tests.support import job_manifests as given
from tests.support.jobs import container, prepared
from tests.support.pools import make_cluster
from tests.support.stub_api_server import Object, Refusal, StubApiServer
from ultrascale.cli import job_views
from ultrascale.cluster_api.server import Cluster
from ultrascale.jobs.status import job_status
from ultrascale.jobs.training_report import TrainingReport, report_of

TRACEBACK = (
    "Traceback (most recent call last):\n"
    '  File "train.py", line 7, in step\n'
    "RuntimeError: NCCL error\n"
)
EARLIER = 'failed at=2026-11-23T12:00:00Z node=ip-10-0-0-7 rank=24 error="RuntimeError: a b"'
STEPS = (
    "progress step=100/1000 loss=2.40 tokens_per_second=9",
    "a line of some library",
    "progress step=120/1000 loss=2.31 tokens_per_second=12345 learning_rate=0.0003",
)


def report(stub: StubApiServer, cluster: Cluster, *lines: str, **first: Any) -> TrainingReport:
    """Return the report of a job of two pods, the first of which wrote ``lines``."""
    stub.put(f"{given.VOLCANO_JOBS}/bert", given.volcano_job(pods=2))
    stub.put(
        f"{given.PODS}/bert-worker-0", given.pod("bert-worker-0", **(first or given.running()))
    )
    stub.put(f"{given.PODS}/bert-worker-1", given.pod("bert-worker-1", index=1, **given.running()))
    if lines:
        stamped = (f"2026-11-23T12:00:00.000000000Z {line}" for line in lines)
        stub.write(f"{given.PODS}/bert-worker-0", *stamped, ends=True)
    return report_of(cluster, job_status(cluster, "training", "bert"))


def failed(message: str, *, before: bool) -> Object:
    """Return the fields of a pod that failed, or that did before its container was restarted."""
    terminated = {"terminated": {"reason": "Error", "exitCode": 1, "message": message}}
    fields = given.running()
    status = fields["status"]["containerStatuses"][0]
    if before:
        status["lastState"] = terminated
    else:
        status["state"] = terminated
        fields["status"]["phase"] = "Failed"
    return fields


def test_the_last_line_of_progress_is_shown(
    stub: StubApiServer, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """On HyperPod, torchrun marks the lines of the first process, for the operator."""
    found = report(stub, cluster, EARLIER, *STEPS)
    assert found.progress == {
        "step": "120/1000",
        "loss": "2.31",
        "tokens_per_second": "12345",
        "learning_rate": "0.0003",
    }
    # The pods of an earlier start are gone; the program of the next one tells of it.
    assert [(each["node"], each["error"]) for each in found.failures] == [
        ("ip-10-0-0-7", "RuntimeError: a b")
    ]
    marked = report(stub, cluster, *(f"[default0]:{line}" for line in STEPS))
    assert marked.progress["step"] == "120/1000"
    # A program cannot write to the terminal.
    job_views.print_report(report(stub, cluster, "progress step=1/9 loss=\x07\x9b2J2.31"))
    printed = capsys.readouterr().out
    assert not {"\x07", "\x9b"} & {*printed}


def test_a_slow_node_is_named(
    stub: StubApiServer, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = [
        f"straggler step={step} node=ip-10-0-0-{node} rank=9 seconds=1.4 median=1.0 ratio=1.40"
        for step, node in ((10, 7), (20, 8), (30, 7))
    ]
    found = report(stub, cluster, *STEPS, *slow)

    job_views.print_report(found)

    assert [(each["node"], each["step"]) for each in found.stragglers] == [
        ("ip-10-0-0-7", "30"),
        ("ip-10-0-0-8", "20"),
    ]
    assert "slow node: step 30, node ip-10-0-0-7" in capsys.readouterr().out


@pytest.mark.parametrize("before", [False, True], ids=["it has ended", "it was restarted"])
def test_the_last_words_of_a_pod_are_shown_whole(
    stub: StubApiServer, cluster: Cluster, before: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    found = report(stub, cluster, *STEPS, **failed(TRACEBACK, before=before))
    assert [(end.pod, end.node, end.message) for end in found.ends] == [
        ("bert-worker-0", "node-1", TRACEBACK.strip())
    ]
    job_views.print_report(found)
    printed = capsys.readouterr().out
    assert "progress: step 120/1000, loss 2.31, tokens per second 12345" in printed
    assert "RuntimeError: NCCL error" in printed
    job = job_status(cluster, "training", "bert")
    document = json.loads(job_views.as_json(job_views.job_document(job, found)))
    assert document["progress"]["step"] == "120/1000"
    assert document["ends"][0]["pod"] == "bert-worker-0"
    # Ranks that fail alike are told of once.
    for index in (0, 1):
        name = f"bert-worker-{index}"
        fields = failed(TRACEBACK, before=before)
        stub.put(f"{given.PODS}/{name}", given.pod(name, index=index, **fields))
    assert len(report_of(cluster, job_status(cluster, "training", "bert")).ends) == 1


@pytest.mark.parametrize(
    "line",
    ["progress is slow today", "progress", 'progress step="1', "failed to load libfoo.so"],
)
def test_lines_of_other_programs_are_no_progress(
    stub: StubApiServer, cluster: Cluster, line: str
) -> None:
    found = report(stub, cluster, line)
    assert not found.progress
    assert not found.failures


def test_a_log_that_may_not_be_read_hides_nothing_else(
    stub: StubApiServer, cluster: Cluster
) -> None:
    stub.refuse("GET", f"{given.PODS}/bert-worker-0/log", Refusal(403, "pods/log is forbidden"))
    assert not report(stub, cluster, *STEPS).progress


@pytest.mark.parametrize(
    ("observability", "restarts", "told"),
    [({}, 2, True), ({}, 0, False), ({"container_logs": False}, 2, False), (None, 2, False)],
    ids=["restarted", "the first start", "no logs of pods", "not observed"],
)
def test_logs_of_pods_that_are_gone_have_a_command(
    stub: StubApiServer,
    cluster: Cluster,
    observability: dict[str, Any] | None,
    restarts: int,
    told: bool,
) -> None:
    """A program of the user's keeps no tracebacks: a restart deletes those of its pods."""
    file = make_cluster(observability=observability)
    job = given.volcano_job(pods=2) | {"status": {"retryCount": restarts}}
    stub.put(f"{given.VOLCANO_JOBS}/bert", job)

    command = report_of(cluster, job_status(cluster, "training", "bert"), file).earlier_logs

    if not told:
        assert command == ""
        return
    words = shlex.split(command)
    assert words[:4] == ["aws", "logs", "tail", f"/aws/containerinsights/{file.name}/application"]
    assert words[words.index("--region") + 1] == file.region
    assert '$.kubernetes.pod_name = "bert-*"' in words[-1]


def test_a_program_that_writes_no_message_leaves_the_end_of_its_log() -> None:
    assert container(prepared())["terminationMessagePolicy"] == "FallbackToLogsOnError"
