"""The words of preflight: checks, their findings, and the issues that a finding sums up."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from ultrascale.errors import UnansweredError
from ultrascale.plan.model import ClusterNeeds, ClusterPlan

if TYPE_CHECKING:
    # It brings boto3, which synthesis does not need.
    from ultrascale.account import Account

State = Literal["pass", "warn", "fail", "unknown"]

_WORST_FIRST: Sequence[State] = ("fail", "unknown", "warn", "pass")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of a check for one subject.

    Attributes:
        check: Name of the check.
        subject: Subject, such as a quota, a pool or a Region.
        state: ``pass``: the deployment meets no trouble there. ``warn``: it may. ``fail``: it will.
            ``unknown``: AWS did not answer.
        evidence: The account's values beside the needed ones.
        fix: Command or request that solves it; None where nothing is wrong.
        denied: IAM action that a policy has to allow before the check can tell.
    """

    check: str
    subject: str
    state: State
    evidence: str
    fix: str | None = None
    denied: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The input of every check.

    Attributes:
        plan: The cluster.
        needs: Needs of the cluster.
        account: The account, seen with the user's credentials.
        at: The time that counts as now, in UTC.
        imports: Whether stacks import existing resources that have their names.
    """

    plan: ClusterPlan
    needs: ClusterNeeds
    account: "Account"
    at: datetime
    imports: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A check of an account. It reads, and changes nothing.

    Attributes:
        name: Its name: words joined by hyphens.
        title: The statement that it checks.
        actions: Every IAM action that it needs.
        run: Yields the findings, always in the same order. An `UnansweredError` ends the check, and
            becomes a finding with the state ``unknown``.
        resources: ARN pattern of each action that IAM can limit to some resources, with
            ``{partition}``, ``{region}``, ``{account}`` and ``{cluster}``; ``{package}`` stands for
            the object that the pipeline installs, ``{bucket}`` for each bucket that exists.
    """

    name: str
    title: str
    actions: tuple[str, ...]
    run: Callable[[Context], Iterator[Finding]]
    resources: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """A mistake, or a possible one, of a finding's subject.

    Attributes:
        state: Its severity.
        evidence: The field, its value in the account and the wanted value.
        fix: The action that solves it.
    """

    state: State
    evidence: str
    fix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A field whose value in an answer of AWS differs from ours.

    Attributes:
        field: Its name in AWS's answer.
        found: AWS's value.
        wanted: Our value.
    """

    field: str
    found: str
    wanted: str


def finding(check: str, subject: str, issues: Iterable[Issue], *, fine: str) -> Finding:
    """Return one finding that sums up ``issues``, the worst first; a pass where there are none.

    Args:
        check: Name of the check.
        subject: Subject of the finding.
        issues: Issues of the subject.
        fine: Evidence of the pass.
    """
    worst_first = sorted(issues, key=lambda issue: _WORST_FIRST.index(issue.state))
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
