"""A reservation that no node finds is paid for until its last hour."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.cases import rows
from tests.support.fake_aws import ID, THROTTLED, Answer, Refusal, Told, denied
from tests.support.pools import CAPACITY_BLOCK, HYPERPOD_POOL, ODCR, SPOT, pool_document
from tests.support.preflight_context import NOW, found, make_context, pools_plan, states
from ultrascale.findings import Finding
from ultrascale.plan.model import ClusterPlan
from ultrascale.preflight.reservations import RESERVATIONS

DESCRIBE = "ec2:DescribeCapacityReservations"
BLOCKS = "ec2:DescribeCapacityBlocks"
GROUP = "resource-groups:ListGroupResources"
CR = "cr-0123456789abcdef0"
STARTS = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)
ENDS = datetime(2026, 12, 8, 11, 30, tzinfo=UTC)
DAY = timedelta(days=1)
NO_MORE: Answer = {"CapacityReservations": []}
TAGS = {"team": "training"}
BY_TAGS = "train: tags team=training"
BLOCK = {"role": "reserved", "purchase": CAPACITY_BLOCK | {"reservation": "cr-0bbbbbbbbbbbbbbb2"}}
GROUP_ARN = f"arn:aws:resource-groups:us-west-2:{ID}:group/training"


def odcr(id: str = CR, **changes: Any) -> dict[str, Any]:
    """Return what EC2 says of an active reservation for the pool of these tests."""
    answer = {
        "CapacityReservationId": id,
        "OwnerId": ID,
        "AvailabilityZone": "us-west-2b",
        "AvailabilityZoneId": "usw2-az2",
        "InstanceType": "p5.48xlarge",
        "InstancePlatform": "Linux/UNIX",
        "Tenancy": "default",
        "TotalInstanceCount": 16,
        "AvailableInstanceCount": 16,
        "State": "active",
        "EndDateType": "unlimited",
        "InstanceMatchCriteria": "targeted",
        "ReservationType": "default",
    } | changes
    return {key: value for key, value in answer.items() if value is not None}


def block(id: str = CR, **changes: Any) -> dict[str, Any]:
    """Return the same of a Capacity Block that is to come."""
    own = {
        "State": "scheduled",
        "ReservationType": "capacity-block",
        "EndDateType": "limited",
        "StartDate": STARTS,
        "EndDate": ENDS,
    }
    return odcr(id, **{**own, **changes})


def by_tags(option: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in option.items() if key != "reservation"} | {
        "reservation_tags": TAGS
    }


def plan_of(
    purchase: dict[str, Any], provisioner: str = "karpenter", **changes: Any
) -> ClusterPlan:
    pool = pool_document(purchase=purchase, provisioner=provisioner, role="reserved", **changes)
    return pools_plan(pool)


def account_with(*reservations: dict[str, Any]) -> Callable[[dict[str, Any]], Answer]:
    """Return EC2's answers in an account whose ``reservations`` have all tags."""
    fields = {
        "state": "State",
        "instance-match-criteria": "InstanceMatchCriteria",
        "instance-type": "InstanceType",
    }

    def answer(asked: dict[str, Any]) -> Answer:
        wanted = {
            fields[each["Name"]]: each["Values"]
            for each in asked.get("Filters", ())
            if each["Name"] in fields
        }
        ids = asked.get("CapacityReservationIds")
        kept = [
            each
            for each in reservations
            if all(each.get(field) in values for field, values in wanted.items())
            and (ids is None or each["CapacityReservationId"] in ids)
        ]
        return {"CapacityReservations": kept}

    return answer


def findings_of(plan: ClusterPlan, *answers: dict[str, Any], at: datetime = NOW) -> list[Finding]:
    return found(RESERVATIONS, plan, {DESCRIBE: account_with(*answers)}, at=at)


def worst(findings: list[Finding]) -> str:
    order = ["fail", "unknown", "warn", "pass"]
    return min((each.state for each in findings), key=order.index)


def evidence(findings: list[Finding]) -> str:
    return "; ".join(each.evidence for each in findings if each.state != "pass")


