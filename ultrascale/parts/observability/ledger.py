"""The ledger of accelerators that are paid for: its bucket, its rights, what it has to know."""

from collections.abc import Iterator, Mapping, Sequence

from ultrascale import config
from ultrascale.catalog import karpenter, object_keys
from ultrascale.lambdas.fleet_metrics.settings import IdleSettings, LedgerSettings, Reserved
from ultrascale.lambdas.idle_jobs import VERSIONS
from ultrascale.lambdas.ledger import PREFIX
from ultrascale.parts.observability import fleet_metrics
from ultrascale.parts.observability.model import LedgerPlan, Plan
from ultrascale.parts.observability.section import IdleJobs, Observability
from ultrascale.plan import names, retention
from ultrascale.plan.jobs.controllers import controllers_of_jobs
from ultrascale.plan.model import BucketPlan, ClusterPlan, PoolPlan
from ultrascale.plan.rules import rule


def plan_ledger(
    cluster: config.Cluster, section: Observability, pools: Sequence[PoolPlan]
) -> LedgerPlan | None:
    """Return the ledger of ``section``; None without one, and where nothing has accelerators."""
    keys = section.ledger
    counted = [pool for pool in pools if pool.accelerator is not None]
    if keys is None or not counted:
        return None
    reserved = [*_reservations(cluster, counted)]
    idle = _idle_settings(cluster, section.idle_jobs, pools)
    ends = section.idle_jobs is not None and section.idle_jobs.then == "end"
    settings = LedgerSettings(
        bucket=names.LEDGER_BUCKET,
        every=fleet_metrics.seconds_between(pools),
        accelerators={
            name: count for pool in counted for name, count in _accelerators(pool).items()
        },
        labels=karpenter.RESERVATION_LABELS,
        reservations={item.pool: item.id for item in reserved if item.id},
        reserved=reserved,
        queues=(names.OWN_QUEUE_LABEL, object_keys.QUEUE_LABEL),
        idle=idle,
    )
    plans = tuple(item.id for item in reserved if item.purchase == "training-plan")
    return LedgerPlan(
        bucket=BucketPlan(
            name="ledger",
            old_version_days=retention.OBJECT_VERSION_DAYS,
            unfinished_upload_days=retention.UPLOAD_DAYS,
            access="none",
            bucket_name=names.LEDGER_BUCKET,
            kept=((f"{PREFIX}day=", keys.keep_days),),
            readers=keys.readers,
        ),
        reads_reservations=len(reserved) > len(plans),
        training_plans=plans,
        settings=settings,
        ends_unseen=ends and idle is None,
    )


def _idle_settings(
    cluster: config.Cluster, keys: IdleJobs | None, pools: Sequence[PoolPlan]
) -> IdleSettings | None:
    measured = sorted({pool.pool for pool in fleet_metrics.measured_gpu_pools(pools)})
    if keys is None or not measured:
        return None
    kinds = {("batch", "jobs"), *(kind.resource for kind in controllers_of_jobs(cluster))}
    return IdleSettings(
        below_percent=keys.below_percent,
        seconds=keys.for_minutes * 60,
        ends=keys.then == "end",
        every=fleet_metrics.seconds_between(pools),
        most=fleet_metrics.MOST_EXPORTERS,
        pools=measured,
        kinds=[(*key, version) for key, version in VERSIONS.items() if key in kinds],
        job_label=names.JOB_LABEL,
    )


def _label(pool: PoolPlan) -> str:
    why = f"image {pool.ami_type}" if pool.facts.runs_pinned_image else pool.provisioner
    return f"{pool.name} ({why if pool.accelerator == names.NVIDIA_GPU else 'no GPUs'})"


@rule
def idle_jobs_are_seen(plan: ClusterPlan) -> config.Mistakes:
    """Refuse to end jobs where nothing measures the use of accelerators."""
    observability = plan.part(Plan)
    ledger = None if observability is None else observability.ledger
    if ledger is not None and ledger.ends_unseen:
        pools = ", ".join(_label(pool) for pool in plan.all_pools if pool.accelerator is not None)
        wrong = f"nothing in this cluster tells the use of an accelerator: {pools}"
        at = ("observability", "idle_jobs", "then")
        yield config.Mistake(at, wrong, "write tell, or leave idle_jobs out", got="end")


def _accelerators(pool: PoolPlan) -> Mapping[str, int]:
    counts = (spec.accelerator.count if spec.accelerator is not None else 0 for spec in pool.specs)
    return dict(zip(pool.node_types, counts, strict=True))


def _reservations(cluster: config.Cluster, pools: Sequence[PoolPlan]) -> Iterator[Reserved]:
    """Yield the reservations that pools name; a resource group counts as one."""
    purchases = {pool.name: pool.purchase for pool in cluster.pools}
    for name, pool in {pool.pool: pool for pool in pools}.items():
        purchase, reservation, window = purchases[name], pool.reservation, pool.window
        id = purchase.plan if isinstance(purchase, config.TrainingPlan) else ""
        if reservation is not None:
            id = reservation.id or reservation.resource_group or ""
        tags: Mapping[str, str] = {} if reservation is None else reservation.tags
        if id or tags:
            yield Reserved(
                pool=name,
                purchase=purchase.option,
                id=id,
                tags=tags,
                types=_accelerators(pool),
                zones=pool.zones,
                lead=None
                if window is None
                else int((window.ends - window.usable_until).total_seconds()),
            )
