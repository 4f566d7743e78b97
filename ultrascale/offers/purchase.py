"""Purchase of one offer: the only code of the project that spends money up front.

No request here is sent twice. Neither request has an idempotency token: if the answer is lost, the
purchase may have been made, and a second request may pay twice. So no offer is bought twice under
one name, and the name follows from the offer.

Sources:
    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_PurchaseCapacityBlock.html
    https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateTrainingPlan.html
"""

import shlex
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, NotRequired, ParamSpec, TypeVar, cast

from botocore.exceptions import ClientError

from ultrascale import catalog
from ultrascale.catalog import quotas
from ultrascale.errors import AccountError, UnansweredError
from ultrascale.offers.find import why_refused
from ultrascale.offers.model import DOLLARS, Found, Offer, Part
from ultrascale.plan.advice.purchases import PoolOfFile

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import (
        CapacityReservationTypeDef,
        FilterTypeDef,
        PurchaseCapacityBlockResultTypeDef,
        TagTypeDef,
    )

    from ultrascale.account import Account

    class _BoughtBlock(PurchaseCapacityBlockResultTypeDef):
        """An answer with a field that boto3-stubs 1.43 lacks."""

        CapacityReservations: NotRequired[list[CapacityReservationTypeDef]]


# --- Earlier purchases of an offer: without this check, a second purchase would pay a second fee
# Sources:
#     https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeCapacityReservations.html
#     https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ListTrainingPlans.html


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


# --- Purchase of one offer: the only code of the project that spends money up front ---------------


_P = ParamSpec("_P")
_Answer = TypeVar("_Answer")

BLOCK_ACTION = "ec2:PurchaseCapacityBlock"
PLAN_ACTION = "sagemaker:CreateTrainingPlan"
# Service Quotas' error code for a quota that the account has not changed.
_NOT_SET = "NoSuchResourceException"

_PLATFORM = "Linux/UNIX"
_LONGEST_NAME = 64
_NOT_CANCELLABLE = "final: it cannot be cancelled, moved or split, and is not paid back"
# Codes of refusals before AWS did anything.
# Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
_PUT_OFF = frozenset({"RequestLimitExceeded", "Throttling", "ThrottlingException"})
_SERVER_ERROR = 500


class UnsureError(AccountError):
    """Error: a purchase may or may not have been made. The message says how to find out."""


def offered(found: Found, offering_id: str) -> Offer:
    """Return the current offer with the id ``offering_id``.

    Args:
        found: Result of the search.
        offering_id: Id of the offer.

    Raises:
        AccountError: AWS no longer offers it, or did not answer.
    """
    for offer in found.offers:
        if offer.id == offering_id:
            return offer
    if found.unknown:
        lines = [
            f"{question.what}: unknown: {question.action}: {question.reason}"
            for question in found.unknown
        ]
        raise AccountError(
            "\n".join((*lines, f"{offering_id}: not bought: not found without them"))
        )
    raise AccountError(
        f"{offering_id}: not bought: AWS does not offer it for these options any more; search "
        "again by `ultrascale capacity` with the same options, and buy what that finds"
    )


def refuse_other_fee(offer: Offer, fee: Decimal) -> None:
    """Refuse an offer whose fee has changed.

    Args:
        offer: The current offer.
        fee: The fee that the user saw.

    Raises:
        AccountError: The fee has changed.
    """
    if offer.fee != fee:
        now = "unknown" if offer.fee is None else _money(offer.fee, offer)
        raise AccountError(f"{offer.id}: not bought: its fee is {now} now, and not {fee:,}")


def refuse_unusable(
    offer: Offer, *, at: datetime | None = None, place: PoolOfFile | None = None
) -> None:
    """Refuse an offer that would be paid for although no cluster could use it.

    Args:
        offer: The current offer.
        at: The time that counts as now, in UTC; None judges no time.
        place: The cluster file's pool that the offer is for; None for any pool.

    Raises:
        AccountError: `check` would refuse the pool that the offer would become; one line for each
            reason.
    """
    reasons = why_refused(offer, at=at, place=place)
    if reasons:
        lines = [f"{offer.id}: not bought: it cannot be used: {reason}" for reason in reasons]
        raise AccountError("\n".join(lines))


def default_name(offer: Offer) -> str:
    """Return the name of the purchase, which is the same at every attempt."""
    return f"ultrascale-{offer.id}"[:_LONGEST_NAME].rstrip("-")


