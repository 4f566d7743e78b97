"""What is wrong with one thing of an account, and how several of them are one finding."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ultrascale.preflight.model import Finding, State

_WORST: Sequence[State] = ("fail", "unknown", "warn", "pass")


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """Something that is wrong, or may be.

    Attributes:
        state: How bad it is.
        evidence: Which field it is, what it should be and what it is.
        fix: What puts it right.
    """

    state: State
    evidence: str
    fix: str


def finding(check: str, subject: str, issues: Iterable[Issue], *, fine: str) -> Finding:
    """Return one finding of all ``issues``, the worst first; without any, a pass.

    Args:
        check: Name of the check.
        subject: What it is about.
        issues: What is wrong with it.
        fine: The evidence that nothing is.
    """
    found = sorted(issues, key=lambda issue: _WORST.index(issue.state))
    if not found:
        return Finding(check=check, subject=subject, state="pass", evidence=fine)
    return Finding(
        check=check,
        subject=subject,
        state=found[0].state,
        evidence="; ".join(issue.evidence for issue in found),
        fix="; ".join(dict.fromkeys(issue.fix for issue in found)),
    )
