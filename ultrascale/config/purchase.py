"""`pools[].purchase`: how the capacity of a pool is paid for."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, Tag

from ultrascale.config._base import Instant, Model, matching, told_apart_by
from ultrascale.config._tags import SelectorTags

ReservationId = Annotated[
    str,
    AfterValidator(
        matching(
            r"cr-[0-9a-f]{8,17}",
            "not the id of a capacity reservation",
            "copy it from `aws ec2 describe-capacity-reservations`, such as cr-0123456789abcdef0",
        )
    ),
]
ResourceGroupArn = Annotated[
    str,
    AfterValidator(
        matching(
            r"arn:aws[a-z-]*:resource-groups:[a-z0-9-]+:\d{12}:group/[\w.-]+",
            "not the ARN of a resource group",
            "write arn:aws:resource-groups:REGION:ACCOUNT:group/NAME",
        )
    ),
]
TrainingPlanArn = Annotated[
    str,
    AfterValidator(
        matching(
            r"arn:aws[a-z-]*:sagemaker:[a-z0-9-]+:\d{12}:training-plan/[A-Za-z0-9][A-Za-z0-9-]{0,63}",
            "not the ARN of a training plan",
            "write arn:aws:sagemaker:REGION:ACCOUNT:training-plan/NAME",
        )
    ),
]


class OnDemand(Model):
    """On-Demand Instances: pay by the second, no commitment."""

    option: Literal["on-demand"] = "on-demand"


class Spot(Model):
    """Spot Instances: spare capacity, reclaimed with two minutes' notice.

    Attributes:
        option: ``spot``.
        fallback: What a second pool of lower weight launches when Spot is short.
        fallback_max: Most nodes of that second pool; the first may have the others. None: half.
    """

    option: Literal["spot"] = "spot"
    fallback: Literal["on-demand", "none"] = "none"
    fallback_max: Annotated[int, Field(ge=1)] | None = None


class Reservation(Model):
    """Capacity that is paid for already, named in exactly one of three ways.

    Attributes:
        reservation: Its id.
        reservation_tags: Tags that it carries, all of them.
        resource_group: ARN of the resource group that holds it.
    """

    reservation: ReservationId | None = None
    reservation_tags: SelectorTags | None = None
    resource_group: ResourceGroupArn | None = None


class Odcr(Reservation):
    """An On-Demand Capacity Reservation.

    Attributes:
        option: ``odcr``.
        spill: What a node group launches when the reservation is full.
    """

    option: Literal["odcr"] = "odcr"
    spill: Literal["on-demand", "never"] = "never"


class CapacityBlock(Reservation):
    """A Capacity Block for ML, already bought.

    Attributes:
        option: ``capacity-block``.
        starts: Start of its window, in UTC.
        ends: End of its window, in UTC. EC2 takes the instances back earlier.
        extended: Whether it was extended after its purchase, and may so last any whole number of
            days.
    """

    option: Literal["capacity-block"] = "capacity-block"
    starts: Instant
    ends: Instant
    extended: bool = False


class TrainingPlan(Model):
    """A SageMaker flexible training plan, already bought.

    Attributes:
        option: ``training-plan``.
        plan: Its ARN.
        starts: Start of its window, in UTC.
        ends: End of its window, in UTC. HyperPod stops the instances earlier.
    """

    option: Literal["training-plan"] = "training-plan"
    plan: TrainingPlanArn
    starts: Instant
    ends: Instant


Purchase = Annotated[
    Annotated[OnDemand, Tag("on-demand")]
    | Annotated[Spot, Tag("spot")]
    | Annotated[Odcr, Tag("odcr")]
    | Annotated[CapacityBlock, Tag("capacity-block")]
    | Annotated[TrainingPlan, Tag("training-plan")],
    told_apart_by("option", "on-demand", "spot", "odcr", "capacity-block", "training-plan"),
]
