"""`pools[].purchase`: purchase options of a pool."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, Tag

from ultrascale.catalog import kubernetes
from ultrascale.config._base import Model, chosen_by_key
from ultrascale.config._values import Instant, SelectorTags, matching
from ultrascale.config.identity import ACCOUNT_ID

ReservationId = Annotated[
    str,
    matching(
        r"cr-(?:[0-9a-f]{8}|[0-9a-f]{17})",
        "not the id of a capacity reservation",
        "copy it from `aws ec2 describe-capacity-reservations`, such as cr-0123456789abcdef0",
    ),
]
ResourceGroupArn = Annotated[
    str,
    matching(
        rf"arn:aws[a-z-]*:resource-groups:[a-z0-9-]+:{ACCOUNT_ID}:group/[A-Za-z0-9_.-]{{1,300}}",
        "not the ARN of a resource group",
        "write arn:aws:resource-groups:REGION:ACCOUNT:group/NAME",
    ),
]
TrainingPlanArn = Annotated[
    str,
    matching(
        rf"arn:aws[a-z-]*:sagemaker:[a-z0-9-]+:{ACCOUNT_ID}:"
        "training-plan/[A-Za-z0-9](?:-*[A-Za-z0-9]){0,63}",
        "not the ARN of a training plan",
        "write arn:aws:sagemaker:REGION:ACCOUNT:training-plan/NAME",
    ),
]


_Usd = Annotated[float, Field(ge=0, le=1e12)]


class Fee(Model):
    """Amount paid for the time up to a moment."""

    usd: _Usd
    """Amount, in US dollars."""

    until: Instant | None = None
    """End of the time that it pays for, in UTC. Default: `ends`."""


def _one_fee(value: object) -> object:
    return ({"usd": value},) if isinstance(value, int | float | str) else value


_Fees = Annotated[
    tuple[Fee, ...],
    BeforeValidator(_one_fee, json_schema_input_type=_Usd | list[Fee]),
]


class OnDemand(Model):
    """On-Demand Instances: pay by the second, no commitment."""

    option: Literal["on-demand"] = "on-demand"
    """Pay by the second, without a commitment."""


class Spot(Model):
    """Spot Instances: spare capacity, reclaimed with two minutes' notice."""

    option: Literal["spot"] = "spot"
    """Spare capacity, which EC2 reclaims with two minutes' notice."""

    fallback: Literal["on-demand", "none"] = "none"
    """Capacity of a second NodePool, of lower weight, for times when Spot is short."""

    fallback_max: Annotated[int, Field(ge=1, le=kubernetes.NODES_PER_CLUSTER)] | None = None
    """Most nodes of that second NodePool; Spot has the rest of `nodes.max`.

    Default: half of `nodes.max`.
    """


class Reservation(Model):
    """Capacity that is paid for already, named in exactly one of three ways."""

    reservation: ReservationId | None = None
    """Id of the reservation (`cr-…`). Exactly one of the three keys names a reservation.

    Default: none.
    """

    reservation_tags: SelectorTags | None = None
    """Tags of the reservation, all of them; for NodePools. Default: none."""

    resource_group: ResourceGroupArn | None = None
    """ARN of the resource group that holds the reservation; for ODCRs on node groups.

    Default: none.
    """


class Odcr(Reservation):
    """An On-Demand Capacity Reservation."""

    option: Literal["odcr"] = "odcr"
    """An On-Demand Capacity Reservation."""

    spill: Literal["on-demand", "never"] = "never"
    """Capacity that a node group launches when the reservation is full."""


class CapacityBlock(Reservation):
    """A Capacity Block for ML, already bought."""

    option: Literal["capacity-block"] = "capacity-block"
    """A Capacity Block for ML that you bought."""

    starts: Instant
    """Start of the block, in UTC."""

    ends: Instant
    """End of the block, in UTC. Nodes are drained 40 minutes earlier, those of UltraServers 70."""

    extended: bool = False
    """The block was extended after its purchase, so it may last any number of days up to 182;
    others last 1 to 14 days or whole weeks.
    """

    fee: _Fees = ()
    """Amount paid in advance, in US dollars, which `plan` and the ledger spread over the hours;
    after extensions a list of `{until: TIME, usd: AMOUNT}` in their order. Default: unknown.
    """


class TrainingPlan(Model):
    """A SageMaker flexible training plan, already bought."""

    option: Literal["training-plan"] = "training-plan"
    """A SageMaker flexible training plan that you bought, for HyperPod."""

    plan: TrainingPlanArn
    """ARN of the training plan; the pool's zone is the plan's."""

    starts: Instant
    """Start of the plan, in UTC."""

    ends: Instant
    """End of the plan, in UTC. HyperPod stops the nodes 60 minutes earlier."""

    extended: bool = False
    """The plan was extended after its purchase, so it may last longer than 182 days."""

    fee: _Fees = ()
    """Amount paid in advance, as for a Capacity Block. Default: SageMaker is asked."""


Purchase = Annotated[
    Annotated[OnDemand, Tag("on-demand")]
    | Annotated[Spot, Tag("spot")]
    | Annotated[Odcr, Tag("odcr")]
    | Annotated[CapacityBlock, Tag("capacity-block")]
    | Annotated[TrainingPlan, Tag("training-plan")],
    chosen_by_key("option", "on-demand", "spot", "odcr", "capacity-block", "training-plan"),
]
