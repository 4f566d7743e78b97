"""Capacity Blocks and On-Demand Capacity Reservations, compared with the pools that use them.

Nothing else compares them: EC2 refuses launches one by one, and Karpenter ignores a selector that
matches nothing, so a paid reservation would stay empty.
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-capacity-reservations.html
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import combinations
from typing import TYPE_CHECKING

from ultrascale.catalog import capacity_blocks
from ultrascale.errors import UnansweredError
from ultrascale.findings import Finding, Issue, finding, unknown
from ultrascale.plan.model import PoolPlan, ReservationPlan
from ultrascale.preflight.model import Check, Context, WholePool, whole_pools
from ultrascale.preflight.open_reservations import listed_ids, open_reservation_findings
from ultrascale.preflight.reservation_fields import (
    Claim,
    count_issues,
    in_utc,
    is_candidate,
    issues,
)

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import CapacityBlockTypeDef as Block
    from mypy_boto3_ec2.type_defs import CapacityReservationTypeDef as Reservation
    from mypy_boto3_ec2.type_defs import FilterTypeDef

_NAME = "reservations"
_DESCRIBE = "ec2:DescribeCapacityReservations"
_BLOCKS = "ec2:DescribeCapacityBlocks"
_GROUP = "resource-groups:ListGroupResources"
# Further permissions of this check.
# Source: https://docs.aws.amazon.com/ARG/latest/APIReference/API_ListGroupResources.html
_STACK = "cloudformation:ListStackResources"
_OF_GROUPS = ("cloudformation:DescribeStacks", _STACK, "tag:GetResources")
_KIND = "AWS::EC2::CapacityReservation"
# Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html and
# https://docs.aws.amazon.com/ARG/latest/APIReference/API_ListGroupResources.html
_NO_GROUP = "NotFoundException"
_NOT_THERE = frozenset(
    {
        "InvalidCapacityReservationId.Malformed",
        "InvalidCapacityReservationId.NotFound",
        _NO_GROUP,
    }
)
# Unusable reservations that a message names.
_SHOWN = 5


def _reservation_findings(context: Context) -> Iterator[Finding]:
    named_ids: set[str] = set()
    is_answered = True
    for claim in claims(context.plan.all_pools):
        subject = f"{claim}: {reservation_name(claim.reservation)}"
        blocks: Mapping[str, Block] = {}
        try:
            matches = _described_reservations(context, claim.reservation)
        except UnansweredError as error:
            if error.code not in _NOT_THERE or _is_missing_member(claim.reservation, error):
                yield unknown(_NAME, subject, error)
                is_answered = False
                continue
            matches = ()
        named_ids.update(match["CapacityReservationId"] for match in matches)
        try:
            blocks = _blocks(context, claim, matches)
        except UnansweredError as error:
            yield unknown(_NAME, f"{subject}: its block", error)
        yield from claim_findings(context, claim, matches, blocks)
    # Otherwise a reservation that a pool names would be listed as unnamed.
    if is_answered:
        yield from open_reservation_findings(_NAME, context, named_ids)


def claims(pools: Sequence[PoolPlan]) -> tuple[Claim, ...]:
    """Return the reservations that ``pools`` launch into.

    Pools of equal purchase that name a reservation in the same way share it.
    """
    grouped: dict[object, tuple[ReservationPlan, list[WholePool]]] = {}
    for pool in whole_pools(pools):
        reservation = pool.plan.reservation
        if reservation is None:
            continue
        key = (
            pool.plan.purchase,
            pool.plan.instance_types,
            pool.plan.zones,
            reservation_name(reservation),
        )
        grouped.setdefault(key, (reservation, []))[1].append(pool)
    return tuple(
        Claim(reservation=reservation, pools=tuple(own)) for reservation, own in grouped.values()
    )


def reservation_name(reservation: ReservationPlan) -> str:
    """Return the name of a reservation in the cluster file: tags, id or resource group."""
    if reservation.tags:
        tags = ", ".join(f"{key}={value}" for key, value in sorted(reservation.tags.items()))
        return f"tags {tags}"
    return reservation.id or reservation.resource_group or "no name"


def claim_findings(
    context: Context,
    claim: Claim,
    found: "Sequence[Reservation]",
    blocks: "Mapping[str, Block]",
) -> Iterator[Finding]:
    """Yield the findings about the reservations of a claim.

    Args:
        context: The account, and the time that counts as now.
        claim: The claim of the file.
        found: The reservations that match it, as EC2 describes them.
        blocks: Their Capacity Blocks, by id.
    """
    subject = f"{claim}: {reservation_name(claim.reservation)}"
    candidates = _candidates(claim, found)
    if not candidates:
        yield _no_candidate_finding(context, claim, found)
        return
    judged = [
        (
            answer,
            [
                *issues(claim, answer, account=context.account.id, at=context.at),
                *_block_issues(claim, blocks.get(answer.get("CapacityBlockId", ""))),
            ],
        )
        for answer in candidates
    ]
    if claim.reservation.id is not None:
        ((answer, wrong),) = judged
        wrong += count_issues(claim, [answer])
        yield finding(_NAME, subject, wrong, fine=_pass_evidence(claim, [answer]))
        return
    yield from _fleet_findings(claim, judged)
    usable = [answer for answer, wrong in judged if _is_usable(wrong)]
    wrong = [*_overlap_issues(claim, candidates), *(count_issues(claim, usable) if usable else ())]
    if usable or wrong:
        yield finding(_NAME, subject, wrong, fine=_pass_evidence(claim, usable))


def _fleet_findings(
    claim: Claim, judged: "Sequence[tuple[Reservation, Sequence[Issue]]]"
) -> Iterator[Finding]:
    """Yield one finding for all reservations of a fleet with the same issues."""
    alike: dict[tuple[str, ...], list[tuple[Reservation, Sequence[Issue]]]] = {}
    for answer, wrong in judged:
        alike.setdefault(tuple(issue.evidence for issue in wrong), []).append((answer, wrong))
    for texts, members in alike.items():
        if texts:
            ids = listed_ids([answer for answer, _ in members])
            yield finding(_NAME, f"{claim}: {ids}", members[0][1], fine="")


def _is_usable(wrong: Sequence[Issue]) -> bool:
    return not any(issue.state in ("fail", "unknown") for issue in wrong)


def _candidates(claim: Claim, found: "Sequence[Reservation]") -> "list[Reservation]":
    """Return the reservations of ``found`` that pools of ``claim`` launch into, now or later.

    An id names exactly one reservation, with or without issues. Of several Capacity Blocks with the
    tags, such as renewals, only blocks in the pool's window count; all blocks if none is in it.
    """
    if claim.reservation.id is not None:
        return [*found]
    alike = [answer for answer in found if is_candidate(claim, answer)]
    window = claim.plan.window
    if window is None:
        return alike
    within = [
        answer
        for answer in alike
        if (starts := in_utc(answer.get("StartDate"))) is None
        or (ends := in_utc(answer.get("EndDate"))) is None
        or (starts < window.ends and ends > window.starts)
    ]
    return within or alike


def _no_candidate_finding(
    context: Context, claim: Claim, found: "Sequence[Reservation]"
) -> Finding:
    """Return the failure of a claim that no reservation fits, with the unusable reservations."""
    subject = f"{claim}: {reservation_name(claim.reservation)}"
    others = [
        finding(
            _NAME,
            "",
            issues(claim, answer, account=context.account.id, at=context.at),
            fine="",
        )
        for answer in found[:_SHOWN]
    ]
    unusable = "; ".join(
        f"{answer['CapacityReservationId']}: {its_finding.evidence}"
        for answer, its_finding in zip(found, others, strict=False)
    )
    more = f" ({len(found) - _SHOWN} more)" if len(found) > _SHOWN else ""
    what = "Capacity Block" if claim.block else "capacity reservation"
    where = f"{context.plan.region} of account {context.account.id}"
    evidence = f"no {what} in {where} that the pool could launch into"
    list_them = (
        f"aws ec2 describe-capacity-reservations --region {context.plan.region} --filters "
        f"Name=instance-type,Values={','.join(claim.plan.instance_types)}"
    )
    fix = f"name one of those that `{list_them}` lists"
    if claim.reservation.tags:
        tags = " ".join(f"Key={k},Value={v}" for k, v in sorted(claim.reservation.tags.items()))
        fix += f", or tag it: `aws ec2 create-tags --resources cr-… --tags {tags}`"
    return Finding(
        check=_NAME,
        subject=subject,
        state="fail",
        evidence=f"{evidence}; found {unusable}{more}" if unusable else evidence,
        fix=fix,
    )


def _overlap_issues(claim: Claim, candidates: "Sequence[Reservation]") -> Iterator[Issue]:
    """Yield an issue for each pair of Capacity Blocks of which Karpenter would fill only one.

    Source: https://github.com/aws/karpenter-provider-aws/issues/8514
    """
    if not claim.block:
        return
    for one, other in combinations(candidates, 2):
        times = (
            in_utc(one.get("StartDate")),
            in_utc(one.get("EndDate")),
            in_utc(other.get("StartDate")),
            in_utc(other.get("EndDate")),
        )
        starts, ends, other_starts, other_ends = times
        if starts is None or ends is None or other_starts is None or other_ends is None:
            continue
        if starts < other_ends and other_starts < ends:
            ids = f"{one['CapacityReservationId']} and {other['CapacityReservationId']}"
            evidence = f"{ids} carry the same tags, and their windows overlap: one stays empty"
            yield Issue(
                state="fail",
                evidence=evidence,
                fix="give each block a tag of its own, and a pool",
            )


def _block_issues(claim: Claim, block: "Block | None") -> Iterator[Issue]:
    """Yield the issues of a reservation's Capacity Block; EC2 describes no shared block."""
    window = claim.plan.window
    if block is None or window is None:
        return
    ultraserver = str(block.get("UltraserverType", ""))
    reclaimed = capacity_blocks.ULTRASERVER_RECLAIMED_BEFORE_END
    if ultraserver.startswith("u-") and window.ends - window.reclaimed_from < reclaimed:
        minutes = reclaimed // timedelta(minutes=1)
        yield Issue(
            state="fail",
            evidence=f"UltraserverType is {ultraserver}: EC2 takes its instances back {minutes} "
            "minutes before the end, earlier than the plan drains them",
            fix="name the type of the UltraServer's instances in instance_types",
        )


