"""What is checked in an account, and what is found."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from ultrascale.account import Account
from ultrascale.errors import UnansweredError
from ultrascale.plan.model import ClusterNeeds, ClusterPlan

State = Literal["pass", "warn", "fail", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a check found about one thing.

    Attributes:
        check: Name of the check.
        subject: What it is about, such as a quota, a pool or a Region.
        state: Whether a deployment meets no trouble there, may meet some, will meet some, or
            nothing is known.
        evidence: What the account answered, beside what is needed.
        fix: The command or the request that puts it right; None where nothing is wrong.
        denied: The IAM action that a policy has to allow before anything is known.
    """

    check: str
    subject: str
    state: State
    evidence: str
    fix: str | None = None
    denied: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a check may look at.

    Attributes:
        plan: The cluster.
        needs: What it needs of the account.
        account: The account, as the user sees it.
        at: The time that counts as now, in UTC.
        imports: Whether stacks take over what has their names already, where they can.
    """

    plan: ClusterPlan
    needs: ClusterNeeds
    account: Account
    at: datetime
    imports: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Something to find out. It reads, and changes nothing.

    Attributes:
        name: Its name, in one word or several with hyphens.
        title: What it finds out.
        actions: Every IAM action that it takes.
        run: Yields what it finds, in one order. An `UnansweredError` ends it, and becomes a finding
            that is unknown.
        resources: ARN patterns of actions that can be allowed for fewer resources than all, with
            ``{partition}``, ``{region}``, ``{account}`` and ``{cluster}``.
    """

    name: str
    title: str
    actions: tuple[str, ...]
    run: Callable[[Context], Iterator[Finding]]
    resources: Mapping[str, str] = field(default_factory=dict[str, str])


def unknown(check: str, subject: str, error: UnansweredError) -> Finding:
    """Return the finding that nothing is known of ``subject``, as AWS did not answer."""
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
