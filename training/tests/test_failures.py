"""Errors of workers, as they are found after the pod is gone."""

# Checked where torch is installed and where it is not.
# pyright: reportMissingImports=false

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.folders import ROOT
from ultrascale_training import failures
from ultrascale_training.errors import TrainingError, VoteLost
from ultrascale_training.failures import FailureLog, fields_of, new_failures
from ultrascale_training.objects import LocalObjects


def raised(error: Exception) -> Exception:
    """Return ``error`` with a traceback."""
    try:
        raise error
    except Exception as caught:
        return caught


class Worker:
    """A worker in a pod, whose message Kubernetes reads from a file."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.output, self._message = folder / "output", folder / "termination-log"
        self._message.touch()
        self._agent = folder / "agent"
        self._set = monkeypatch.setenv
        monkeypatch.setenv("ULTRASCALE_POD", "llm-3")
        monkeypatch.setenv("ULTRASCALE_NODE", "ip-10-0-0-7")
        self.restart(0)

    def restart(self, number: int) -> None:
        self._set("TORCHELASTIC_RESTART_COUNT", str(number))
        for rank in range(64):
            (self._agent / f"attempt_{number}" / str(rank)).mkdir(parents=True)

    def fails(self, error: Exception, *, rank: int = 1, restart: int = 0) -> None:
        report = self._agent / f"attempt_{restart}" / str(rank) / "error.json"
        self._set("TORCHELASTIC_ERROR_FILE", str(report))
        self.keeps(error, rank=rank)

    def keeps(self, error: Exception, *, rank: int) -> None:
        """Fail in a pod of its own."""
        self._set("RANK", str(rank))
        FailureLog(str(self.output), message=self._message).keep(raised(error))

    def next_start(self, capsys: pytest.CaptureFixture[str]) -> list[str]:
        """Return what the next start says, the time aside."""
        self._set("RANK", "0")
        FailureLog(str(self.output)).tell_earlier()
        return [re.sub(r" at=\S+", "", line) for line in capsys.readouterr().out.splitlines()]

    @property
    def message(self) -> str:
        return self._message.read_text()

    @property
    def files(self) -> list[str]:
        return [path.read_text() for path in sorted((self.output / "failures").glob("*"))]


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Worker:
    return Worker(tmp_path, monkeypatch)


def test_first_error_of_a_pod_is_its_message_and_a_file_of_the_output(worker: Worker) -> None:
    worker.fails(ValueError("a bad value"), rank=1)
    worker.fails(ValueError("a later one"), rank=2)

    heading, *rest = worker.message.splitlines()
    state, fields = fields_of(heading)
    assert state == "failed"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", fields["at"])
    assert {**fields, "at": ""} == {
        **{"at": "", "node": "ip-10-0-0-7", "pod": "llm-3", "rank": "1", "restart": "0"},
        "error": "ValueError: a bad value",
    }
    assert rest[-1] == "ValueError: a bad value"
    assert any("in raised" in line for line in rest)
    assert worker.files == [worker.message]


def test_what_follows_from_another_worker_does_not_hide_the_cause(worker: Worker) -> None:
    worker.fails(VoteLost("worker 9 on node ip-10-0-0-8 has gone"))
    assert "worker 9 on node ip-10-0-0-8 has gone" in worker.message
    assert worker.files == []

    worker.fails(ValueError("the cause"))
    worker.fails(ConnectionResetError("by a peer"))

    assert "ValueError: the cause" in worker.message


def test_message_is_that_of_the_newest_start_in_the_pod(worker: Worker) -> None:
    worker.fails(ValueError("before"))
    worker.restart(1)

    worker.fails(VoteLost("after"), restart=1)

    assert worker.message.startswith("follows ")
    assert " restart=1 " in worker.message
    assert "before" not in worker.message


def test_message_is_cut_to_what_kubernetes_keeps_and_has_the_end(worker: Worker) -> None:
    worker.fails(ValueError("x" * 5000 + " the end"))

    assert len(worker.message.encode()) <= 4096
    assert worker.message.startswith("failed at=")
    assert worker.message.endswith(" the end\n")


def test_mistake_is_told_without_a_traceback(worker: Worker) -> None:
    worker.fails(TrainingError("--lr: must be a number above 0, got 'zero'"), rank=0)

    _, *lines = worker.message.splitlines()
    assert lines == ["--lr: must be a number above 0, got 'zero'"]
    assert worker.files == [worker.message]


def test_mistake_that_one_node_alone_has_is_told_by_it_and_by_the_next_start(
    worker: Worker, capsys: pytest.CaptureFixture[str]
) -> None:
    # A shard that is cut on one mount, a GPU that has gone: the first worker knows of neither.
    missing = TrainingError("--device: no NVIDIA GPU is visible, got 'cuda'")
    program = (
        "import sys; from ultrascale_training import errors, failures\n"
        "sys.excepthook = failures.FailureLog().leave\n"
        f"raise errors.TrainingError({str(missing)!r})\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "RANK": "9", "PYTHONPATH": str(ROOT / "training")},
        capture_output=True,
        text=True,
    )
    assert ended.stderr == f"{missing}\n"

    worker.fails(missing, rank=9)
    worker.keeps(VoteLost("worker 9 has gone", rank=9, node="ip-10-0-0-7"), rank=0)

    (line,) = worker.next_start(capsys)
    assert f'rank=9 restart=0 error="{missing}"' in line


def test_disk_that_is_full_is_one_line_and_no_restart_cures_it(tmp_path: Path) -> None:
    # A line of metrics, an account of restarts: what is written beside the checkpoints.
    program = (
        "import sys; from pathlib import Path\n"
        "from ultrascale_training.failures import FailureLog\n"
        "sys.excepthook = FailureLog(sys.argv[1]).leave\n"
        "with Path('/dev/full').open('w') as file: file.write('x')\n"
    )

    ended = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        env={**os.environ, "RANK": "3", "PYTHONPATH": str(ROOT / "training")},
        capture_output=True,
        text=True,
    )

    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert line.startswith("the disk is full: a file could not be written (No space left on device")


def test_thousands_of_failures_leave_a_few_files(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rank in range(60):
        monkeypatch.delenv("TORCHELASTIC_ERROR_FILE", raising=False)
        monkeypatch.setenv("RANK", str(rank))
        FailureLog(str(worker.output)).keep(raised(ValueError(f"of {rank}")))

    # At most 32 a minute, and a minute may end meanwhile.
    assert 32 <= len(worker.files) <= 60
    assert len(worker.files) < 60 or len({path[:5] for path in worker.files}) > 1


def test_output_that_cannot_be_written_does_not_hide_the_error(worker: Worker) -> None:
    worker.output.write_text("a file, not a directory")

    worker.fails(ValueError("the cause"))

    assert "ValueError: the cause" in worker.message


def test_next_start_tells_once_what_ended_the_one_before(
    worker: Worker, capsys: pytest.CaptureFixture[str]
) -> None:
    worker.fails(RuntimeError('a "quoted"\nerror in C:\\temp'), rank=24)

    assert worker.next_start(capsys) == [
        "failed node=ip-10-0-0-7 pod=llm-3 rank=24 restart=0 "
        r'error="RuntimeError: a \"quoted\" error in C:\\temp"'
    ]
    assert worker.next_start(capsys) == []

    worker.restart(1)
    worker.fails(ValueError("another one"), rank=3, restart=1)

    (line,) = worker.next_start(capsys)
    assert "ValueError: another one" in line


def test_worker_that_is_killed_is_named_by_those_that_lose_it(
    worker: Worker, capsys: pytest.CaptureFixture[str]
) -> None:
    """It leaves no traceback: the kernel killed it, or its node is gone."""
    told = "worker 9 on node ip-10-0-0-8 has gone"
    for rank in (1, 2):
        worker.fails(VoteLost(told, rank=9, node="ip-10-0-0-8"), rank=rank)
    worker.fails(VoteLost(told), rank=3)

    assert worker.next_start(capsys) == [f'failed node=ip-10-0-0-8 rank=9 restart=0 error="{told}"']


def test_cause_comes_before_what_follows_from_it(
    worker: Worker, capsys: pytest.CaptureFixture[str]
) -> None:
    worker.keeps(RuntimeError("Connection closed by peer"), rank=1)
    worker.keeps(VoteLost("worker 9 has gone", rank=9, node="ip-10-0-0-8"), rank=1)
    worker.keeps(ValueError("the cause"), rank=9)
    worker.keeps(VoteLost("worker 7 has gone", rank=7, node="ip-10-0-0-9"), rank=2)

    told = [fields_of(line)[1]["error"] for line in worker.next_start(capsys)]
    assert told == [
        "ValueError: the cause",
        "worker 7 has gone",
        "RuntimeError: Connection closed by peer",
    ]


def test_mistake_is_told_and_not_that_all_workers_left(
    worker: Worker, capsys: pytest.CaptureFixture[str]
) -> None:
    worker.keeps(TrainingError("--data-dir: is missing"), rank=0)
    worker.keeps(TrainingError("--data-dir: is missing"), rank=1)
    worker.keeps(VoteLost("worker 1 has gone", rank=1, node="ip-10-0-0-8"), rank=2)

    (line,) = worker.next_start(capsys)
    assert 'rank=0 restart=0 error="--data-dir: is missing"' in line


def test_mistake_is_kept_when_thousands_have_learnt_of_it_before(
    worker: Worker, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failures, "_FILES_A_MINUTE", 3)
    for rank in (9, 17, 25, 33, 0):
        worker.keeps(TrainingError("--data-dir: is missing"), rank=rank)

    (line,) = worker.next_start(capsys)
    assert 'rank=0 restart=0 error="--data-dir: is missing"' in line


def test_thousands_of_failures_are_eight_lines(tmp_path: Path) -> None:
    records = LocalObjects(tmp_path)
    for rank in range(100):
        text = f'failed at=2026-11-23T12:00:00Z node=n rank={rank} error="E: {rank}"\nmore\n'
        records.put(f"failures/20261123T120000-error-rank-{rank:03}.txt", text.encode())

    assert len(new_failures(records)) == 8
    assert new_failures(records) == []


def test_failure_is_kept_while_another_worker_renames_its_partial_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers that fail at once list the folder in which the others still write."""
    partial = tmp_path / "failures" / ".20261123T120000-error-rank-1.txt.7"
    partial.parent.mkdir()
    partial.write_text("failed")
    is_file = Path.is_file

    def is_file_until_its_rename(path: Path) -> bool:
        before = is_file(path)
        if path == partial and before:
            partial.rename(partial.with_name("20261123T120000-error-rank-1.txt"))
        return before

    monkeypatch.setattr(Path, "is_file", is_file_until_its_rename)
    FailureLog(str(tmp_path)).write("hang", "hangs")

    names = LocalObjects(tmp_path).names("failures/2")
    assert [name.rpartition("-rank-")[0][-5:] for name in names] == ["error", "-hang"]


def test_output_that_cannot_be_read_does_not_hold_up_a_start(
    worker: Worker, capsys: pytest.CaptureFixture[str]
) -> None:
    worker.output.mkdir()
    (worker.output / "failures.json").write_text("not JSON")
    worker.fails(ValueError("a bad value"))

    assert worker.next_start(capsys) == []
