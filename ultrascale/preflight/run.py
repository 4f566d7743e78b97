"""Parallel execution of checks, with a deadline."""

import threading
import time
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue

from ultrascale.errors import UnansweredError
from ultrascale.preflight.model import Check, Context, Finding, unknown

DEADLINE = 60.0
"""Seconds after which a check without an answer counts as unknown."""

_THREADS = 12

Progress = Callable[[Check], None]
# A message of a thread: a finding, the end of a check (None), or an error in its code.
_Told = tuple[Check, Finding | BaseException | None]


def run_checks(
    checks: Sequence[Check],
    context: Context,
    *,
    deadline: float = DEADLINE,
    progress: Progress | None = None,
) -> tuple[Finding, ...]:
    """Return the findings of ``checks``, in their order.

    Args:
        checks: The checks.
        context: Their input.
        deadline: Seconds for all checks. A check that needs longer keeps its findings so far, and
            gets a further finding in state unknown.
        progress: Called with each check that has ended.
    """
    ends = time.monotonic() + deadline
    waiting: SimpleQueue[Check] = SimpleQueue()
    messages: SimpleQueue[_Told] = SimpleQueue()
    for check in checks:
        waiting.put(check)
    for _ in range(min(_THREADS, len(checks))):
        # Threads of a ThreadPoolExecutor would keep the process alive until the last answer.
        threading.Thread(
            target=_run_waiting_checks, args=(waiting, messages, context), daemon=True
        ).start()
    findings: dict[str, list[Finding]] = {check.name: [] for check in checks}
    missing = {check.name for check in checks}
    while missing:
        try:
            check, message = messages.get(timeout=max(ends - time.monotonic(), 0))
        except Empty:
            break
        if isinstance(message, Finding):
            findings[check.name].append(message)
        elif message is not None:
            raise message
        else:
            missing.discard(check.name)
            if progress is not None:
                progress(check)
    for check in checks:
        if check.name in missing:
            findings[check.name].append(_late_finding(check, deadline))
    return tuple(finding for check in checks for finding in findings[check.name])


def _run_waiting_checks(
    waiting: SimpleQueue[Check], messages: SimpleQueue[_Told], context: Context
) -> None:
    while True:
        try:
            check = waiting.get_nowait()
        except Empty:
            return
        try:
            for finding in check.run(context):
                messages.put((check, finding))
        except UnansweredError as error:
            messages.put((check, unknown(check.name, check.title, error)))
            messages.put((check, None))
        except BaseException as error:  # the waiting thread raises it
            messages.put((check, error))
        else:
            messages.put((check, None))


def _late_finding(check: Check, deadline: float) -> Finding:
    return Finding(
        check=check.name,
        subject=check.title,
        state="unknown",
        evidence=f"no answer within {deadline:g} seconds",
        fix="run it again; where it stays so, look at the network and the proxy",
    )