ODCR_FIELDS: list[tuple[str, Any, str, str]] = [
    ("InstanceType", "p5en.48xlarge", "fail", "p5en.48xlarge in the account, p5.48xlarge in"),
    ("AvailabilityZone", "us-west-2c", "fail", "us-west-2c (usw2-az2) in the account, us-west-2b"),
    (
        "AvailabilityZone",
        None,
        "unknown",
        "EC2 reports no AvailabilityZone; the plan needs us-west-2b",
    ),
    ("ReservationType", "capacity-block", "fail", "capacity-block in the account, default in"),
    ("InstancePlatform", "Windows", "fail", "Windows in the account, Linux/UNIX in the plan"),
    ("Tenancy", "dedicated", "fail", "dedicated in the account, default in the plan"),
    ("OutpostArn", "arn:outpost", "fail", "its instances are on an Outpost"),
    ("PlacementGroupArn", "arn:group", "fail", "only instances of that placement group"),
    ("Interruptible", True, "fail", "Interruptible is true"),
    ("State", "expired", "fail", "State is expired: nothing launches into it"),
    ("State", "cancelled", "fail", "State is cancelled"),
    ("State", "payment-failed", "fail", "State is payment-failed"),
    ("State", "unsupported", "fail", "State is unsupported"),
    ("State", "unavailable", "fail", "State is unavailable"),
    ("State", "scheduled", "warn", "State is scheduled: no node launches before it is active"),
    ("State", "assessing", "warn", "State is assessing: no node launches before it is active"),
    ("State", "delayed", "warn", "State is delayed: no node launches before it is active"),
    ("InstanceMatchCriteria", "open", "warn", "InstanceMatchCriteria is open"),
    ("OwnerId", "222233334444", "warn", "OwnerId is 222233334444"),
    ("LaunchStatus", "unlaunchable", "fail", "LaunchStatus is unlaunchable"),
    ("TotalInstanceCount", 12, "warn", "TotalInstanceCount is 12, the pools take 16"),
    ("TotalInstanceCount", 20, "warn", "4 are paid for and not used by this cluster"),
    ("AvailableInstanceCount", 9, "warn", "AvailableInstanceCount is 9 of 16"),
]


@pytest.mark.parametrize(("field", "value", "state", "text"), ODCR_FIELDS)
def test_the_field_that_differs_is_named_with_both_values(
    field: str, value: Any, state: str, text: str
) -> None:
    findings = findings_of(plan_of(ODCR), odcr(**{field: value}))
    assert worst(findings) == state
    assert text in evidence(findings)
    assert field in evidence(findings)
    assert all(each.fix for each in findings if each.state != "pass")


@pytest.mark.parametrize(
    ("changes", "at", "state", "text", "fix"),
    [
        (
            {"StartDate": STARTS + DAY},
            *(NOW, "fail", "StartDate is 2026-12-02T11:30:00Z in the account, ", ""),
        ),
        (
            {"EndDate": ENDS + 7 * DAY},
            *(NOW, "fail", "EndDate is 2026-12-15T11:30:00Z in the account, 2026-"),
            "set purchase.ends: 2026-12-15T11:30:00Z",
        ),
        ({"EndDate": None}, NOW, "unknown", "AWS reports no EndDate; the file has 2026-12-08", ""),
        ({"ReservationType": "default"}, NOW, "fail", "ReservationType is default in the", ""),
        ({"State": "payment-pending"}, NOW, "warn", "State is payment-pending: the purchase", ""),
        ({"State": "payment-failed"}, NOW, "fail", "State is payment-failed: nothing launches", ""),
        ({"TotalInstanceCount": 8}, NOW, "fail", "TotalInstanceCount is 8, the pools take 16", ""),
        (
            {},
            *(STARTS + DAY, "warn"),
            *("State is scheduled, to start 2026-12-01T11:30:00Z, which is over", ""),
        ),
    ],
)
def test_a_block_is_held_against_the_window_of_the_file(
    changes: dict[str, Any], at: datetime, state: str, text: str, fix: str
) -> None:
    findings = findings_of(plan_of(CAPACITY_BLOCK), block(**changes), at=at)
    assert worst(findings) == state
    assert text in evidence(findings)
    assert fix in str(findings[0].fix)


