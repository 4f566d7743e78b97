"""Earlier purchases of an offer: without this check, a second purchase would pay a second fee.

Sources:
    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeCapacityReservations.html
    https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ListTrainingPlans.html
"""

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ultrascale.errors import AccountError, UnansweredError
from ultrascale.offers.model import Offer

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import FilterTypeDef

    from ultrascale.account import Account

RESERVATIONS = "ec2:DescribeCapacityReservations"
PLANS = "sagemaker:ListTrainingPlans"
TAG = "ultrascale.dev/offering"
"""Tag of a purchase; its value is the id of the offer."""
NAME_TAG = "Name"

# States of a reservation that costs nothing.
_NOT_PAID = frozenset({"cancelled", "failed", "payment-failed"})
_FAILED = "Failed"


def refuse_again(offer: Offer, account: "Account", name: str) -> None:
    """Refuse an offer that was bought under ``name`` before.

    AWS may show a purchase only some minutes later.

    Args:
        offer: The offer to buy.
        account: The account that pays.
        name: Name of the purchase.

    Raises:
        AccountError: The offer was bought before, or AWS did not answer.
    """
    held = _plans(offer, account, name) if _is_plan(offer) else _blocks(offer, account, name)
    try:
        purchases = ", ".join(held)
    except UnansweredError as error:
        allow = f"; allow {error.action} in a policy" if error.denied else ""
        raise AccountError(
            f"{offer.id}: not bought: whether it was bought before is unknown: {error}{allow}"
        ) from error
    if purchases:
        raise AccountError(
            f"{offer.id}: not bought: it was bought as {name} before, which is {purchases}; to buy "
            "it once more, add --name with another name"
        )


def look_command(offer: Offer, account: "Account", name: str) -> str:
    """Return the command that shows whether the offer was bought, and the reservation if so.

    Args:
        offer: The offer.
        account: The account that pays.
        name: Name of the purchase.
    """
    where = f"--region {offer.region}"
    if account.profile is not None:
        where += f" --profile {shlex.quote(account.profile)}"
    if _is_plan(offer):
        return f"aws sagemaker describe-training-plan {where} --training-plan-name {name}"
    return (
        f"aws ec2 describe-capacity-reservations {where} --filters Name=tag:{TAG},Values={offer.id}"
    )


def _is_plan(offer: Offer) -> bool:
    return offer.option == "training-plan"


def _blocks(offer: Offer, account: "Account", name: str) -> Iterator[str]:
    # The API's page lists no filter by tags, but Karpenter uses it.
    # Source: https://github.com/aws/karpenter-provider-aws/blob/main/pkg/providers/capacityreservation/types.go
    filters: list[FilterTypeDef] = [
        {"Name": f"tag:{key}", "Values": [value]}
        for key, value in ((TAG, str(offer.id)), (NAME_TAG, name))
    ]
    reservations = account.ask_all(
        account.client("ec2", offer.region).describe_capacity_reservations,
        lambda page: page["CapacityReservations"],
        Filters=filters,
    )
    for reservation in reservations:
        if reservation.get("State") not in _NOT_PAID:
            yield reservation["CapacityReservationId"]


def _plans(offer: Offer, account: "Account", name: str) -> Iterator[str]:
    for plan in account.ask_all(
        account.client("sagemaker", offer.region).list_training_plans,
        lambda page: page["TrainingPlanSummaries"],
    ):
        if plan["TrainingPlanName"] == name and plan["Status"] != _FAILED:
            yield plan["TrainingPlanArn"]
