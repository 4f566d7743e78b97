"""A run of checks: nothing unseen passes, and what it made is deleted however it ends."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.support.accept_runs import make_run
from ultrascale.accept import levels
from ultrascale.accept import run as runs
from ultrascale.accept.model import NEEDS, Acceptance, Check, Cost, Level, Run
from ultrascale.cli.accept import LevelName
from ultrascale.cluster_api.objects import CONFIG_MAP
from ultrascale.cluster_api.server import Cluster
from ultrascale.errors import ClusterError, InterruptedWorkError, RefusedError, UnansweredError
from ultrascale.findings import Finding, State

Act = Callable[[], State]
COSTS = (Cost(pool="p", nodes=1, minutes=1),)


def check(level: Level, act: Act, name: str = "check") -> Check:
    def run(_: Run) -> Iterator[Finding]:
        yield Finding(check=name, subject="it", state=act(), evidence="seen")

    return Check(level=level, name=name, subject="it", title="it is so", run=run, costs=COSTS)


def states(
    cluster: Cluster, folder: Path, checks: Sequence[Check]
) -> tuple[Acceptance, Sequence[State]]:
    done = runs.accept(make_run(cluster, folder), checks, [*NEEDS])
    return done, [outcome.finding.state for outcome in done.outcomes]


def raises(error: BaseException) -> Act:
    def act() -> State:
        raise error

    return act


def refused(status: int) -> RefusedError:
    return RefusedError("no", status=status, reason="", message="no")


@pytest.mark.parametrize(
    ("first", "second"),
    [("pass", "pass"), ("differs", "pass"), ("not run", "pass"), ("failed", "not run")],
)
def test_money_is_spent_only_on_levels_that_did_not_fail(
    cluster: Cluster, tmp_path: Path, first: State, second: State
) -> None:
    checks = [check("objects", lambda: first), check("queue", lambda: "pass")]
    done, seen = states(cluster, tmp_path, checks)
    assert seen == [first, second]
    assert done.has_passed is (first == "pass")


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (refused(403), "not run"),
        (refused(500), "failed"),
        (ClusterError("the connection broke"), "failed"),
        (UnansweredError("eks:DescribeCluster", reason="denied", denied=True), "not run"),
    ],
)
def test_an_error_is_a_finding_and_never_a_pass(
    cluster: Cluster, tmp_path: Path, error: Exception, state: State
) -> None:
    assert states(cluster, tmp_path, [check("objects", raises(error))])[1] == [state]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_after_it_has_cleaned_up(
    cluster: Cluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
    status: int,
) -> None:
    def killed() -> State:
        os.kill(os.getpid(), number)
        signal.pause()
        return "pass"

    def clean(run: Run) -> Sequence[str]:
        return [f"Job {run.id}"]

    monkeypatch.setattr(runs, "CLEANUPS", [clean])
    checks = [check("objects", lambda: "pass"), check("objects", killed), check("nodes", killed)]
    done, seen = states(cluster, tmp_path, checks)
    assert seen == ["pass", "not run", "not run"]
    assert (done.stopped, done.left, done.has_passed) == (status, ["Job r1"], False)


def test_what_is_left_is_told_when_cleaning_up_fails_or_is_stopped(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(error: BaseException) -> Callable[[Run], Sequence[str]]:
        def clean(_: Run) -> Sequence[str]:
            raise error

        return clean

    monkeypatch.setattr(runs, "CLEANUPS", [failing(ClusterError("gone"))])
    done, _ = states(cluster, tmp_path, [check("objects", lambda: "pass")])
    assert (done.left, done.has_passed) == (["not known: gone"], False)
    monkeypatch.setattr(runs, "CLEANUPS", [failing(KeyboardInterrupt())])
    again = tmp_path / "again"
    cluster.delete(CONFIG_MAP, "training", cluster.get(CONFIG_MAP.path("training", "accept-r1")))
    with pytest.raises(InterruptedWorkError, match="acceptance=r1"):
        states(cluster, again, [check("objects", lambda: "pass")])


def test_a_level_brings_those_it_needs_in_order() -> None:
    assert levels.with_needs(["queue"]) == ["objects", "nodes", "queue"]
    assert levels.with_needs([*NEEDS]) == [*NEEDS]
    assert [*LevelName] == [*NEEDS, "all"]
