"""The ledger in S3: open intervals of nodes and reservations, and files of those that ended.

The object of the open intervals holds the rows that its writing ends as well, and is written on
condition that nobody wrote it since it was read: this one write counts or does not. The files
follow from it, so that whoever reads it next writes those that are missing, with the same rows.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from http import HTTPStatus
from itertools import chain
from typing import TYPE_CHECKING, Any

import boto3
from botocore.exceptions import ClientError

from ..forecast import Forecast, bought_ahead, forecast
from ..ledger import DRAIN, STATE, VERSION, Fee, ReservationRow, encode, file_key, joined, split
from ..ledger_state import State, advance
from .paid import Paid
from .settings import LedgerSettings, Reserved

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import CapacityReservationTypeDef
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sagemaker import SageMakerClient
    from mypy_boto3_sagemaker.type_defs import ReservedCapacitySummaryTypeDef


# --- Reservations ---------------------------------------------------------------------------------


_Value = dict[str, object]
_ACTIVE = "active"
# Of extensions of a training plan. AWS names the words in the text on the field alone.
_UNPAID = frozenset({"Pending", "Failed"})


def reserved(settings: LedgerSettings, now: int) -> Iterator[tuple[str, _Value]]:
    """Yield the reservations of the pools and their training plans, with rows without times.

    Args:
        settings: The ledger's settings.
        now: Time of the measurement, in seconds since 1970.

    Raises:
        ClientError: AWS refused.
    """
    # Several pools may name one reservation.
    named = {own["id"] or own["pool"]: Reserved(**own) for own in reversed(settings.reserved)}
    stated = [*named.values()][::-1]
    plans = [own for own in stated if own.purchase == "training-plan"]
    if others := [own for own in stated if own not in plans]:
        ec2 = boto3.client("ec2")
        pages = ec2.get_paginator("describe_capacity_reservations").paginate()
        matches = [
            (own, match)
            for page in pages
            for match in page["CapacityReservations"]
            for own in others
            if _is_of(ec2, match, own)
        ]
        fees: Mapping[str, list[Fee]] = {}
        if any(own.lead is not None for own, _ in matches):
            fees = _extension_fees(ec2)
        groups: dict[str, tuple[int, int]] = {}
        for own, match in matches:
            name = match["CapacityReservationId"]
            counts = match["TotalInstanceCount"], match["AvailableInstanceCount"]
            if _is_group(own):
                # A launch template's nodes do not say which of the group's reservations they have.
                name, before = own.id, groups.get(own.id, (0, 0))
                counts = groups[name] = (before[0] + counts[0], before[1] + counts[1])
                continue
            times = match.get("StartDate"), match.get("EndDate")
            value = _value(own, name, match["InstanceType"], match["State"], counts, times)
            yield name, {**value, "fees": fees.get(name, [])}
        for own in filter(_is_group, others):
            if own.id in groups:
                value = _value(own, own.id, own.type, _ACTIVE, groups[own.id], (None, None))
                yield own.id, {**value, "fees": []}
    for own in plans:
        yield own.id, _training_plan(boto3.client("sagemaker"), own, now)


def _is_group(own: Reserved) -> bool:
    return ":resource-groups:" in own.id


def _is_of(ec2: "EC2Client", match: "CapacityReservationTypeDef", own: Reserved) -> bool:
    name = match["CapacityReservationId"]
    if _is_group(own):
        # EC2 knows the groups of a reservation, and has an endpoint in a closed network.
        if (match["InstanceType"], match["State"]) != (own.type, _ACTIVE):
            return False
        pages = ec2.get_paginator("get_groups_for_capacity_reservation").paginate(
            CapacityReservationId=name
        )
        groups = (group for page in pages for group in page["CapacityReservationGroups"])
        return any(group.get("GroupArn") == own.id for group in groups)
    if own.id:
        return name == own.id
    tags = {tag["Key"]: tag["Value"] for tag in match.get("Tags", ())}
    is_block = match.get("ReservationType") == "capacity-block"
    return own.tags.items() <= tags.items() and is_block == (own.lead is not None)


def _value(
    own: Reserved,
    name: str,
    type: str,
    state: str,
    counts: tuple[int, int],
    times: tuple[datetime | None, datetime | None],
) -> _Value:
    start, end = times
    window = None
    if own.lead is not None and start is not None and end is not None:
        window = [int(start.timestamp()), int(end.timestamp())]
    return {
        "kind": "reservation",
        "reservation": name,
        "pool": own.pool,
        "type": type,
        "purchase": own.purchase,
        "accelerators": own.accelerators,
        "bought": counts[0],
        "available": counts[1],
        "state": state,
        "window": window,
        "usable": None if window is None else window[1] - (own.lead or 0),
    }


def _extension_fees(ec2: "EC2Client") -> Mapping[str, list[Fee]]:
    """Return the fees of the extensions of each Capacity Block that has one."""
    pages = ec2.get_paginator("describe_capacity_block_extension_history").paginate()
    paid = [
        (
            each["CapacityReservationId"],
            _fee(
                each["UpfrontFee"],
                each["CapacityBlockExtensionStartDate"].timestamp(),
                each["CapacityBlockExtensionEndDate"].timestamp(),
            ),
        )
        for page in pages
        for each in page["CapacityBlockExtensions"]
        if each["CapacityBlockExtensionStatus"] == "payment-succeeded"
    ]
    fees: dict[str, list[Fee]] = {}
    for name, fee in sorted(paid, key=lambda own: own[1]["until"]):
        fees.setdefault(name, []).append(fee)
    return fees


def _fee(usd: str, since: float, until: float) -> Fee:
    return {"usd": usd, "since": int(since), "until": int(until)}


def _training_plan(sagemaker: "SageMakerClient", own: Reserved, now: int) -> _Value:
    answer = sagemaker.describe_training_plan(TrainingPlanName=own.id.rpartition("/")[2])
    pages = sagemaker.get_paginator("describe_training_plan_extension_history").paginate(
        TrainingPlanArn=own.id
    )
    extensions = [
        _fee(each["UpfrontFee"], each["StartDate"].timestamp(), each["EndDate"].timestamp())
        for page in pages
        for each in page["TrainingPlanExtensions"]
        if "UpfrontFee" in each and "StartDate" in each and "EndDate" in each
        if each.get("Status") not in _UNPAID
    ]
    extensions.sort(key=lambda fee: fee["until"])
    times = answer["StartTime"], answer["EndTime"]
    start, end = (int(at.timestamp()) for at in times)
    base = min([end, *(fee["since"] for fee in extensions)])
    parts = [*_parts_of(answer.get("ReservedCapacitySummaries", ()), start, base)]
    fees = [*_spread(answer["UpfrontFee"], parts), *extensions]
    inside = any(fee["since"] <= now < fee["until"] for fee in fees)
    # Nothing is bought between the parts of a plan.
    count = answer["TotalInstanceCount"] if inside or not start <= now < end else 0
    counts = count, answer["AvailableInstanceCount"]
    value = _value(own, own.id, own.type, answer["Status"], counts, times)
    return {**value, "fees": fees}


def _parts_of(
    summaries: "Iterable[ReservedCapacitySummaryTypeDef]", start: int, end: int
) -> Iterator[tuple[int, int]]:
    """Yield the times in which a plan has capacity: all of it where SageMaker tells no parts."""
    times = [
        (int(own["StartTime"].timestamp()), int(own["EndTime"].timestamp()))
        for own in summaries
        if "StartTime" in own and "EndTime" in own
    ]
    for low, high in joined(times or [(start, end)]):
        if low < min(high, end):
            yield low, min(high, end)


def _spread(usd: str, parts: Sequence[tuple[int, int]]) -> Iterator[Fee]:
    """Yield a fee in parts by their lengths, in whole cents that add up to it."""
    cents, whole = round(Decimal(usd) * 100), sum(high - low for low, high in parts)
    passed = paid = 0
    for low, high in parts:
        passed += high - low
        part, paid = cents * passed // whole - paid, cents * passed // whole
        yield _fee(str(Decimal(part) / 100), low, high)


# --- Objects of S3 --------------------------------------------------------------------------------


def record(paid: Paid, cluster: str, function: str, *, now: int) -> State | None:
    """Write a measurement; return the ledger after it, None if another ran at once.

    Args:
        paid: The accelerators.
        cluster: Name of the cluster.
        function: ARN of this function.
        now: Time of the measurement, in seconds since 1970.

    Raises:
        ClientError: AWS refused.
        ValueError: A newer function wrote the ledger.
    """
    settings = paid.settings
    bucket = _Bucket(boto3.client("s3"), settings, cluster, function)
    held, etag = bucket.read()
    if held is not None:
        # Those of an earlier call, which may have died before it wrote them.
        bucket.write_files(held)
        held.ended.clear()
    if paid.idle is not None:
        before = held or State(now, {}, {})
        paid.idle.follow(before.idle, before.at, now)
    used = paid.used()
    state = advance(held, _values(paid, held, now), now, settings.every)
    if state is None:
        return None
    state = state.sampled(used)
    if paid.idle is not None:
        state = replace(state, idle=paid.idle.stretches)
    if not bucket.write(STATE, state.text(), etag):
        return None
    bucket.write_files(state)
    return state


def forecasts(paid: Paid, state: State) -> Iterator[tuple[str, Forecast]]:
    """Yield the forecast of each pool with reservations whose use is known for long enough."""
    for pool, bought in bought_ahead(state.rows("reservation"), state.at).items():
        found = forecast(state.use.get(pool, ()), bought, paid.wanted(pool))
        if found is not None:
            yield pool, found


def idle_spend(paid: Paid, state: State, rates: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    """Yield reasons and US dollars an hour of what is paid for and idles, nodes or none.

    Args:
        paid: The accelerators, which were recorded.
        state: The ledger after it.
        rates: Price of a node-hour by pool, where it is known.
    """
    reserved: list[ReservationRow] = state.rows("reservation")
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
            yield DRAIN if name in drained else reason, nodes * rates[pool]
    for row in reserved:
        row["bought"] -= paid.joined[row["reservation"]]
    for share in split(reserved, state.at, state.at + 1):
        if share.pool in rates:
            yield share.reason, share.n / sizes[share.reservation] * rates[share.pool]


def _values(paid: Paid, held: State | None, now: int) -> Iterator[tuple[str, str]]:
    yield from paid.values()
    for name, value in reserved(paid.settings, now):
        key = f"reservation/{name}"
        earlier = None if held is None else held.running.get(key)
        started = name in paid.joined or (earlier is not None and json.loads(earlier[1])["started"])
        yield key, json.dumps({**value, "started": started}, separators=(",", ":"))


class _Bucket:
    def __init__(
        self, s3: "S3Client", settings: LedgerSettings, cluster: str, function: str
    ) -> None:
        self._s3 = s3
        self._name = settings.bucket
        _, _, _, region, account, *_ = function.split(":")
        self._head = {
            "v": VERSION,
            "kind": "file",
            "cluster": cluster,
            "region": region,
            "account": account,
            "every": settings.every,
        }

    def read(self) -> tuple[State | None, str | None]:
        """Return the state with its entity tag; None without any."""
        try:
            answer = self._s3.get_object(Bucket=self._name, Key=STATE)
        except self._s3.exceptions.NoSuchKey:
            return None, None
        return State.parse(answer["Body"].read()), answer["ETag"]

    def write_files(self, state: State) -> None:
        """Write the files of a state's rows that are not there."""
        for day, rows in state.ended.items():
            head = {**self._head, "day": day, "seq": state.at}
            body = encode(chain([json.dumps(head, separators=(",", ":"))], rows))
            self.write(file_key(day, state.at), body, None)

    def write(self, key: str, body: bytes, etag: str | None) -> bool:
        """Write an object in place of that with the tag, or of none; return whether it did."""
        condition: Mapping[str, Any] = {"IfNoneMatch": "*"} if etag is None else {"IfMatch": etag}
        try:
            self._s3.put_object(Bucket=self._name, Key=key, Body=body, **condition)
        except ClientError as error:
            answer = error.response.get("ResponseMetadata", {})
            if answer.get("HTTPStatusCode") != HTTPStatus.PRECONDITION_FAILED:
                raise
            return False
        return True
