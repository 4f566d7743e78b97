"""Errors of workers, as they are found after the pod is gone."""

# Checked where torch is installed and where it is not.
# pyright: reportMissingImports=false

from pathlib import Path

import pytest

from ultrascale_training.errors import TrainingError
from ultrascale_training.failures import FailureLog


class VoteLost(RuntimeError):  # noqa: N818 - the name of the error that is meant
    """Another worker is gone."""


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
        self._set("RANK", str(rank))
        report = self._agent / f"attempt_{restart}" / str(rank) / "error.json"
        self._set("TORCHELASTIC_ERROR_FILE", str(report))
        FailureLog(str(self.output), message=self._message).keep(raised(error))

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
    assert heading == "failed restart=0 rank=1 node=ip-10-0-0-7 pod=llm-3"
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

    assert worker.message.startswith("follows restart=1")
    assert "before" not in worker.message


def test_message_is_cut_to_what_kubernetes_keeps_and_has_the_end(worker: Worker) -> None:
    worker.fails(ValueError("x" * 5000 + " the end"))

    assert len(worker.message.encode()) <= 4096
    assert worker.message.startswith("failed restart=0")
    assert worker.message.endswith(" the end\n")


def test_mistake_is_told_without_a_traceback(worker: Worker) -> None:
    worker.fails(TrainingError("--lr: must be a number above 0, got 'zero'"), rank=0)

    _, *lines = worker.message.splitlines()
    assert lines == ["--lr: must be a number above 0, got 'zero'"]
    assert worker.files == [worker.message]


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
