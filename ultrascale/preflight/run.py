"""A run of all checks: parallel, with a deadline; its verdict is whether a cluster fits."""

import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Literal

from ultrascale import account, config, plan
from ultrascale.catalog.prices import PriceList
from ultrascale.errors import UnansweredError
from ultrascale.findings import Finding, unknown
from ultrascale.frozen import Frozen
from ultrascale.plan.needs.calendar import window_mistakes
from ultrascale.plan.needs.report import plan_needs
from ultrascale.preflight import checks
from ultrascale.preflight.model import Check, Context
from ultrascale.preflight.quotas import subject_of

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


# --- Verdict of preflight: all findings about an account, and whether a cluster fits it -----------


class Verdict(Frozen):
    """The result of all checks."""

    findings: tuple[Finding, ...]  # The findings, in the order of the checks
    # `beyond`: a need exceeds the limit that AWS publishes. `failed`: a check failed or
    # could not ask AWS. `passed`: neither.
    state: Literal["passed", "failed", "beyond"]


def read_context(
    file: Path, moment: datetime, profile: str | None, price_list: PriceList | None = None
) -> Context:
    """Return the cluster of a file and the account of the user's credentials, for the checks.

    Args:
        file: The cluster file.
        moment: Time for which the account is checked.
        profile: Profile of the AWS CLI's configuration; None for the environment's, if any.
        price_list: Prices; None takes the catalog's prices.

    Raises:
        ConfigError: The file has mistakes, a window that is over, or values of the documentation.
        AccountError: AWS cannot be asked.
    """
    reading, cluster = config.read(file), plan.load(file)
    needs = plan_needs(cluster, moment, price_list)
    mistakes = list(config.placeholders(reading))
    if reading.cluster is not None:
        mistakes += window_mistakes(reading.cluster, needs.calendar, moment)
        mistakes += config.future_facts(reading.cluster.facts, moment.date())
    if mistakes:
        raise reading.refusal(mistakes)
    owner = account.connect(cluster.region, profile)
    return Context(plan=cluster, needs=needs, account=owner, at=moment)


def check(
    context: Context, *, allow_unknown: bool = False, progress: Progress | None = None
) -> Verdict:
    """Run every check, and return the verdict.

    Args:
        context: The cluster and the account.
        allow_unknown: Count a check that could not ask AWS as passed.
        progress: Is called with each check that has ended.
    """
    findings = run_checks(checks.all_checks(), context, progress=progress)
    beyond = {subject_of(need) for need in context.needs.quotas if need.state == "beyond"}
    failed = {finding.subject for finding in findings if finding.state == "fail"}
    unknown = any(finding.state == "unknown" for finding in findings) and not allow_unknown
    if beyond & failed:
        return Verdict(findings=findings, state="beyond")
    return Verdict(findings=findings, state="failed" if failed or unknown else "passed")