def test_a_node_group_is_not_made_before_its_reservation_is_active() -> None:
    """It is made with all of its nodes; Karpenter's pools only wait."""
    group = findings_of(plan_of(ODCR, "managed-node-group"), odcr(State="scheduled"))
    few = findings_of(plan_of(ODCR, "managed-node-group"), odcr(TotalInstanceCount=8))
    assert (worst(group), worst(few)) == ("fail", "fail")
    assert "deploy once it is active" in str(group[0].fix)


def test_a_reservation_may_be_too_small_where_on_demand_is_to_fill_the_rest() -> None:
    plan = plan_of(ODCR | {"spill": "on-demand"}, "managed-node-group")
    assert worst(findings_of(plan, odcr(TotalInstanceCount=8, AvailableInstanceCount=8))) == "warn"
    assert worst(findings_of(plan, odcr(OwnerId="222233334444"))) == "fail"


@pytest.mark.parametrize(
    ("ends", "state"), [(NOW + DAY, "warn"), (NOW, "fail"), (NOW - DAY, "fail")]
)
def test_the_end_of_a_limited_reservation_is_told(ends: datetime, state: str) -> None:
    findings = findings_of(plan_of(ODCR), odcr(EndDateType="limited", EndDate=ends))
    assert worst(findings) == state
    assert "EndDate is 2026-11-2" in evidence(findings)


def test_what_is_delivered_bit_by_bit_is_told_with_what_is_committed() -> None:
    committed = {
        "CommittedInstanceCount": 16,
        "CommitmentEndDate": NOW + 14 * DAY,
        "CommitmentDuration": 1209600,
    }
    answer = odcr(TotalInstanceCount=4, DeliveryPreference="incremental", CommitmentInfo=committed)
    text = "TotalInstanceCount is 4, delivered incrementally, 16 committed, the pools take 16"
    assert text in evidence(findings_of(plan_of(ODCR), answer))


# --- how it is found ----------------------------------------------------------------------------


def test_tags_that_find_nothing_fail() -> None:
    """Karpenter passes over them in silence, and no node ever comes."""
    (finding,) = findings_of(plan_of(by_tags(ODCR)))
    assert (finding.subject, finding.state) == (BY_TAGS, "fail")
    assert finding.evidence == (
        f"no capacity reservation in us-west-2 of account {ID} that the pool could launch into"
    )
    assert "aws ec2 create-tags --resources cr-… --tags Key=team,Value=training" in str(finding.fix)


def test_all_tags_are_asked_for_and_every_page_is_read() -> None:
    purchase = by_tags(ODCR) | {"reservation_tags": TAGS | {"stage": "one"}}
    pages: Told = [
        {"CapacityReservations": [], "NextToken": "more"},
        {"CapacityReservations": [odcr()]},
        NO_MORE,
    ]
    context, aws = make_context(plan_of(purchase), {DESCRIBE: pages})

    (finding,) = RESERVATIONS.run(context)

    assert finding.state == "pass"
    assert aws.parameters(DESCRIBE)[0] == {
        "Filters": [
            {"Name": "tag:team", "Values": ["training"]},
            {"Name": "tag:stage", "Values": ["one"]},
        ]
    }


RENEWAL = block("cr-2", StartDate=ENDS, EndDate=ENDS + 7 * DAY)
HALVES = [odcr(id, TotalInstanceCount=8, AvailableInstanceCount=8) for id in ("cr-1", "cr-2")]
SIXTEEN = "16 instances for 16 nodes, active"


