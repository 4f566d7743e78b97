"""Results of checks: of an account by preflight, and of a live cluster by accept."""

from collections.abc import Iterable, Sequence
from typing import Literal

from ultrascale.errors import UnansweredError
from ultrascale.frozen import Frozen

State = Literal["failed", "differs", "fail", "unknown", "not run", "warn", "pass"]

WORST_FIRST: Sequence[State] = ("failed", "fail", "differs", "unknown", "not run", "warn", "pass")


class Finding(Frozen):
    """Result of a check for one subject."""

    check: str  # Name of the check
    subject: str  # Subject, such as a quota, a pool or a Region
    # Of preflight: ``pass``: the deployment meets no trouble there. ``warn``: it may. ``fail``: it
    # will. ``unknown``: AWS did not answer.
    # Of accept: ``pass``: the cluster is as the file says, and was seen to be. ``differs``: it is
    # otherwise. ``failed``: what was tried did not work. ``not run``: nothing was seen.
    state: State
    evidence: str  # The values of account or cluster beside the wanted values
    fix: str | None = None  # Command or request that solves it; None where nothing is wrong
    denied: str | None = None  # IAM action that a policy has to allow before the check can tell


class Issue(Frozen):
    """A mistake, or a possible mistake, of a finding's subject."""

    state: State  # Its severity
    evidence: str  # The field, its value in the account and the wanted value
    fix: str  # The action that solves it


class Difference(Frozen):
    """A field whose value in an answer of AWS differs from our value."""

    field: str  # Its name in AWS's answer
    found: str  # AWS's value
    wanted: str  # Our value


def finding(check: str, subject: str, issues: Iterable[Issue], *, fine: str) -> Finding:
    """Return the finding that sums up ``issues``, the worst first; without issues it passes.

    Args:
        check: Name of the check.
        subject: Subject of the finding.
        issues: Issues of the subject.
        fine: Evidence of the pass.
    """
    worst_first = sorted(issues, key=lambda issue: WORST_FIRST.index(issue.state))
    if not worst_first:
        return Finding(check=check, subject=subject, state="pass", evidence=fine)
    return Finding(
        check=check,
        subject=subject,
        state=worst_first[0].state,
        evidence="; ".join(issue.evidence for issue in worst_first),
        fix="; ".join(dict.fromkeys(issue.fix for issue in worst_first)),
    )


def unknown(check: str, subject: str, error: UnansweredError) -> Finding:
    """Return the finding that AWS did not answer about ``subject``."""
    fix, denied = None, None
    if error.denied and "explicit deny" in error.reason:
        fix = f"have the policy that denies {error.action} changed; no statement can allow it"
    elif error.denied:
        denied = error.action
        statement = f'{{"Effect": "Allow", "Action": "{denied}", "Resource": "*"}}'
        fix = f"allow it in a policy of who runs this: {statement}"
    return Finding(
        check=check, subject=subject, state="unknown", evidence=str(error), fix=fix, denied=denied
    )


def as_text(differences: Iterable[Difference], *, ours: str, theirs: str) -> str:
    """Return the differences as text, each field with both values.

    Args:
        differences: The differences.
        ours: Owner of our values.
        theirs: Owner of the other values.
    """
    return "; ".join(
        f"{difference.field} is {difference.found} in {theirs}, {difference.wanted} in {ours}"
        for difference in differences
    )