def terms(offer: Offer, account: "Account", quota: str, name: str) -> Iterator[str]:
    """Yield the terms of a purchase, line by line.

    Args:
        offer: The offer to buy.
        account: The account that pays.
        quota: A sentence about the quota that the purchase counts against.
        name: Name of the purchase.
    """
    what = offer.option.replace("-", " ")
    yield f"offer    {offer.id}: a {what} of {offer.count} x {offer.instance_type}, named {name}"
    for part in offer.parts:
        zone = f"{part.zone or 'an unknown zone'} ({part.zone_id or 'id unknown'})"
        yield (
            f"window   {_time_text(part.starts)} until {_time_text(part.ends)}, {part.count} nodes "
            f"in {zone}; of use until {_time_text(part.usable_until)}, {part.usable_hours:,.1f} "
            "hours"
        )
    fee = "unknown" if offer.fee is None else _money(offer.fee, offer)
    per_hour = "unknown" if offer.hourly is None else f"{offer.hourly:,.2f} {offer.currency}"
    yield f"fee      {fee} up front, {per_hour} for each usable node-hour; {_NOT_CANCELLABLE}"
    yield f"account  {account.id} pays, in {offer.region}, as {account.arn}"
    yield f"quota    {quota}"
    for note in offer.notes:
        yield f"note     {note}"


def quota_of(offer: Offer, account: "Account") -> str:
    """Return a sentence about the quota on concurrent Capacity Blocks, or on training plans.

    Args:
        offer: The offer to buy.
        account: The account that asks.
    """
    if _is_plan(offer):
        return (
            "SageMaker's on training plans, by instance type, of which no codes are published: "
            f"`aws service-quotas list-service-quotas --service-code sagemaker --region "
            f"{offer.region}`"
        )
    spec = catalog.lookup(offer.instance_type)
    if not spec.knows("capacity_block_quota_code"):
        return f"unknown: no quota is published for Capacity Blocks of {offer.instance_type}"
    quota = quotas.service_quota(spec.capacity_block_quota_code)
    name = f"{quota.name} ({quota.code})"
    try:
        answer = account.ask(
            account.client("service-quotas", offer.region).get_service_quota,
            ServiceCode=quota.service,
            QuotaCode=quota.code,
        )
    except UnansweredError as error:
        if error.code != _NOT_SET:
            return f"{name}: unknown: {error}"
        value, known = quota.default or 0, f"{quota.default} unless AWS has raised it"
    else:
        value = answer["Quota"]["Value"]
        # AWS's pages do not say whether the quota counts blocks or vCPUs.
        known = f"{value:g} in all, what is held already included"
    if value:
        return f"{name}: {known}"
    return (
        f"{name}: {known}; AWS refuses the purchase until it is raised: `aws service-quotas "
        f"request-service-quota-increase --service-code {quota.service} --quota-code {quota.code} "
        f"--region {offer.region} --desired-value NUMBER`"
    )


def buy(offer: Offer, account: "Account", name: str) -> tuple[str, ...]:
    """Buy an offer, and return the keys of the cluster file's pools that run on it.

    Args:
        offer: The offer to buy.
        account: The account that pays.
        name: Name of the purchase.

    Raises:
        AccountError: The offer has no window or no fee, no cluster could use it, or it was bought
            before; nothing was bought.
        UnansweredError: AWS refused; nothing was bought.
        UnsureError: AWS did not say whether it sold, or what it sold.
    """
    if not offer.parts:
        raise AccountError(f"{offer.id}: not bought: AWS does not say when it starts and ends")
    if offer.fee is None:
        raise AccountError(f"{offer.id}: not bought: AWS does not say its fee")
    refuse_unusable(offer)
    refuse_again(offer, account, name)
    return (_buy_plan if _is_plan(offer) else _buy_block)(offer, account, name)


def _buy_block(offer: Offer, account: "Account", name: str) -> tuple[str, ...]:
    tags: list[TagTypeDef] = [
        {"Key": NAME_TAG, "Value": name},
        {"Key": TAG, "Value": str(offer.id)},
    ]
    answer = _answer_to_purchase(
        account,
        offer,
        look_command(offer, account, name),
        account.client("ec2", offer.region, once=True).purchase_capacity_block,
        CapacityBlockOfferingId=str(offer.id),
        InstancePlatform=_PLATFORM,
        TagSpecifications=[{"ResourceType": "capacity-reservation", "Tags": tags}],
    )
    bought = cast("_BoughtBlock", answer)
    reservations = bought.get("CapacityReservations") or [bought.get("CapacityReservation", {})]
    # The offer's value stands in for a field that the answer leaves out.
    parts = offer.parts
    if len(parts) != len(reservations):
        parts = (offer.parts[0],) * len(reservations)
    if any("CapacityReservationId" not in reservation for reservation in reservations):
        raise _unsure(offer, "AWS did not name the reservation", look_command(offer, account, name))
    # AWS states one fee for all parts of an offer.
    fee: Mapping[str, str] = _fee_key(offer) if len(reservations) == 1 else {}
    return tuple(
        _block_keys(reservation, part, fee)
        for reservation, part in zip(reservations, parts, strict=True)
    )