@rows(
    "purchase, there, subject, state, evidence",
    {
        "what the pool takes it for": (ODCR, [odcr()], f"train: {CR}", "pass", f"{CR}: {SIXTEEN}"),
        "a block to come": (CAPACITY_BLOCK, [block()], f"train: {CR}", "pass", f"{CR}: 16"),
        "tags of another zone": (
            *(by_tags(ODCR), [odcr(AvailabilityZone="us-west-2c")], BY_TAGS, "fail"),
            f"found {CR}: AvailabilityZone is us-west-2c",
        ),
        "tags of another type as well": (
            *(by_tags(ODCR), [odcr(), odcr("cr-2", InstanceType="p5en.48xlarge")], BY_TAGS),
            *("pass", f"{CR}: {SIXTEEN}"),
        ),
        "tags of two halves": (
            *(by_tags(ODCR), [*HALVES, odcr("cr-0", State="expired")], BY_TAGS, "pass"),
            f"cr-1, cr-2: {SIXTEEN}",
        ),
        "tags of this block and the next": (
            *(by_tags(CAPACITY_BLOCK), [RENEWAL, block()], BY_TAGS, "pass"),
            f"{CR}: 16 instances for 16 nodes, scheduled",
        ),
        "tags of another block alone": (
            *(by_tags(CAPACITY_BLOCK), [RENEWAL], "train: cr-2", "fail", "StartDate is"),
        ),
    },
)
def test_a_reservation_is_found_by_its_id_or_tags_and_held_against_the_pool(
    purchase: dict[str, Any], there: list[dict[str, Any]], subject: str, state: str, evidence: str
) -> None:
    (finding,) = findings_of(plan_of(purchase), *there)
    assert (finding.subject, finding.state) == (subject, state)
    assert evidence in finding.evidence
    assert (finding.fix is None) == (state == "pass")


def test_what_is_wrong_with_a_whole_fleet_is_told_once() -> None:
    part = {"TotalInstanceCount": 2, "AvailableInstanceCount": 2, "InstanceMatchCriteria": "open"}
    fleet = [odcr(f"cr-{number}", **part) for number in range(8)]
    assert states(findings_of(plan_of(by_tags(ODCR)), *fleet)) == {
        "train: cr-0, cr-1, cr-2, cr-3, cr-4 and 3 more": "warn",
        BY_TAGS: "pass",
    }


def test_pools_that_share_a_reservation_need_the_sum_of_their_nodes() -> None:
    pool = pool_document(purchase=by_tags(ODCR), provisioner="karpenter", role="reserved")
    sharded = plan_of(by_tags(ODCR), nodes={"static": 8}, shards=4)
    (finding,) = findings_of(pools_plan(pool, pool | {"name": "tune"}), odcr())
    assert finding.subject == "train, tune: tags team=training"
    for findings in ([finding], findings_of(sharded, odcr())):
        assert "TotalInstanceCount is 16, the pools take 32" in evidence(findings)


def test_a_static_pool_fails_where_its_reservation_is_too_small() -> None:
    """Karpenter makes NodeClaims for the rest without end, and launches for no other pool."""
    static = plan_of(by_tags(ODCR), nodes={"static": 32})
    growing = plan_of(by_tags(ODCR), nodes={"max": 32})
    assert worst(findings_of(static, odcr())) == "fail"
    assert worst(findings_of(growing, odcr())) == "warn"


def test_blocks_with_the_same_tags_and_overlapping_windows_fail() -> None:
    """Karpenter fills one of them."""
    second = block("cr-2", StartDate=STARTS + DAY, EndDate=ENDS + DAY)
    findings = findings_of(plan_of(by_tags(CAPACITY_BLOCK)), block(), second)
    text = f"{CR} and cr-2 carry the same tags, and their windows overlap: one stays empty"
    assert states(findings)[BY_TAGS] == "fail"
    assert text in evidence(findings)


def test_an_id_that_ec2_does_not_know_fails_and_is_not_unknown() -> None:
    refusal = Refusal("InvalidCapacityReservationId.NotFound", "there is none")
    (finding,) = found(RESERVATIONS, plan_of(ODCR), {DESCRIBE: [refusal, NO_MORE]})
    assert (finding.state, finding.subject) == ("fail", f"train: {CR}")
    assert "describe-capacity-reservations --region us-west-2" in str(finding.fix)


@pytest.mark.parametrize("answer", [denied(DESCRIBE), THROTTLED])
def test_no_answer_is_unknown_and_no_other_pool_is_lost_by_it(answer: Refusal) -> None:
    other = "cr-0123456789abcdef1"
    pool = {"provisioner": "karpenter", "role": "reserved"}
    second = pool_document(name="other", purchase=ODCR | {"reservation": other}, **pool)
    plan = pools_plan(pool_document(purchase=ODCR, **pool), second)
    there = {"CapacityReservations": [odcr(other)]}
    first, found_other = found(RESERVATIONS, plan, {DESCRIBE: [answer, there]})
    assert (first.state, found_other.state) == ("unknown", "pass")
    assert DESCRIBE in first.evidence


