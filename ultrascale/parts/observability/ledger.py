"""The ledger of accelerators that are paid for: its bucket, its rights, what it has to know."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from ultrascale import config
from ultrascale.catalog import karpenter, object_keys
from ultrascale.lambdas.fleet_metrics.settings import LedgerSettings, Reserved
from ultrascale.parts.observability.model import LedgerPlan
from ultrascale.parts.observability.section import Ledger
from ultrascale.plan import names, retention
from ultrascale.plan.model import BucketPlan, PoolPlan


def plan_ledger(
    cluster: config.Cluster, stated: Ledger | None, pools: Sequence[PoolPlan], seconds: int
) -> LedgerPlan | None:
    """Return the ledger; None without one, and where nothing has accelerators.

    Args:
        cluster: The cluster file.
        stated: Its section on the ledger.
        pools: Its pools.
        seconds: Time between two measurements.
    """
    counted = [pool for pool in pools if pool.accelerator is not None]
    if stated is None or not counted:
        return None
    reserved = [*_reserved(cluster, counted)]
    settings = LedgerSettings(
        bucket=names.LEDGER_BUCKET,
        every=seconds,
        accelerators={
            name: count for pool in counted for name, count in _accelerators(pool).items()
        },
        labels=karpenter.RESERVATION_LABELS,
        reservations={own.pool: own.id for own in reserved if own.id},
        reserved=[asdict(own) for own in reserved],
        queues=(names.OWN_QUEUE_LABEL, object_keys.QUEUE_LABEL),
    )
    plans = tuple(own.id for own in reserved if own.purchase == "training-plan")
    return LedgerPlan(
        bucket=BucketPlan(
            name="ledger",
            old_version_days=retention.OBJECT_VERSION_DAYS,
            unfinished_upload_days=retention.UPLOAD_DAYS,
            access="none",
            bucket_name=names.LEDGER_BUCKET,
            kept=(("ledger/day=", stated.keep_days),),
            readers=stated.readers,
        ),
        reads_reservations=len(reserved) > len(plans),
        training_plans=plans,
        settings=settings,
    )


def _accelerators(pool: PoolPlan) -> Mapping[str, int]:
    counts = (spec.accelerator.count if spec.accelerator is not None else 0 for spec in pool.specs)
    return dict(zip(pool.node_types, counts, strict=True))


def _reserved(cluster: config.Cluster, pools: Sequence[PoolPlan]) -> Iterator[Reserved]:
    """Yield the reservations that pools name; a resource group does not tell its own."""
    stated = {pool.name: pool.purchase for pool in cluster.pools}
    for name, pool in {pool.pool: pool for pool in pools}.items():
        purchase, reservation, window = stated[name], pool.reservation, pool.window
        id = purchase.plan if isinstance(purchase, config.TrainingPlan) else ""
        if reservation is not None:
            id = reservation.id or ""
        tags: Mapping[str, str] = {} if reservation is None else reservation.tags
        if id or tags:
            yield Reserved(
                pool=name,
                purchase=purchase.option,
                id=id,
                tags=tags,
                type=pool.node_types[0],
                accelerators=pool.accelerators_per_node,
                lead=None
                if window is None
                else int((window.ends - window.usable_until).total_seconds()),
            )