def _buy_plan(offer: Offer, account: "Account", name: str) -> tuple[str, ...]:
    bought = _answer_to_purchase(
        account,
        offer,
        look_command(offer, account, name),
        account.client("sagemaker", offer.region, once=True).create_training_plan,
        TrainingPlanName=name,
        TrainingPlanOfferingId=str(offer.id),
        Tags=[{"Key": TAG, "Value": str(offer.id)}],
    )
    if "TrainingPlanArn" not in bought:
        raise _unsure(offer, "AWS did not name the plan", look_command(offer, account, name))
    zones = dict.fromkeys(part.zone for part in offer.parts if part.zone is not None)
    option = {"option": "training-plan", "plan": bought["TrainingPlanArn"], **_fee_key(offer)}
    starts, ends = offer.parts[0].starts, offer.parts[-1].ends
    return (_pool_keys(offer.instance_type, offer.count, option, starts, ends, list(zones)),)


def _answer_to_purchase(
    account: "Account",
    offer: Offer,
    look: str,
    method: Callable[_P, _Answer],
    /,
    *args: _P.args,
    **parameters: _P.kwargs,
) -> _Answer:
    """Send a purchase request exactly once.

    Raises:
        UnansweredError: AWS refused.
        UnsureError: AWS did not say whether it sold.
    """
    try:
        return account.ask(method, *args, **parameters)
    except KeyboardInterrupt as error:
        raise _unsure(offer, "interrupted", look) from error
    except UnansweredError as error:
        if error.code in _PUT_OFF or (error.code and not _failed_inside(error)):
            raise
        raise _unsure(offer, str(error), look) from error
    except BaseException as error:
        # Any failure from here on may come after AWS has processed the request.
        raise _unsure(offer, repr(error), look) from error


def _unsure(offer: Offer, why: str, look: str) -> UnsureError:
    return UnsureError(
        f"{offer.id}: {why}\nIT IS NOT KNOWN WHETHER IT WAS BOUGHT, and buying it again may cost "
        f"the fee twice. Look first, now and in ten minutes: `{look}`"
    )


def _failed_inside(error: UnansweredError) -> bool:
    """Return whether AWS failed while it processed the request."""
    cause = error.__cause__
    if not isinstance(cause, ClientError):
        return False
    metadata = cause.response.get("ResponseMetadata", {})
    return metadata.get("HTTPStatusCode", 0) >= _SERVER_ERROR


def _fee_key(offer: Offer) -> Mapping[str, str]:
    """Return the key of the fee; none in another currency, which the ledger does not count."""
    if offer.fee is None or offer.currency != DOLLARS:
        return {}
    return {"fee": str(round(offer.fee, 2))}


def _block_keys(
    reservation: "CapacityReservationTypeDef", part: Part, fee: Mapping[str, str]
) -> str:
    option = {"option": "capacity-block", "reservation": reservation["CapacityReservationId"]}
    return _pool_keys(
        reservation.get("InstanceType", part.instance_type),
        reservation.get("TotalInstanceCount", part.count),
        {**option, **fee},
        reservation.get("StartDate", part.starts),
        reservation.get("EndDate", part.ends),
        [zone for zone in (reservation.get("AvailabilityZone", part.zone),) if zone is not None],
    )


def _pool_keys(
    instance_type: str,
    count: int,
    option: Mapping[str, str],
    starts: datetime,
    ends: datetime,
    zones: list[str],
) -> str:
    lines = [
        f"# {count} nodes",
        f"instance_types: [{instance_type}]",
        "purchase:",
        *(f"  {key}: {value}" for key, value in option.items()),
        f"  starts: {_time_text(starts)}",
        f"  ends: {_time_text(ends)}",
        f"zones: [{', '.join(zones)}]",
    ]
    return "\n".join(lines)


def _money(value: Decimal, offer: Offer) -> str:
    cents = round(value, 2)
    return f"{cents if cents == value else value:,} {offer.currency}"


def _time_text(time: datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"
