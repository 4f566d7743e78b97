"""The restart budget of a run, which failures use up and saved progress refills."""

# Checked where torch is installed and where it is not.
# pyright: reportMissingImports=false

import errno
import json
import os
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest

from ultrascale_training.errors import TrainingError
from ultrascale_training.objects import LocalObjects
from ultrascale_training.restarts import NODE_HOURS, RESTARTS, RestartLedger

HOUR = 3600.0


class Run:
    """Starts of one run at a time that passes only when told; 10 node-hours earn a restart."""

    def __init__(self, output: Path) -> None:
        self.now = 0.0
        self._output = output
        self.ledger = self._new()

    def _new(self) -> RestartLedger:
        return RestartLedger(LocalObjects(self._output), node_hours=10, clock=lambda: self.now)

    def start(
        self, step: int = 0, *, nodes: int = 1, durable: bool = True, aside: Sequence[str] = ()
    ) -> None:
        self.ledger = self._new()
        steps = {name: int(name.split("-")[2]) for name in aside}
        self.ledger.begin(nodes=nodes, step=step, durable=durable, aside=steps)

    def crashes_until_refused(self, step: int = 0) -> int:
        for count in range(100):
            try:
                self.start(step)
            except TrainingError:
                return count
        raise AssertionError("it restarts for ever")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def test_run_that_fails_before_it_saves_anything_is_given_up(run: Run, tmp_path: Path) -> None:
    for _ in range(1 + RESTARTS):
        run.start()
        run.now += 100 * HOUR

    with pytest.raises(TrainingError) as told:
        run.start()

    assert str(told.value).startswith(
        "no restart is left: the run fails more often than once in 10"
    )
    assert f"delete {tmp_path}/restarts.json" in str(told.value)


def test_a_run_whose_checkpoints_are_gone_does_not_begin_anew_without_a_word(
    run: Run, tmp_path: Path
) -> None:
    """Its earlier steps, which were paid for, would be trained again."""
    run.start()
    run.ledger.saved(12)
    run.start(12)
    run.ledger.end("stopped")

    with pytest.raises(TrainingError) as told:
        run.start(0)

    assert "12 steps are saved, and no checkpoint is there" in str(told.value)
    (tmp_path / "restarts.json").unlink()
    run.start(0)


def test_a_run_whose_newer_checkpoints_are_gone_does_not_train_their_steps_again_without_a_word(
    run: Run, tmp_path: Path
) -> None:
    run.start()
    for step in (5, 10):
        run.ledger.saved(step)

    for step in (5, 9):
        with pytest.raises(TrainingError, match=f"10 steps are saved, and the newest .* {step}:"):
            run.start(step)
    # Restarts of before, of which one refused start too many would end the run, are as they were.
    assert json.loads((tmp_path / "restarts.json").read_text())["left"] == RESTARTS
    # Published, and killed before it was noted.
    run.start(12)
    (tmp_path / "restarts.json").unlink()
    run.start(5)


def test_a_file_of_an_earlier_release_says_as_much(run: Run, tmp_path: Path) -> None:
    (tmp_path / "restarts.json").write_text('{"left": 9.0, "step": 12, "running": null}')

    with pytest.raises(TrainingError, match="12 steps are saved"):
        run.start(5)


def test_a_checkpoint_that_was_set_aside_is_not_gone_and_explains_no_later_loss(run: Run) -> None:
    run.start()
    run.ledger.saved(12)

    run.start(10, aside=["bad-step-12"])
    # A person may delete it.
    run.start(10)
    run.ledger.saved(12)
    with pytest.raises(TrainingError, match="12 steps are saved"):
        run.start(10, aside=["bad-step-8"])
    run.start(10, aside=["bad-step-12"])
    run.ledger.saved(12)
    with pytest.raises(TrainingError, match="12 steps are saved"):
        run.start(10, aside=["bad-step-12"])
    run.start(10, aside=["bad-step-12", "bad-step-12-ab"])


def test_a_checkpoint_in_memory_that_is_lost_with_the_nodes_is_no_loss_of_the_outputs(
    run: Run,
) -> None:
    run.start(3, durable=False)
    run.start(0)
    run.ledger.saved(10)
    run.start(13, durable=False)
    run.start(10)
    run.start(8, durable=False)
    with pytest.raises(TrainingError, match="10 steps are saved"):
        run.start(5)


def test_deleting_the_file_gives_a_run_its_restarts_back(run: Run, tmp_path: Path) -> None:
    run.crashes_until_refused()

    (tmp_path / "restarts.json").unlink()

    assert run.crashes_until_refused() == 1 + RESTARTS


def test_saved_progress_earns_restarts_by_nodes_and_hours(run: Run) -> None:
    assert run.crashes_until_refused() == 1 + RESTARTS
    run.ledger = RestartLedger(run.ledger._records, node_hours=10, clock=lambda: run.now)  # pyright: ignore
    run.ledger._state |= {"left": 0.0, "step": 0, "running": {"nodes": 5, "step": 0}}  # pyright: ignore
    run.now += 4 * HOUR

    run.ledger.saved(100)

    # 5 nodes for 4 hours.
    assert run.crashes_until_refused(100) == 2


def test_steps_that_are_saved_again_earn_nothing(run: Run) -> None:
    run.start()
    run.now += 1
    run.ledger.saved(100)
    for number in range(RESTARTS):
        run.start(50, aside=[f"bad-step-100-{number}"])
        run.now += 1000 * HOUR
        run.ledger.saved(100)

    with pytest.raises(TrainingError, match="no restart is left"):
        run.start(100)


def test_budget_is_never_more_than_that_of_a_new_run(run: Run) -> None:
    run.start(nodes=1000)
    run.now += 1000 * HOUR
    run.ledger.saved(100)

    assert run.crashes_until_refused(100) == RESTARTS


@pytest.mark.parametrize("how", ["stopped", "done"])
def test_start_after_a_notice_or_an_end_is_no_restart(run: Run, how: str) -> None:
    for _ in range(3 * RESTARTS):
        run.start()
        run.ledger.end(how)  # pyright: ignore

    run.start()


def test_an_account_that_is_damaged_is_told_and_is_no_restart_loop(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "restarts.json").write_bytes(bytes(40))

    with pytest.raises(TrainingError, match=r"restarts\.json is damaged, .*; delete it"):
        run.start()


@pytest.mark.parametrize(
    ("number", "ends"), [(errno.EIO, False), (errno.ENOSPC, True), (errno.EDQUOT, True)]
)
def test_a_note_that_cannot_be_written_ends_a_run_only_where_the_disk_is_full(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    *,
    number: int,
    ends: bool,
) -> None:
    run.start(nodes=5)
    run.now += 2 * HOUR
    with monkeypatch.context() as patched:

        def fail(*_: object) -> None:
            raise OSError(number, os.strerror(number))

        patched.setattr(LocalObjects, "put", fail)
        with pytest.raises(OSError, match=os.strerror(number)) if ends else nullcontext():
            run.ledger.saved(10)
    assert ("restarts.json cannot be written" in caplog.text) is not ends


def test_budget_of_the_job_is_read_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ULTRASCALE_RESTART_BUDGET", "-3")
    with pytest.raises(TrainingError, match=r"ULTRASCALE_RESTART_BUDGET: .* got '-3'"):
        RestartLedger(LocalObjects(tmp_path)).begin(nodes=1, step=0)


def test_default_is_that_of_the_control_plane() -> None:
    from ultrascale.catalog import failures

    # It lets a fleet be twice as bad as the published one.
    assert round(failures.PUBLISHED.node_hours_between / 2) == NODE_HOURS
