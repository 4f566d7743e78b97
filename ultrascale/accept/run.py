"""An acceptance: its checks one after the other, and the end of what they made."""

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

from ultrascale.accept import jobs
from ultrascale.accept.levels import CLEANUPS, with_needs
from ultrascale.accept.model import NEEDS, RUN_LABEL, Acceptance, Check, Level, Outcome, Run
from ultrascale.cluster_api.server import FORBIDDEN
from ultrascale.documents import text
from ultrascale.errors import (
    ClusterError,
    InterruptedWorkError,
    RefusedError,
    UltrascaleError,
    UnansweredError,
)
from ultrascale.findings import Finding, State, unknown
from ultrascale.processes import Terminated, signals_as_exceptions
from ultrascale.release import PRODUCT, VERSION

_INTERRUPTED = 130


def accept(
    run: Run,
    checks: Sequence[Check],
    levels: Sequence[Level],
    *,
    progress: Callable[[Check], None] = lambda _check: None,
) -> Acceptance:
    """Run checks in their order, and delete what they made.

    A check whose level needs one that failed is not run. Ctrl-C and SIGTERM end the check at hand:
    those behind it are not run.

    Args:
        run: Their input.
        checks: The checks, in the order of their levels.
        levels: Levels that were asked for.
        progress: Is called with each check that begins.

    Raises:
        ClusterError: The server cannot be reached, or lets the user see nothing.
        QuestionError: The cluster has a run of this id.
        InterruptedWorkError: The user stopped it a second time, while it cleaned up.
    """
    server = text(run.cluster.get("/version"), "gitVersion")
    outcomes: list[Outcome] = []
    waiting = [*checks]
    stopped = 0
    if holds := any(check.costs for check in checks):
        # Not within what cleans up: a run of this id is somebody else's.
        jobs.begin(run)
    with signals_as_exceptions():
        try:
            while waiting:
                progress(waiting[0])
                _run_check(waiting[0], run, outcomes)
                del waiting[0]
        except KeyboardInterrupt:
            stopped = _INTERRUPTED
        except Terminated as signal:
            stopped = int(str(signal.code))
        except BaseException:
            if holds:
                _clean_up(run)
            raise
        left = _clean_up(run) if holds else ()
    outcomes += (_not_run(check, "the run was stopped") for check in waiting)
    return Acceptance(
        id=run.id,
        levels=levels,
        started=run.at,
        ended=datetime.now(UTC),
        outcomes=outcomes,
        versions={"server": server, PRODUCT: VERSION},
        left=left,
        stopped=stopped,
        kept=run.kept,
    )


def _run_check(check: Check, run: Run, outcomes: list[Outcome]) -> None:
    needed = with_needs(NEEDS[check.level])
    failed = (o for o in outcomes if o.level in needed and o.finding.state == "failed")
    if (first := next(failed, None)) is not None:
        why = f"level {first.level} failed: {first.finding.check} {first.finding.subject}".rstrip()
        outcomes.append(_not_run(check, why))
        return
    begun = time.monotonic()
    for finding in _findings(check, run):
        seconds = time.monotonic() - begun
        outcomes.append(Outcome(level=check.level, finding=finding, seconds=seconds))


def _findings(check: Check, run: Run) -> Iterator[Finding]:
    try:
        yield from check.run(run)
    except UnansweredError as error:
        told = unknown(check.name, check.subject, error)
        yield _finding(check, "not run", told.evidence, told.fix)
    except RefusedError as error:
        yield _finding(check, "not run" if error.status == FORBIDDEN else "failed", str(error))
    except UltrascaleError as error:
        yield _finding(check, "failed", str(error))


def _finding(check: Check, state: State, evidence: str, fix: str | None = None) -> Finding:
    return Finding(check=check.name, subject=check.subject, state=state, evidence=evidence, fix=fix)


def _not_run(check: Check, why: str) -> Outcome:
    return Outcome(level=check.level, finding=_finding(check, "not run", why), seconds=0)


def _clean_up(run: Run) -> Sequence[str]:
    """Delete what the run made, and return what is left."""
    left: list[str] = []
    try:
        for clean in CLEANUPS:
            try:
                left += clean(run)
            except ClusterError as error:
                left.append(f"not known: {error}")
    except KeyboardInterrupt:
        raise InterruptedWorkError(
            f"stopped while it cleaned up: `ultrascale accept FILE --clean {run.id}` deletes "
            f"what is left with {RUN_LABEL}={run.id}"
        ) from None
    return left