def _pass_evidence(claim: Claim, usable: "Sequence[Reservation]") -> str:
    total = sum(answer.get("TotalInstanceCount", 0) for answer in usable)
    states = "/".join(sorted({answer.get("State", "?") for answer in usable}))
    return f"{listed_ids(usable)}: {total} instances for {claim.nodes} nodes, {states}"


def _described_reservations(
    context: Context, reservation: ReservationPlan
) -> "Sequence[Reservation]":
    ask = context.account
    if reservation.tags:
        filters: list[FilterTypeDef] = [
            {"Name": f"tag:{key}", "Values": [value]} for key, value in reservation.tags.items()
        ]
        return ask.ask_all(
            ask.client("ec2").describe_capacity_reservations,
            lambda page: page["CapacityReservations"],
            Filters=filters,
        )
    ids = (
        [reservation.id] if reservation.id else _members(context, reservation.resource_group or "")
    )
    if not ids:
        return ()
    answer = ask.ask(ask.client("ec2").describe_capacity_reservations, CapacityReservationIds=ids)
    return answer["CapacityReservations"]


def _is_missing_member(reservation: ReservationPlan, error: UnansweredError) -> bool:
    """Return whether only a member of a resource group is missing: other members may exist."""
    return reservation.resource_group is not None and error.code != _NO_GROUP