def test_the_members_of_a_resource_group_are_the_reservations() -> None:
    plan = plan_of(
        {"option": "odcr", "resource_group": GROUP_ARN}, "managed-node-group", nodes={"max": 16}
    )
    members = [
        {
            "Identifier": {
                "ResourceArn": f"arn:aws:ec2:us-west-2:{ID}:capacity-reservation/{CR}",
                "ResourceType": "AWS::EC2::CapacityReservation",
            }
        }
    ]
    answers: dict[str, Told] = {
        GROUP: [{"Resources": [], "NextToken": "more"}, {"Resources": members}],
        DESCRIBE: {"CapacityReservations": [odcr()]},
    }
    context, aws = make_context(plan, answers)

    (finding,) = RESERVATIONS.run(context)

    assert finding.state == "pass"
    assert aws.parameters(GROUP)[0]["Group"] == GROUP_ARN
    assert aws.parameters(DESCRIBE)[0] == {"CapacityReservationIds": [CR]}
    (empty,) = found(RESERVATIONS, plan, {GROUP: {"Resources": []}, DESCRIBE: NO_MORE})
    assert empty.state == "fail"
    gone = Refusal("InvalidCapacityReservationId.NotFound", "cr-1 does not exist")
    (unseen,) = found(RESERVATIONS, plan, {GROUP: {"Resources": members}, DESCRIBE: gone})
    assert (unseen.state, "cr-1 does not exist" in unseen.evidence) == ("unknown", True)


@pytest.mark.parametrize(("server", "state"), [("u-p6e-gb200x72", "fail"), (None, "pass")])
def test_a_block_of_an_ultraserver_ends_earlier_than_the_plan_drains(
    server: str | None, state: str
) -> None:
    of_block = {"CapacityBlockId": "cb-1"} | ({"UltraserverType": server} if server else {})
    answers = {
        DESCRIBE: {"CapacityReservations": [block(CapacityBlockId="cb-1")]},
        BLOCKS: {"CapacityBlocks": [of_block]},
    }
    assert worst(found(RESERVATIONS, plan_of(CAPACITY_BLOCK), answers)) == state


def test_a_block_that_may_not_be_described_is_unknown_beside_its_reservation() -> None:
    answers = {
        DESCRIBE: {"CapacityReservations": [block(CapacityBlockId="cb-1")]},
        BLOCKS: denied(BLOCKS),
    }
    assert states(found(RESERVATIONS, plan_of(CAPACITY_BLOCK), answers)) == {
        f"train: {CR}: its block": "unknown",
        f"train: {CR}": "pass",
    }


# --- open ones that no pool names ---------------------------------------------------------------


def unnamed(id: str = "cr-0fedcba9876543210", **changes: Any) -> dict[str, Any]:
    """Return EC2's description of an open reservation: four instances, of which one runs."""
    counts = {"TotalInstanceCount": 4, "AvailableInstanceCount": 3}
    return odcr(id, **{"InstanceMatchCriteria": "open", **counts, **changes})


def burst(**changes: Any) -> dict[str, Any]:
    """Return an On-Demand pool of Karpenter."""
    return pool_document(**{"provisioner": "karpenter", "role": "burst", **changes})


@pytest.mark.parametrize(
    "pool",
    [pool_document(), pool_document(provisioner="self-managed"), burst()],
    ids=["managed group", "self-managed group", "Karpenter, no pool names a reservation"],
)
def test_an_open_reservation_that_nodes_launch_into_passes(pool: dict[str, Any]) -> None:
    (finding,) = findings_of(pools_plan(pool), unnamed())
    assert (finding.state, finding.fix) == ("pass", None)
    assert finding.subject == "open, named by no pool: cr-0fedcba9876543210"
    assert finding.evidence == (
        "3 of 4 p5.48xlarge in us-west-2b are free, 165.12 USD/hour at the price of 2025-09-01; "
        "train: up to 16 nodes launch into it"
    )


