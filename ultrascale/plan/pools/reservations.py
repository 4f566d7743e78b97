"""Reservations that pools name, and open ones that nodes launch into by themselves.

An open On-Demand Capacity Reservation takes every matching instance of the account, unless the
launch opts out. Karpenter and EKS Auto Mode opt out of all launches once one pool names a
reservation.

Sources:
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations-using.html
    https://karpenter.sh/docs/tasks/odcrs/#migrating-from-previous-versions
    https://github.com/aws/karpenter-provider-aws/blob/v1.14.1/pkg/providers/launchtemplate/types.go
    https://docs.aws.amazon.com/eks/latest/userguide/auto-odcr.html
"""

from collections.abc import Iterator, Sequence

from ultrascale.plan.model import PoolPlan


def naming_pool(pools: Sequence[PoolPlan]) -> str | None:
    """Return the first pool of Karpenter or EKS Auto Mode that names a reservation; None: none.

    A cluster has one of the two at most.
    """
    named = (pool.pool for pool in pools if pool.is_node_pool and pool.reservation is not None)
    return next(named, None)


def open_nodes(pool: PoolPlan) -> int:
    """Return the most On-Demand nodes of ``pool``, for which EC2 looks for an open reservation."""
    if not pool.facts.in_account or pool.reservation is not None:
        return 0
    return pool.max_nodes if pool.capacity_type == "on-demand" else pool.fallback_nodes


def why_left_open(pool: PoolPlan, pools: Sequence[PoolPlan]) -> str | None:
    """Return why no node of ``pool`` launches into an open reservation; None: nodes do.

    Args:
        pool: The pool.
        pools: All pools of its cluster.
    """
    if not pool.facts.in_account:
        return "SageMaker launches its nodes, and uses no reservation of EC2"
    if pool.reservation is not None:
        return "it launches into the reservation that it names"
    if not open_nodes(pool):
        return "Spot nodes use no reservation"
    if pool.placement_group:
        # Source: https://github.com/eksctl-io/eksctl/issues/7949
        return "its placement group is filled by reservations that were made in it alone"
    return _opt_out(pool, pools)


def reservation_remarks(pools: Sequence[PoolPlan]) -> Iterator[str]:
    """Yield the pools that stay out of open reservations because another one names its own."""
    kept_out: dict[str, list[str]] = {}
    for pool in pools:
        if open_nodes(pool) and (reason := _opt_out(pool, pools)) is not None:
            kept_out.setdefault(reason, []).append(pool.pool)
    for reason, names in kept_out.items():
        yield (
            f"Open capacity reservations: On-Demand nodes of {', '.join(dict.fromkeys(names))} "
            f"stay out of them: {reason}"
        )


def _opt_out(pool: PoolPlan, pools: Sequence[PoolPlan]) -> str | None:
    naming = naming_pool(pools)
    if not pool.is_node_pool or naming is None:
        return None
    by = pool.facts.name
    return f"pool {naming} names a reservation, and {by} then launches into named ones alone"
