"""A vLLM that hangs is started anew; one that is busy, idle or slow is not."""

import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.plan.jobs.test_drain import BUSY, GPUS, IDLE, VLLM, server
from tests.support.jobs import job_cluster, objects, pod_spec, prepared
from ultrascale.plan.jobs import makes_progress
from ultrascale.plan.jobs.programs import program

_LABELS = '{engine="0",model_name="chat"}'
# It has just started: no token is counted.
RESTING = IDLE.replace(f"prompt_tokens_total{_LABELS} 0.0", f"prompt_tokens_total{_LABELS} 7.0")
WAITING = IDLE.replace(f"requests_waiting{_LABELS} 0.0", f"requests_waiting{_LABELS} 3.0")


def later(text: str, series: str) -> str:
    """Return ``text`` with another value of a series."""
    lines = [
        line if not line.startswith(f"vllm:{series}{{") else line + "1"
        for line in text.splitlines()
    ]
    assert lines != text.splitlines()
    return "\n".join(lines)


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    def sleep(_: float) -> None:
        pass

    monkeypatch.setattr(makes_progress.time, "sleep", sleep)


@pytest.mark.parametrize("text", [BUSY, WAITING])
def test_a_server_with_requests_of_which_nothing_moves_is_started_anew(text: str) -> None:
    with server(text) as (url, _):
        assert not makes_progress.moves(url, 0.3)


@pytest.mark.parametrize(
    "texts",
    [
        [RESTING],
        [BUSY, RESTING],
        [BUSY, BUSY, later(BUSY, "generation_tokens_total")],
        # A long prompt is read in parts: no token is counted before its end.
        [BUSY, later(BUSY, "kv_cache_usage_perc")],
        [BUSY, later(BUSY, "num_requests_waiting")],
    ],
)
def test_a_server_that_has_nothing_to_do_or_does_it_is_left_alone(texts: Sequence[str]) -> None:
    with server(*texts) as (url, _):
        assert makes_progress.moves(url, 5)


TWO_ENGINES = BUSY + BUSY.replace('engine="0"', 'engine="1"')


@pytest.mark.parametrize(
    ("text", "answers", "alive"),
    [
        # It started, and its engine hangs: requests never reach a count.
        (IDLE, None, False),
        (IDLE, 200, True),
        # A model without completions, or a key that the probe does not know.
        (IDLE, 404, True),
        (IDLE, 401, True),
        # It has worked, and rests.
        (RESTING, None, True),
    ],
)
def test_a_server_that_never_counted_a_token_is_asked_for_one(
    text: str, answers: int | None, alive: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "key")
    asked: list[tuple[str, str | None]] = []

    def post(path: str, key: str | None) -> int | None:
        asked.append((path, key))
        return answers

    with server(text, post=post) as (url, _):
        try:
            found = makes_progress.moves(url, 0.3)
        except OSError:
            found = False
    assert found is alive
    assert asked == ([("/v1/completions", "Bearer key")] if text == IDLE else [])


@pytest.mark.parametrize(("moving", "alive"), [("0", False), ("01", True)])
def test_one_engine_that_hangs_is_seen_beside_others_that_work(moving: str, alive: bool) -> None:
    after = TWO_ENGINES
    for engine in moving:
        for line in TWO_ENGINES.splitlines():
            if line.startswith("vllm:generation_tokens_total{") and f'engine="{engine}"' in line:
                after = after.replace(line, f"{line}1")
    with server(TWO_ENGINES, after) as (url, _):
        assert makes_progress.moves(url, 0.3) is alive


def test_a_deaf_server_fails_a_look_and_no_more() -> None:
    """It takes connections, and its loop answers none of them."""
    with socket.create_server(("127.0.0.1", 0)) as deaf, pytest.raises(OSError, match="timed out"):
        makes_progress.moves(f"http://127.0.0.1:{deaf.getsockname()[1]}/metrics", 0.1)


def test_a_pod_is_started_anew_after_minutes_without_progress_and_not_before() -> None:
    probe = pod_spec(prepared(job_cluster(GPUS), VLLM))["containers"][0]["livenessProbe"]

    assert 240 <= probe["periodSeconds"] * probe["failureThreshold"] <= 600
    *_, seconds = probe["exec"]["command"]
    # The last read may take a second longer than the look.
    assert int(seconds) + 5 <= probe["timeoutSeconds"] <= probe["periodSeconds"]


def test_the_probe_of_a_pod_runs_as_the_kubelet_runs_it() -> None:
    with server(BUSY) as (url, _):
        port = int(url.split(":")[2].split("/")[0])
        job = prepared(job_cluster(GPUS), VLLM | {"port": port})
        command = pod_spec(job)["containers"][0]["livenessProbe"]["exec"]["command"]
        ended = subprocess.run([*command[:-1], "1"], capture_output=True, text=True, check=False)
        assert (ended.returncode, "no token" in ended.stderr) == (1, True)
    ended = subprocess.run([*command[:-1], "1"], capture_output=True, text=True, check=False)
    assert (ended.returncode, "does not answer" in ended.stderr) == (1, True)


def test_an_image_without_python_is_not_started_anew_for_ever(tmp_path: Path) -> None:
    job = prepared(job_cluster(GPUS), VLLM)
    command = pod_spec(job)["containers"][0]["livenessProbe"]["exec"]["command"]
    (tmp_path / "sh").symlink_to("/bin/sh")

    ended = subprocess.run(command, env={"PATH": str(tmp_path)}, check=False)
    assert ended.returncode == 0


@pytest.mark.parametrize(
    "keys", [{"server": "other"}, {"args": ["--model=/models/m", "-tp=4", "--disable-log-stats"]}]
)
def test_a_server_without_known_metrics_has_minutes_to_answer(keys: dict[str, object]) -> None:
    probe = pod_spec(prepared(job_cluster(GPUS), VLLM | keys))["containers"][0]["livenessProbe"]

    assert "exec" not in probe
    assert probe["periodSeconds"] * probe["failureThreshold"] >= 240


def test_the_first_pod_of_a_replica_asks_for_all_its_nodes() -> None:
    """It is started anew with all others, which answer no requests."""
    sizes = ["--model=/models/m", "-tp=4", "--pipeline-parallel-size=2"]
    pool = GPUS | {"zones": ["us-west-2a"]}
    job = prepared(job_cluster(pool), VLLM | {"nodes": 2, "args": sizes})
    (group,) = objects(job, "LeaderWorkerSet")
    template = group["spec"]["leaderWorkerTemplate"]

    # A program that ends takes those of its replica along.
    assert template["restartPolicy"] == "None"
    (leader,) = template["leaderTemplate"]["spec"]["containers"]
    (worker,) = template["workerTemplate"]["spec"]["containers"]
    assert "exec" in leader["livenessProbe"]
    assert "livenessProbe" not in worker


def test_the_program_of_the_probe_runs_on_any_python_of_an_image() -> None:
    text = program("makes_progress")

    assert "ultrascale" not in text
    ended = subprocess.run(
        [sys.executable, "-I", "-c", text], capture_output=True, text=True, check=False
    )
    assert "not enough values to unpack" in ended.stderr
