"""Offerings of SageMaker training plans, for HyperPod.

Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_SearchTrainingPlanOfferings.html
"""

from datetime import timedelta
from typing import TYPE_CHECKING, cast

from ultrascale.catalog import hyperpod, training_plans
from ultrascale.offers.blocks import starts_in_time
from ultrascale.offers.model import (
    DOLLARS,
    Offer,
    Part,
    Request,
    fee_of,
    hourly,
    nodes_at_once,
    on_demand_price,
)
from ultrascale.offers.sizes import Size
from ultrascale.plan.capacity import training_plan_window

if TYPE_CHECKING:
    from mypy_boto3_sagemaker.literals import ReservedCapacityInstanceTypeType
    from mypy_boto3_sagemaker.type_defs import (
        ReservedCapacityOfferingTypeDef,
        SearchTrainingPlanOfferingsRequestTypeDef,
        TrainingPlanOfferingTypeDef,
    )

    from ultrascale.account import Account

ACTION = "sagemaker:SearchTrainingPlanOfferings"
_HOURS = 24
# Like Capacity Blocks, plans end at a fixed time of day.
_LONGER = timedelta(days=1)


def plan_offers(
    account: "Account", request: Request, region: str, instance_type: str, size: Size
) -> list[Offer]:
    """Return the training plans on offer of one type and size. AWS has no further pages of them.

    EC2 is assumed to reclaim each part of a plan with gaps as early as a whole plan: AWS's pages
    speak of whole plans alone.

    Args:
        account: The account that asks.
        request: The request, with `days`.
        region: AWS Region.
        instance_type: EC2 name.
        size: Nodes of a plan.

    Raises:
        UnansweredError: AWS did not answer, or an offering lacks a field.
    """
    answer = account.ask(
        account.client("sagemaker", region).search_training_plan_offerings,
        **_parameters(request, instance_type, size),
    )
    offers = [
        _offer(offering, request, region, instance_type, size)
        for offering in answer["TrainingPlanOfferings"]
    ]
    return [offer for offer in offers if starts_in_time(offer, request)]


def _parameters(
    request: Request, instance_type: str, size: Size
) -> "SearchTrainingPlanOfferingsRequestTypeDef":
    assert request.days is not None, "training plans are sold by days"
    parameters: SearchTrainingPlanOfferingsRequestTypeDef = {
        "DurationHours": request.days * _HOURS,
        "TargetResources": [training_plans.TARGET],
    }
    if size.ultraserver is None:
        parameters["InstanceType"] = cast(
            "ReservedCapacityInstanceTypeType", hyperpod.TYPE_PREFIX + instance_type
        )
        parameters["InstanceCount"] = size.count
    else:
        parameters["UltraServerType"] = hyperpod.TYPE_PREFIX + size.ultraserver.name
        parameters["UltraServerCount"] = size.ultraservers
    if request.starts is not None:
        parameters["StartTimeAfter"] = request.starts
    if request.until is not None:
        parameters["EndTimeBefore"] = request.until + timedelta(days=request.days) + _LONGER
    return parameters


def _offer(
    offering: "TrainingPlanOfferingTypeDef",
    request: Request,
    region: str,
    instance_type: str,
    size: Size,
) -> Offer:
    capacities = offering.get("ReservedCapacityOfferings", [])
    parts = tuple(sorted(map(_part, capacities), key=lambda part: part.starts))
    fee = fee_of(offering.get("UpfrontFee"), ACTION)
    currency = offering.get("CurrencyCode", DOLLARS)
    notes = [f"in {len(parts)} parts"] if len(parts) > 1 else []
    if size.ultraserver is not None:
        # Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateTrainingPlan.html
        notes.append(f"{size.ultraservers} x {size.ultraserver.name}, one instance of each a spare")
    return Offer(
        id=offering["TrainingPlanOfferingId"],
        option="training-plan",
        request=request,
        region=region,
        zone=parts[0].zone if parts else None,
        zone_id=None,
        instance_type=instance_type,
        count=nodes_at_once(parts) or size.count,
        parts=parts,
        fee=fee,
        currency=currency,
        hourly=hourly(fee, parts),
        on_demand=on_demand_price(region, instance_type, currency),
        score=None,
        notes=tuple(notes),
    )


def _part(capacity: "ReservedCapacityOfferingTypeDef") -> Part:
    window = training_plan_window(capacity["StartTime"], capacity["EndTime"])
    return Part(
        zone=capacity.get("AvailabilityZone"),
        zone_id=None,
        instance_type=capacity["InstanceType"].removeprefix(hyperpod.TYPE_PREFIX),
        count=capacity["InstanceCount"],
        starts=window.starts,
        usable_until=window.usable_until,
        ends=window.ends,
    )
