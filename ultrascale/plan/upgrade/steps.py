"""The steps of an upgrade of Kubernetes in their order, and the way back."""

from collections.abc import Iterator, Mapping, Sequence

from ultrascale.catalog import upgrades
from ultrascale.plan.model import ClusterPlan, PoolPlan
from ultrascale.plan.upgrade.pools import PoolUpgrade


def upgrade_steps(
    plan: ClusterPlan, pools: Sequence[PoolUpgrade], *, then: str, file: str
) -> tuple[str, ...]:
    """Return the steps of an upgrade without obstacles, one after the other.

    Args:
        plan: The cluster as it is.
        pools: Effects on its pools.
        then: The minor.
        file: Path of the cluster file.
    """
    sized = {pool.name: pool for pool in plan.all_pools}
    emptied = [sized[pool.pool] for pool in pools if pool.fate == "empty first"]
    return (
        *_first_steps(then, file),
        *(_empty(pool, file) for pool in emptied),
        f"`ultrascale deploy {file}`: the control plane is upgraded first, then add-ons, then the "
        "pools",
        *(step for pool in emptied for step in _fill(pool, file)),
        *(_roll(pool, sized, file) for pool in pools if pool.rolled_by_hand),
        *(step for part in plan.parts for step in part.renewals(plan.region)),
    )


def _first_steps(then: str, file: str) -> Iterator[str]:
    """Yield questions only the cluster and the account can answer, and the edit of the file."""
    oldest = f"1.{upgrades.minor(then) - upgrades.KUBELET_MINORS_BEHIND}"
    yield f"`kubectl get nodes`: none older than v{oldest}"
    yield (
        f'write `version: "{then}"` under `kubernetes` in {file}, and run `ultrascale preflight '
        f"{file}`: it asks for EKS's upgrade insights as well"
    )


def _empty(pool: PoolPlan, file: str) -> str:
    scale = f"`ultrascale scale {file} {pool.name} 0`"
    if pool.sized_by == "cluster-autoscaler":
        return f"suspend the jobs of {pool.name}, for which it would grow again, then {scale}"
    return f"once the jobs of {pool.name} are done: {scale}"


def _fill(pool: PoolPlan, file: str) -> Iterator[str]:
    """Yield how an emptied group gets its nodes again: the deploy leaves sizes alone."""
    match pool.sized_by:
        case "calendar":
            yield (
                f"`ultrascale status {file} --pools`: inside its block's window the deploy fills "
                f"{pool.name} again, before it its calendar does at the start"
            )
        case "cluster-autoscaler":
            if pool.min_nodes:
                yield f"`ultrascale scale {file} {pool.name} {pool.min_nodes}`: its minimum was 0"
            yield f"resume the jobs of {pool.name}: the Cluster Autoscaler adds nodes for them"
        case _:
            paid = "; its reservation is paid all the while" if pool.reservation is not None else ""
            yield (
                f"`ultrascale scale {file} {pool.name} {pool.initial_nodes}`: no deploy does it"
                f"{paid}"
            )


def _roll(pool: PoolUpgrade, plans: Mapping[str, PoolPlan], file: str) -> str:
    """Return how nodes are renewed by hand: at once where their capacity cannot be lost meanwhile.

    A job over all of them starts again with each batch.
    """
    command = f"ultrascale roll {file} {pool.pool} --batch"
    plan = plans.get(pool.pool)
    if plan is not None and plan.reservation is not None:
        return f"between two jobs: `{command} {pool.most}`"
    return (
        f"`{command} 1`: nothing reserves its capacity; each batch costs a job that runs there a "
        "restart"
    )


def way_back(*, cluster: str, region: str, version: str) -> str:
    """Return how a control plane comes back to the minor before its last upgrade.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/rollback-cluster.html

    Args:
        cluster: Name of the cluster.
        region: Its Region.
        version: The minor before.
    """
    return (
        f"within {upgrades.WAY_BACK_DAYS} days of an upgrade, and before another, EKS takes the "
        f"control plane back to {version}: first the nodes and add-ons that are newer, then `aws "
        f"eks update-cluster-version --region {region} --name {cluster} --kubernetes-version "
        f"{version}`; CloudFormation does it neither by a deploy nor when a stack rolls back"
    )
