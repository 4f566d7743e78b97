"""Stacks are deployed side by side, and one that fails stops only what waits for it."""

import os
import signal
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.deployments import Project, make_project
from ultrascale.deploy.cdk import CdkDeploy, DeployCommand
from ultrascale.deploy.run import Outcome, run_stacks


class Notes:
    """Whoever follows, and remembers."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.lines: list[str] = []

    def started(self, stack: str) -> None:
        self.told.append(f"+{stack}")

    def said(self, stack: str, line: str) -> None:
        self.lines.append(f"{stack}: {line}")

    def ended(self, outcome: Outcome) -> None:
        self.told.append(f"-{outcome.stack}")


def waits(**stacks: str) -> Mapping[str, frozenset[str]]:
    return {stack: frozenset(earlier.split()) for stack, earlier in stacks.items()}


def deploy(
    project: Project, stacks: Mapping[str, frozenset[str]], *, concurrency: int = 1
) -> tuple[Mapping[str, Outcome], Notes]:
    command = DeployCommand(cdk=project.cdk, assembly=project.folder)
    notes = Notes()
    outcomes = run_stacks(stacks, command.start, notes, concurrency=concurrency)
    return {outcome.stack: outcome for outcome in outcomes}, notes


def states(outcomes: Mapping[str, Outcome]) -> Mapping[str, str]:
    return {name: outcome.state for name, outcome in outcomes.items()}


def test_a_stack_is_begun_after_all_that_it_waits_for(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    outcomes, notes = deploy(project, waits(a="", b="a", c="a b"), concurrency=3)
    assert notes.told == ["+a", "-a", "+b", "-b", "+c", "-c"]
    assert set(states(outcomes).values()) == {"deployed"}


def test_a_pool_without_capacity_leaves_the_others_alone(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.fails("gpu", "❌ no capacity")

    stacks = waits(base="", gpu="base", trn="base", teams="gpu", late="teams")
    outcomes, notes = deploy(project, stacks)

    assert states(outcomes) == {
        "base": "deployed",
        "gpu": "failed",
        "trn": "deployed",
        "teams": "not started",
        "late": "not started",
    }
    assert project.deployed == ["base", "gpu", "trn"]
    assert outcomes["teams"].waited_for == outcomes["late"].waited_for == ("gpu",)
    assert outcomes["gpu"].said == ("❌ no capacity",)
    assert "gpu: ❌ no capacity" in notes.lines


def test_no_more_run_at_once_than_agreed(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    # Each waits until two run: three would never be two.
    for stack in "abcd":
        project.does(
            stack,
            f'mkdir "$project/now-{stack}"; ls -d "$project"/now-* | wc -l >> $project/most\n'
            f'sleep 0.02; rmdir "$project/now-{stack}"\n',
        )

    deploy(project, waits(a="", b="", c="", d=""), concurrency=2)

    most = {int(line) for line in (tmp_path / "most").read_text().split()}
    assert max(most) == 2


def test_a_stack_without_changes_is_told_apart(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    outputs = 'for n in $(seq 60); do echo "a.Output$n = x"; done'
    project.does("a", f"echo ' ✅  a (no changes)'; {outputs}; exit 0\n")
    outcomes, _ = deploy(project, waits(a=""))
    assert outcomes["a"].state == "unchanged"


def interrupt_when(path: Path) -> None:
    def press() -> None:
        while not path.exists():
            time.sleep(0.005)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()


def test_nohup_keeps_a_deployment_from_ending_with_its_terminal(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.does("a", "kill -HUP $PPID; exit 0\n")
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        outcomes, _ = deploy(project, waits(a="", b="a"))
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)

    assert states(outcomes) == {"a": "deployed", "b": "deployed"}


def test_ctrl_c_begins_nothing_more_and_leaves_no_program_behind(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.does("a", "echo $$ > $project/pid; sleep 30\n")
    interrupt_when(tmp_path / "pid")

    outcomes, _ = deploy(project, waits(a="", b="a"))

    assert states(outcomes) == {"a": "interrupted", "b": "not started"}
    assert outcomes["b"].waited_for == ()
    assert project.deployed == ["a"]
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_a_second_ctrl_c_waits_for_nobody(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    again = "kill -INT $PPID; echo $$ > $project/pid"
    project.does("a", f"trap '{again}' TERM; kill -INT $PPID; while :; do sleep 30 & wait; done\n")
    began = time.monotonic()
    outcomes, _ = deploy(project, waits(a=""))
    assert states(outcomes) == {"a": "interrupted"}
    assert time.monotonic() - began < 5


def test_a_program_that_does_not_end_when_told_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ultrascale.deploy.run._GRACE", 0.05)
    project = make_project(tmp_path)
    project.does("a", "trap '' TERM; echo $$ > $project/pid; sleep 30; sleep 30\n")
    interrupt_when(tmp_path / "pid")
    outcomes, _ = deploy(project, waits(a=""))
    assert states(outcomes) == {"a": "interrupted"}


def test_a_program_that_ended_meanwhile_is_no_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linux knows no such group any more, and macOS permits nothing to it."""
    project = make_project(tmp_path)
    program = DeployCommand(cdk=project.cdk, assembly=tmp_path).start("a")
    assert program.wait() == 0
    program.stop()

    def refuse(*_: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "killpg", refuse)
    program.kill()
    assert [*program.lines()] == [" ✅  a"]


def test_the_cdk_is_asked_for_one_stack_and_asks_nobody(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    command = DeployCommand(
        cdk=project.cdk, assembly=tmp_path / "out", profile="ml", import_existing=True
    )

    program: CdkDeploy = command.start("a")

    assert ([*program.lines()], program.wait()) == ([" ✅  a"], 0)
    (call,) = project.calls
    assert call[:5] == ["deploy", "a", "--exclusively", "--app", str(tmp_path / "out")]
    assert " ".join(call[5:]) == (
        "--require-approval never --progress events --no-notices --no-color --rollback "
        "--no-express --profile ml --import-existing-resources"
    )
    assert command.by_hand("a") == f"ultrascale cdk {' '.join(call)}"
