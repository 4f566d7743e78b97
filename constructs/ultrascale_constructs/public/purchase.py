"""Purchase of nodes' capacity, and the number of nodes that use it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from ultrascale.frozen import Frozen


class CapacityBlock(Frozen):
    """A Capacity Block for ML that you have bought.

    Nodes exist from the block's start until 40 minutes before its end (70 for UltraServers).

    Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-capacity-blocks.html
    """

    # Id of its capacity reservation, ``cr-…``; a token of another resource is taken as it is.
    reservation: str
    # Start: a datetime with a time zone, or text in UTC as ``2026-12-01T11:30:00Z``.
    starts: datetime | str
    ends: datetime | str  # End, in the same form. Every block ends at 11:30 UTC.
    # Whether it was extended after its purchase, so that it may last any number of days up to 182;
    # others last 1 to 14 days or whole weeks.
    extended: bool = False


class CapacityReservation(Frozen):
    """An On-Demand Capacity Reservation, named by its id or by the resource group that holds it.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-capacity-reservations.html
    """

    # Its id, ``cr-…``, or a token of another resource; None where a group names it.
    reservation: str | None = None
    resource_group: str | None = None  # ARN of the resource group; None where the id names it
    # ``on-demand`` launches On-Demand Instances once it is full, ``never`` fails instead.
    spill: Literal["on-demand", "never"] = "never"


class TrainingPlan(Frozen):
    """A SageMaker flexible training plan for HyperPod that you have bought.

    Source: https://docs.aws.amazon.com/sagemaker/latest/dg/reserve-capacity-with-training-plans.html
    """

    plan: str  # Its ARN
    # Start: a datetime with a time zone, or text in UTC as ``2026-12-01T11:30:00Z``.
    starts: datetime | str
    # End, in the same form. Every plan ends at 11:30 UTC; HyperPod stops the nodes 60 minutes
    # earlier.
    ends: datetime | str
    extended: bool = False  # Whether it was extended after its purchase


class Nodes(Frozen):
    """Number of nodes: ``static`` alone for a fixed count, or ``min`` and ``max``."""

    min: int = 0  # Fewest nodes of a pool that scales
    max: int | None = None  # Most nodes of a pool that scales
    static: int | None = None  # Fixed number of nodes


class Taint(Frozen):
    """A taint of nodes, in Kubernetes' words.

    Source: https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/
    """

    key: str  # Its key, with a domain of your own or none
    value: str  # Its value
    # Effect on pods that do not tolerate it.
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"


def block_keys(block: CapacityBlock) -> Mapping[str, object]:
    """Return a Capacity Block as the purchase of a pool."""
    return {
        "option": "capacity-block",
        "reservation": block.reservation,
        "starts": block.starts,
        "ends": block.ends,
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
        "starts": plan.starts,
        "ends": plan.ends,
        "extended": plan.extended,
    }


def nodes_keys(nodes: Nodes | int) -> Mapping[str, object]:
    """Return the number of nodes of a pool as its cluster file states it."""
    if not isinstance(nodes, Nodes):
        return {"static": nodes}
    if nodes.static is not None:
        # A zero beside a fixed count has no meaning.
        return {"static": nodes.static, "min": nodes.min or None, "max": nodes.max}
    return {"min": nodes.min, "max": nodes.max}


def taint_keys(taint: Taint) -> Mapping[str, object]:
    """Return a taint as a cluster file states it."""
    return {"key": taint.key, "value": taint.value, "effect": taint.effect}