@pytest.mark.parametrize(
    ("pools", "why"),
    [
        (
            [burst(), burst(name="kept", role="reserved", purchase=ODCR)],
            "train: pool kept names a reservation, and Karpenter then launches into named ones "
            "alone; kept: it launches into the reservation that it names",
        ),
        (
            [burst(provisioner="auto-mode"), burst(provisioner="auto-mode", name="b", **BLOCK)],
            "train: pool b names a reservation, and EKS Auto Mode then launches into named ones "
            "alone",
        ),
        ([HYPERPOD_POOL], "hp: SageMaker launches its nodes, and uses no reservation of EC2"),
        ([burst(purchase=SPOT)], "train: Spot nodes use no reservation"),
        ([burst(zones=["us-west-2c"])], "train: its nodes are in us-west-2c"),
        (
            [pool_document(placement_group=True)],
            "train: its placement group is filled by reservations that were made in it alone",
        ),
    ],
    ids=["Karpenter", "Auto Mode", "HyperPod", "Spot", "zone", "placement group"],
)
def test_an_open_reservation_that_idles_is_listed_with_its_price_and_what_to_do(
    pools: list[dict[str, Any]], why: str
) -> None:
    findings = findings_of(pools_plan(*pools), odcr(), unnamed())
    (finding,) = (each for each in findings if each.subject.startswith("open"))
    assert finding.state == "warn"
    assert "3 of 4 p5.48xlarge in us-west-2b are free, 165.12 USD/hour" in finding.evidence
    assert why in finding.evidence
    assert "purchase: {option: odcr, reservation: cr-0fedcba9876543210}" in str(finding.fix)
    assert "cancel-capacity-reservation" in str(finding.fix)


def test_nodes_of_a_fallback_are_those_that_launch_into_it() -> None:
    pool = burst(purchase=SPOT | {"fallback": "on-demand", "fallback_max": 2})
    (finding,) = findings_of(pools_plan(pool), unnamed())
    assert (finding.state, "up to 2 nodes launch into it" in finding.evidence) == ("warn", True)
    assert str(finding.fix).startswith("raise the pools' nodes, or cancel it unless")


@pytest.mark.parametrize(
    "changes",
    [
        {"InstanceMatchCriteria": "targeted"},
        {"State": "expired"},
        {"InstanceType": "p4d.24xlarge"},
        {"AvailableInstanceCount": 0},
        {"InstancePlatform": "Windows"},
        {"Tenancy": "dedicated"},
        {"PlacementGroupArn": "arn:group"},
        {"OutpostArn": "arn:outpost"},
        {"OwnerId": "222233334444"},
        {"UnusedReservationBillingOwnerId": "222233334444"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_what_nodes_cannot_use_or_others_pay_for_is_not_listed(changes: dict[str, Any]) -> None:
    assert findings_of(pools_plan(burst(purchase=SPOT)), unnamed(**changes)) == []


def test_open_reservations_of_a_type_and_zone_are_one_finding() -> None:
    fleet = [unnamed(f"cr-{number}") for number in range(8)]
    other = unnamed("cr-9", AvailabilityZone="us-west-2c", AvailabilityZoneId="usw2-az3")
    findings = findings_of(pools_plan(burst(purchase=SPOT)), *fleet, other)
    first = "open, named by no pool: cr-0, cr-1, cr-2, cr-3, cr-4 and 3 more"
    assert states(findings) == {first: "warn", "open, named by no pool: cr-9": "warn"}
    assert "24 of 32 p5.48xlarge in us-west-2b are free, 1,320.96 USD/hour" in evidence(findings)


def test_no_reservation_is_called_unnamed_while_a_named_one_is_unknown() -> None:
    """It may be the one that the pool names by its tags."""
    plan = plan_of(by_tags(ODCR))
    answers: Told = [THROTTLED, {"CapacityReservations": [unnamed()]}]
    (finding,) = found(RESERVATIONS, plan, {DESCRIBE: answers})
    assert finding.state == "unknown"
