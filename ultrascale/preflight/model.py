"""Types of preflight: checks, their findings, and the issues that a finding sums up."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import field

from ultrascale.findings import Finding
from ultrascale.frozen import Frozen
from ultrascale.plan.model import ClusterNeeds, ClusterPlan, PoolPlan

if TYPE_CHECKING:
    # The package `account` brings boto3, which synthesis does not need.
    from ultrascale.account import Account


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