def _members(context: Context, group: str) -> list[str]:
    """Return the ids of the reservations of a resource group."""
    resources = context.account.ask_all(
        context.account.client("resource-groups").list_group_resources,
        lambda page: page["Resources"],
        Group=group,
    )
    members = [resource["Identifier"] for resource in resources]
    return [
        each["ResourceArn"].rpartition("/")[2] for each in members if each["ResourceType"] == _KIND
    ]


def _blocks(
    context: Context, claim: Claim, found: "Sequence[Reservation]"
) -> "Mapping[str, Block]":
    ids = sorted(
        {
            reservation["CapacityBlockId"]
            for reservation in found
            if reservation.get("CapacityBlockId")
        }
    )
    if not claim.block or not ids:
        return {}
    filters: list[FilterTypeDef] = [{"Name": "capacity-block-id", "Values": ids}]
    answer = context.account.ask_all(
        context.account.client("ec2").describe_capacity_blocks,
        lambda page: page["CapacityBlocks"],
        Filters=filters,
    )
    return {block["CapacityBlockId"]: block for block in answer}


RESERVATIONS = Check(
    name=_NAME,
    title="reservations are what the pools take them for, and no open one idles",
    actions=(_DESCRIBE, _BLOCKS, _GROUP, *_OF_GROUPS),
    run=_reservation_findings,
    resources={
        _GROUP: "arn:{partition}:resource-groups:{region}:{account}:group/*",
        _STACK: "arn:{partition}:cloudformation:{region}:{account}:stack/{cluster}-*/*",
    },
)
