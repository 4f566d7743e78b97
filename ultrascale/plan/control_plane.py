"""The EKS control plane."""

from collections.abc import Sequence

from ultrascale import config
from ultrascale.catalog import eks
from ultrascale.plan import retention
from ultrascale.plan.addons import foreign_addons
from ultrascale.plan.model import AddonPlan, ControlPlanePlan, PoolPlan, ScalePlan, ScoringPlan
from ultrascale.plan.scale import scale_for

# An accelerator decides among nodes, and CPU and memory where no pod asks for one.
_ACCELERATOR_WEIGHT = 10
_ROOM_WEIGHT = 1


def foreign_control_plane(kubernetes: config.Kubernetes) -> ControlPlanePlan:
    """Return the control plane of a cluster with another owner's network and nodes.

    Raises:
        CatalogError: No source states a value that it needs.
    """
    node_addons, workload_addons = foreign_addons(kubernetes)
    return plan_control_plane(
        kubernetes,
        (),
        scale_for(1),
        node_addons=node_addons,
        workload_addons=workload_addons,
    )


def plan_control_plane(
    kubernetes: config.Kubernetes,
    pools: Sequence[PoolPlan],
    scale: ScalePlan,
    *,
    node_addons: tuple[AddonPlan, ...],
    workload_addons: tuple[AddonPlan, ...],
    secrets_key: str | None = None,
    volume_key: str | None = None,
) -> ControlPlanePlan:
    """Return the control plane of a cluster with ``pools``.

    Args:
        kubernetes: Its settings.
        pools: Its pools.
        scale: Settings of its size.
        node_addons: Add-ons that must exist before a node joins.
        workload_addons: Add-ons that need a node to become healthy.
        secrets_key: ARN of the user's own key of the API's data; None: the stack makes one.
        volume_key: ARN of the user's own key of volumes; None: the account's default key of EBS.
    """
    return ControlPlanePlan(
        version=kubernetes.version,
        # EKS's own default, spelled out: with STANDARD it would upgrade the cluster by itself when
        # standard support ends, under running jobs. Extended support costs more by the hour.
        support_type="EXTENDED",
        tier=eks.CONTROL_PLANE_TIERS[kubernetes.control_plane_tier],
        service_cidr=kubernetes.service_cidr,
        event_ttl=kubernetes.event_ttl,
        scoring=_scoring(pools),
        public_cidrs=tuple(str(cidr) for cidr in kubernetes.endpoint.public_cidrs),
        log_types=_log_types(kubernetes, scale),
        log_retention_days=retention.LOG_DAYS,
        admins=kubernetes.admins,
        secrets_key=secrets_key,
        volume_key=volume_key,
        auto_mode=any(pool.is_auto_mode for pool in pools),
        node_addons=node_addons,
        workload_addons=workload_addons,
        facts=kubernetes.facts,
    )


def _log_types(kubernetes: config.Kubernetes, scale: ScalePlan) -> tuple[str, ...]:
    """Return the control-plane logs that are written, in EKS's own order."""
    wanted = scale.log_types if kubernetes.logs is None else kubernetes.logs
    return tuple(log_type for log_type in eks.CONTROL_PLANE_LOG_TYPES if log_type in wanted)


def _scoring(pools: Sequence[PoolPlan]) -> ScoringPlan:
    """Return the scheduler's weights of free room: whole nodes stay free for jobs that need them.

    A pod with one of eight GPUs goes to a node with others in use, and pods without any fill
    existing nodes. Without accelerators it is Kubernetes' own way.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/control-plane-configuration.html
    """
    present = {pool.accelerator for pool in pools}
    accelerators = [name for name in eks.SCORED_RESOURCES if name in present]
    weights: dict[str, int] = {"cpu": _ROOM_WEIGHT, "memory": _ROOM_WEIGHT}
    if not accelerators:
        return ScoringPlan(strategy="LeastAllocated", weights=weights)
    return ScoringPlan(
        strategy="MostAllocated",
        weights={**weights, **dict.fromkeys(accelerators, _ACCELERATOR_WEIGHT)},
    )
