"""Capacity of nodes: how it is bought, and how many nodes use it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from ultrascale.plan.arguments import moment


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityBlock:
    """A Capacity Block for ML that you have bought.

    Its nodes exist from its start until 40 minutes before its end, 70 for types of UltraServers.

    Attributes:
        reservation: Id of its capacity reservation, ``cr-…``; a token of another resource is taken
            as it is.
        starts: Start: a datetime with a time zone, or text in UTC as ``2026-12-01T11:30:00Z``.
        ends: End, in the same form. Every block ends at 11:30 UTC.
        extended: Whether it was extended after its purchase, so that it may last any number of days
            up to 182; others last 1 to 14 days or whole weeks.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-capacity-blocks.html
    """

    reservation: str
    starts: datetime | str
    ends: datetime | str
    extended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityReservation:
    """An On-Demand Capacity Reservation, named by its id or by the resource group that holds it.

    Attributes:
        reservation: Its id, ``cr-…``, or a token of another resource; None where a group names it.
        resource_group: ARN of the resource group; None where the id names it.
        spill: ``on-demand`` launches On-Demand Instances once it is full, ``never`` fails instead.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-capacity-reservations.html
    """

    reservation: str | None = None
    resource_group: str | None = None
    spill: Literal["on-demand", "never"] = "never"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPlan:
    """A SageMaker flexible training plan for HyperPod that you have bought.

    Attributes:
        plan: Its ARN.
        starts: Start: a datetime with a time zone, or text in UTC as ``2026-12-01T11:30:00Z``.
        ends: End, in the same form. Every plan ends at 11:30 UTC; HyperPod stops the nodes 60
            minutes earlier.
        extended: Whether it was extended after its purchase.

    Source: https://docs.aws.amazon.com/sagemaker/latest/dg/reserve-capacity-with-training-plans.html
    """

    plan: str
    starts: datetime | str
    ends: datetime | str
    extended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """Number of nodes: ``static`` alone for a fixed count, or ``min`` and ``max``.

    Attributes:
        min: Fewest nodes of a pool that scales.
        max: Most nodes of a pool that scales.
        static: Fixed number of nodes.
    """

    min: int = 0
    max: int | None = None
    static: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    """A taint of nodes, in Kubernetes' words.

    Attributes:
        key: Its key, with a domain of your own or none.
        value: Its value.
        effect: Effect on pods that do not tolerate it.

    Source: https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/
    """

    key: str
    value: str
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"


def block_keys(block: CapacityBlock) -> Mapping[str, object]:
    """Return a Capacity Block as the purchase of a pool."""
    return {
        "option": "capacity-block",
        "reservation": block.reservation,
        "starts": moment(block.starts),
        "ends": moment(block.ends),
        "extended": block.extended,
    }


def reservation_keys(reservation: CapacityReservation) -> Mapping[str, object]:
    """Return an On-Demand Capacity Reservation as the purchase of a pool."""
    return {
        "option": "odcr",
        "reservation": reservation.reservation,
        "resource_group": reservation.resource_group,
        "spill": reservation.spill,
    }


def plan_keys(plan: TrainingPlan) -> Mapping[str, object]:
    """Return a training plan as the purchase of a pool."""
    return {
        "option": "training-plan",
        "plan": plan.plan,
        "starts": moment(plan.starts),
        "ends": moment(plan.ends),
        "extended": plan.extended,
    }


def nodes_keys(nodes: Nodes | int) -> Mapping[str, object]:
    """Return the number of nodes of a pool as its cluster file states it."""
    if not isinstance(nodes, Nodes):
        return {"static": nodes}
    if nodes.static is not None:
        # Zero beside a fixed count says nothing.
        return {"static": nodes.static, "min": nodes.min or None, "max": nodes.max}
    return {"min": nodes.min, "max": nodes.max}


def taint_keys(taint: Taint) -> Mapping[str, object]:
    """Return a taint as a cluster file states it."""
    return {"key": taint.key, "value": taint.value, "effect": taint.effect}
