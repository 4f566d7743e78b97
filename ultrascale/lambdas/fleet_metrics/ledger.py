"""The ledger in S3: open intervals of nodes and reservations, and files of those that ended.

The object of the open intervals holds the rows that its writing ends as well, and is written on
condition that nobody wrote it since it was read: this one write counts or does not. The files
follow from it, so that whoever reads it next writes those that are missing, with the same rows.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from functools import partial
from http import HTTPStatus
from operator import itemgetter
from typing import TYPE_CHECKING

import boto3
from botocore.exceptions import ClientError

from ..forecast import Forecast, forecast, hours_ahead
from ..ledger import DRAIN, HELD, STATE, Fee, shares_of, union_of
from ..ledger_state import State, advance
from .paid import Paid
from .settings import LedgerSettings, Reserved

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import CapacityReservationTypeDef
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sagemaker import SageMakerClient
    from mypy_boto3_sagemaker.type_defs import (
        ReservedCapacitySummaryTypeDef,
        TrainingPlanExtensionTypeDef,
    )


# --- Reservations ---------------------------------------------------------------------------------


_Value = Mapping[str, object]
_ACTIVE = "active"
# States of reservations and plans that nobody pays for.
_UNPAID = frozenset(
    {"assessing", "cancelled", "failed", "payment-failed", "payment-pending", "pending"}
)
# Of extensions of a training plan. AWS names the words in the text on the field alone.
_UNPAID_EXTENSIONS = frozenset({"Pending", "Failed"})


def rows_by_id(settings: LedgerSettings, now: int) -> Iterator[tuple[str, _Value]]:
    """Yield the reservations of the pools and their training plans, with rows without times.

    Raises:
        ClientError: AWS refused.
    """
    # Several pools may name one reservation: the first one counts.
    named = {stated.id or stated.pool: stated for stated in reversed(settings.reserved)}
    plans = [stated for stated in named.values() if stated.purchase == "training-plan"]
    if others := [stated for stated in reversed(named.values()) if stated not in plans]:
        yield from _capacity_reservations(boto3.client("ec2"), others)
    for stated in plans:
        yield stated.id, _training_plan(boto3.client("sagemaker"), stated, now)


def _capacity_reservations(
    ec2: "EC2Client", pools: Sequence[Reserved]
) -> Iterator[tuple[str, _Value]]:
    matches: list[tuple[Reserved, CapacityReservationTypeDef]] = []
    for page in ec2.get_paginator("describe_capacity_reservations").paginate():
        for match in page["CapacityReservations"]:
            # Pools of several zones may have the same tags.
            zone = match.get("AvailabilityZone")
            owners = [stated for stated in pools if _is_of(ec2, match, stated)]
            for stated in sorted(owners, key=lambda stated: zone not in stated.zones)[:1]:
                matches.append((stated, match))
    fees: Mapping[str, list[Fee]] = {}
    if any(stated.lead is not None for stated, _ in matches):
        fees = _extension_fees(ec2)
    values: dict[str, _Value] = {}
    bought, available = Counter[str](), Counter[str]()
    for stated, match in matches:
        # A launch template's nodes do not say which of a group's reservations they have.
        name = stated.id if _is_group(stated) else match["CapacityReservationId"]
        bought[name] += match["TotalInstanceCount"]
        available[name] += match["AvailableInstanceCount"]
        values[name] = _value(
            stated,
            match["InstanceType"],
            (match.get("StartDate"), match.get("EndDate")),
            reservation=name,
            bought=bought[name],
            available=available[name],
            state=match["State"],
            fees=fees.get(name, []),
        )
    yield from values.items()


def _is_group(stated: Reserved) -> bool:
    return ":resource-groups:" in stated.id


def _is_of(ec2: "EC2Client", match: "CapacityReservationTypeDef", stated: Reserved) -> bool:
    name = match["CapacityReservationId"]
    if match["InstanceType"] not in stated.types:
        return False
    if _is_group(stated):
        if match["State"] != _ACTIVE:
            return False
        # EC2 knows the groups of a reservation, and has an endpoint in a closed network.
        pages = ec2.get_paginator("get_groups_for_capacity_reservation").paginate(
            CapacityReservationId=name
        )
        groups = (group for page in pages for group in page["CapacityReservationGroups"])
        return any(group.get("GroupArn") == stated.id for group in groups)
    if stated.id:
        return name == stated.id
    tags = {tag["Key"]: tag["Value"] for tag in match.get("Tags", ())}
    is_block = match.get("ReservationType") == "capacity-block"
    return stated.tags.items() <= tags.items() and is_block == (stated.lead is not None)


def _value(
    stated: Reserved,
    type: str,
    times: tuple[datetime | None, datetime | None],
    *,
    state: str,
    **rest: object,
) -> _Value:
    start, end = times
    window = None
    is_paid = state.lower() not in _UNPAID
    if is_paid and stated.lead is not None and start is not None and end is not None:
        window = [int(start.timestamp()), int(end.timestamp())]
    return {
        "kind": "reservation",
        "pool": stated.pool,
        "type": type,
        "purchase": stated.purchase,
        "accelerators": stated.types[type],
        "state": state,
        "window": window,
        "usable": None if window is None else window[1] - (stated.lead or 0),
        **rest,
    }


def _extension_fees(ec2: "EC2Client") -> Mapping[str, list[Fee]]:
    """Return the fees of the extensions of each Capacity Block that has one."""
    fees: defaultdict[str, list[Fee]] = defaultdict(list)
    for page in ec2.get_paginator("describe_capacity_block_extension_history").paginate():
        for extension in page["CapacityBlockExtensions"]:
            if extension["CapacityBlockExtensionStatus"] == "payment-succeeded":
                fee = _fee(
                    extension["UpfrontFee"],
                    extension["CapacityBlockExtensionStartDate"],
                    extension["CapacityBlockExtensionEndDate"],
                )
                fees[extension["CapacityReservationId"]].append(fee)
    return {name: sorted(paid, key=itemgetter("until")) for name, paid in fees.items()}


def _fee(usd: str, start: datetime, end: datetime) -> Fee:
    return {"usd": usd, "since": int(start.timestamp()), "until": int(end.timestamp())}


def _plan_extensions(
    sagemaker: "SageMakerClient", plan: str
) -> Iterator["TrainingPlanExtensionTypeDef"]:
    # Lambda's boto3 may be older than this operation; a plan has its own fee without it.
    if hasattr(sagemaker, operation := "describe_training_plan_extension_history"):
        for page in sagemaker.get_paginator(operation).paginate(TrainingPlanArn=plan):
            yield from page["TrainingPlanExtensions"]


def _training_plan(sagemaker: "SageMakerClient", stated: Reserved, now: int) -> _Value:
    answer = sagemaker.describe_training_plan(TrainingPlanName=stated.id.rpartition("/")[2])
    extensions = [
        _fee(extension["UpfrontFee"], extension["StartDate"], extension["EndDate"])
        for extension in _plan_extensions(sagemaker, stated.id)
        if "UpfrontFee" in extension and "StartDate" in extension and "EndDate" in extension
        if extension.get("Status") not in _UNPAID_EXTENSIONS
    ]
    extensions.sort(key=itemgetter("until"))
    times = answer["StartTime"], answer["EndTime"]
    start, end = (int(at.timestamp()) for at in times)
    base = min([end, *(fee["since"] for fee in extensions)])
    parts = [*_parts_of(answer.get("ReservedCapacitySummaries", ()), start, base)]
    fees = [*_fees_by_part(answer["UpfrontFee"], parts), *extensions]
    # Nothing is bought between the parts of a plan.
    has_gap = start <= now < end and not any(fee["since"] <= now < fee["until"] for fee in fees)
    return _value(
        stated,
        next(iter(stated.types)),
        times,
        reservation=stated.id,
        bought=0 if has_gap else answer["TotalInstanceCount"],
        available=answer["AvailableInstanceCount"],
        state=answer["Status"],
        fees=fees,
    )


def _parts_of(
    summaries: "Iterable[ReservedCapacitySummaryTypeDef]", start: int, end: int
) -> Iterator[tuple[int, int]]:
    """Yield the times when a plan has capacity: its whole time if SageMaker lists no parts."""
    times = [
        (int(summary["StartTime"].timestamp()), int(summary["EndTime"].timestamp()))
        for summary in summaries
        if "StartTime" in summary and "EndTime" in summary
    ]
    for low, high in union_of(times or [(start, end)]):
        if low < min(high, end):
            yield low, min(high, end)


def _fees_by_part(usd: str, parts: Sequence[tuple[int, int]]) -> Iterator[Fee]:
    """Yield a fee in parts by their lengths, in whole cents that add up to it."""
    cents, whole = round(Decimal(usd) * 100), sum(high - low for low, high in parts)
    passed = paid = 0
    for low, high in parts:
        passed += high - low
        part, paid = cents * passed // whole - paid, cents * passed // whole
        yield {"usd": str(Decimal(part) / 100), "since": low, "until": high}


# --- Objects of S3 --------------------------------------------------------------------------------


def record(paid: Paid, cluster: str, function: str, *, now: int) -> State | None:
    """Write a measurement; return the ledger after it, None if another ran at once.

    Raises:
        ClientError: AWS refused.
        ValueError: A newer function wrote the ledger.
    """
    _, _, _, region, account, *_ = function.split(":")
    head = {"cluster": cluster, "region": region, "account": account}
    s3, bucket = boto3.client("s3"), paid.settings.bucket
    before, etag = _read_state(s3, bucket)
    # An earlier call may have died before it wrote its files.
    for key, file in before.files.items() if before else ():
        _write(s3, bucket, key, file, None)
    if paid.idle is not None:
        last = before or State(now)
        paid.idle.follow(last.idle, last.at, now)
    used = paid.use_by_reservation()
    state = advance(before, _values(paid, before, now), now, paid.settings.every, head)
    if state is None:
        return None
    state = state.with_use(used)
    if paid.idle is not None:
        state = replace(state, idle=paid.idle.stretches)
    if not _write(s3, bucket, STATE, state.text(), etag):
        return None
    for key, file in state.files.items():
        _write(s3, bucket, key, file, None)
    return state


def forecasts(paid: Paid, state: State) -> Iterator[tuple[str, Forecast]]:
    """Yield the forecast of each pool with reservations whose use is known for long enough."""
    pools: dict[str, Counter[int]] = {}
    for row in state.reservations():
        pools.setdefault(row["pool"], Counter()).update(hours_ahead(row, state.at))
    for pool, bought in pools.items():
        outlook = forecast(state.use.get(pool, ()), bought, paid.demand(pool))
        if outlook is not None:
            yield pool, outlook


def idle_spend(paid: Paid, state: State, rates: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    """Yield reasons of idle capacity with its cost in US dollars an hour, with and without nodes.

    ``rates`` has the price of a node-hour of each pool where it is known.
    """
    reserved = state.reservations()
    for row in reserved:
        row |= {"from": state.at, "to": state.at + 1}
    sizes = {row["reservation"]: row["accelerators"] for row in reserved}
    drained = {
        row["reservation"]
        for row in reserved
        if row["window"]
        and max(row["window"][0], row["usable"] or 0) <= state.at < row["window"][1]
    }
    for (name, pool, reason), nodes in paid.unused.items():
        if pool in rates:
            drains = name in drained and reason != HELD
            yield DRAIN if drains else reason, nodes * rates[pool]
    for row in reserved:
        row["bought"] -= paid.joined[row["reservation"]]
    for share in shares_of(reserved, state.at, state.at + 1):
        if share.pool in rates:
            yield share.reason, share.n / sizes[share.reservation] * rates[share.pool]


def _values(paid: Paid, before: State | None, now: int) -> Iterator[tuple[str, str]]:
    yield from paid.values()
    rows = [] if before is None else before.reservations()
    started = {row["reservation"] for row in rows if row["started"]} | paid.joined.keys()
    for name, value in rows_by_id(paid.settings, now):
        text = json.dumps({**value, "started": name in started}, separators=(",", ":"))
        yield f"reservation/{name}", text


def _read_state(s3: "S3Client", bucket: str) -> tuple[State | None, str | None]:
    """Return the state with its entity tag; None without any."""
    try:
        answer = s3.get_object(Bucket=bucket, Key=STATE)
    except s3.exceptions.NoSuchKey:
        return None, None
    return State.parse(answer["Body"].read()), answer["ETag"]


def _write(s3: "S3Client", bucket: str, key: str, body: bytes, etag: str | None) -> bool:
    """Write an object in place of that with the tag, or of none; return whether it did."""
    put = partial(s3.put_object, Bucket=bucket, Key=key, Body=body)
    try:
        _ = put(IfNoneMatch="*") if etag is None else put(IfMatch=etag)
    except ClientError as error:
        answer = error.response.get("ResponseMetadata", {})
        if answer.get("HTTPStatusCode") != HTTPStatus.PRECONDITION_FAILED:
            raise
        return False
    return True
