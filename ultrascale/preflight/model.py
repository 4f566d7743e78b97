"""Types of preflight: checks, their findings, and the issues that a finding sums up."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from msgspec import field

from ultrascale.errors import UnansweredError
from ultrascale.frozen import Frozen
from ultrascale.plan.model import ClusterNeeds, ClusterPlan, PoolPlan

if TYPE_CHECKING:
    # The package `account` brings boto3, which synthesis does not need.
    from ultrascale.account import Account


State = Literal["pass", "warn", "fail", "unknown"]

_WORST_FIRST: Sequence[State] = ("fail", "unknown", "warn", "pass")


class Finding(Frozen):
    """Result of a check for one subject."""

    check: str  # Name of the check
    subject: str  # Subject, such as a quota, a pool or a Region
    # ``pass``: the deployment meets no trouble there. ``warn``: it may. ``fail``: it will.
    # ``unknown``: AWS did not answer.
    state: State
    evidence: str  # The account's values beside the needed ones
    fix: str | None = None  # Command or request that solves it; None where nothing is wrong
    denied: str | None = None  # IAM action that a policy has to allow before the check can tell


class Context(Frozen):
    """The input of every check."""

    plan: ClusterPlan  # The cluster
    needs: ClusterNeeds  # Needs of the cluster
    account: "Account"  # The account, seen with the user's credentials
    at: datetime  # The present time of all checks, in UTC
    imports: bool = False  # Whether stacks import existing resources that have their names


class Check(Frozen):
    """A check of an account; it only reads."""

    name: str  # Its name: words joined by hyphens
    title: str  # The statement that it checks
    actions: tuple[str, ...]  # Every IAM action that it needs
    # Yields the findings, always in the same order. An `UnansweredError` ends the check, and
    # becomes a finding with the state ``unknown``.
    run: Callable[[Context], Iterator[Finding]]
    # ARN pattern of each action that IAM can limit to some resources, with ``{partition}``,
    # ``{region}``, ``{account}`` and ``{cluster}``; ``{object}`` stands for each of `objects`.
    resources: Mapping[str, str] = field(default_factory=dict[str, str])
    # Names of buckets, or of objects in them, that it reads for a cluster with the credentials of
    # an account; ``*`` stands for any.
    objects: Callable[[ClusterPlan, str], Iterable[str]] = lambda _plan, _account: ()
    # Name of the check of the core that a part's stands behind; empty: before the stacks.
    follows: str = ""


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


# --- Pools of the cluster file: all shards of a pool share a line of a report ---------------------


class WholePool(Frozen):
    """A pool with all of its shards."""

    name: str  # Its name in the cluster file
    plan: PoolPlan  # The pool, or its first shard
    nodes: int  # The most nodes of all shards together
    at_once: int  # Nodes that a deployment launches and waits for

    @property
    def in_account(self) -> bool:
        """Whether the instances belong to the account; else they are SageMaker's."""
        return self.plan.facts.in_account


def whole_pools(all_pools: Sequence[PoolPlan]) -> tuple[WholePool, ...]:
    """Return the pools of the file in its order."""
    shards: dict[str, list[PoolPlan]] = {}
    for pool in all_pools:
        shards.setdefault(pool.pool, []).append(pool)
    return tuple(
        WholePool(
            name=name,
            plan=pools[0],
            nodes=sum(pool.max_nodes for pool in pools),
            at_once=sum(pool.initial_nodes for pool in pools),
        )
        for name, pools in shards.items()
    )
