"""Mistakes in how a pool is paid for."""

from typing import Any

import pytest

from tests.support.config_documents import TWO_ZONES, mistakes_in, with_pool
from tests.support.pools import (
    CAPACITY_BLOCK,
    HYPERPOD_POOL,
    ODCR,
    SPOT,
    SYSTEM_POOL,
    TRAINING_PLAN,
    make_document,
)

BAD: dict[str, tuple[dict[str, Any], str]] = {
    "misspelt option": (
        with_pool(purchase={"option": "capacity_block"}),
        "pools[train].purchase.option: unknown value, got 'capacity_block'; "
        "did you mean capacity-block?",
    ),
    "training plan outside HyperPod": (
        with_pool(purchase=TRAINING_PLAN),
        "pools[train].purchase.option: managed-node-group pools cannot be bought this way: "
        "a training plan reserves instances of SageMaker, not of EC2, got 'training-plan'; "
        "use option: capacity-block or provisioner: hyperpod with option: training-plan",
    ),
    "Spot on HyperPod": (
        with_pool(provisioner="hyperpod", purchase=SPOT),
        "pools[train].purchase.option: hyperpod pools cannot be bought this way: AWS's pages "
        "disagree "
        "on how HyperPod's Spot groups scale, so they are left out, got 'spot'; "
        "use provisioner: karpenter with option: spot",
    ),
    "Spot node group of one type": (
        with_pool(purchase=SPOT),
        "pools[train].instance_types: a Spot node group of fewer than 3 instance types, "
        "got [p5.48xlarge]; add types of like size, or use karpenter",
    ),
    "fallback of a node group": (
        with_pool(provisioner="self-managed", purchase=SPOT | {"fallback": "on-demand"}),
        "pools[train].purchase.fallback: self-managed pools have no weights to fall back by, "
        "got 'on-demand'; add an on-demand pool beside this one",
    ),
    "fallback of a static pool": (
        with_pool(
            provisioner="auto-mode",
            purchase=SPOT | {"fallback": "on-demand"},
            nodes={"static": 2},
        ),
        "pools[train].purchase.fallback: a pool of static size has no weight to fall back by, "
        "got 'on-demand'; use nodes.max instead of nodes.static",
    ),
    "key of another option": (
        with_pool(purchase={"option": "on-demand", "fallback": "none"}),
        "pools[train].purchase.fallback: unknown key 'fallback'; known: option",
    ),
    "spill outside node groups": (
        with_pool(provisioner="auto-mode", purchase=ODCR | {"spill": "on-demand"}),
        "pools[train].purchase.spill: auto-mode pools never spill, got 'on-demand'; "
        "add an on-demand pool beside this one",
    ),
    "no reservation": (
        with_pool(purchase={"option": "odcr"}),
        "pools[train].purchase: no reservation is named, got {option: odcr}; "
        "add reservation or resource_group",
    ),
    "reservation named twice": (
        with_pool(provisioner="auto-mode", purchase=ODCR | {"reservation_tags": {"team": "a"}}),
        "pools[train].purchase: a reservation named in 2 ways, got {option: odcr, reservation: "
        "cr-0123456789abcdef0, reservation_tags: {team: a}}; "
        "keep reservation or reservation_tags",
    ),
    "reservation id of no length that EC2 gives": (
        with_pool(purchase={"option": "odcr", "reservation": "cr-0123456789"}),
        "pools[train].purchase.reservation: not the id of a capacity reservation, "
        "got 'cr-0123456789'; copy it from `aws ec2 describe-capacity-reservations`, "
        "such as cr-0123456789abcdef0",
    ),
    "training plan of three years": (
        with_pool(
            provisioner="hyperpod",
            purchase=TRAINING_PLAN | {"ends": "2029-12-01T11:30:00Z"},
            nodes={"static": 8},
        ),
        "pools[train].purchase.ends: a window of 1096 days: training plans last 1 to 182 days, "
        "got '2029-12-01T11:30:00Z'; "
        "copy both from the purchase, or add extended: true if it was extended",
    ),
    "extended training plan of three years": (
        with_pool(
            provisioner="hyperpod",
            purchase=TRAINING_PLAN | {"ends": "2029-12-01T11:30:00Z", "extended": True},
            nodes={"static": 8},
        ),
        "pools[train].purchase.ends: a window of 1096 days: training plans last 1 to 364 days, "
        "got '2029-12-01T11:30:00Z'; copy both from the purchase",
    ),
    "training plan with an end of its own": (
        with_pool(
            provisioner="hyperpod",
            purchase=TRAINING_PLAN | {"ends": "2026-12-08T03:17:09Z"},
            nodes={"static": 8},
        ),
        "pools[train].purchase.ends: every training plan ends at 11:30 UTC, "
        "got '2026-12-08T03:17:09Z'; copy it from the purchase",
    ),
    "training plan of a type without any": (
        with_pool(
            provisioner="hyperpod",
            purchase=TRAINING_PLAN,
            instance_types=["g5.12xlarge"],
            nodes={"static": 8},
        ),
        "pools[train].instance_types[0]: a type that no training plan is sold for, got "
        "'g5.12xlarge'; "
        "use on-demand, or another type",
    ),
    "Trainium2 as Spot": (
        with_pool(
            provisioner="auto-mode",
            purchase={"option": "spot"},
            instance_types=["trn2.48xlarge"],
            nodes={"max": 8},
        ),
        "pools[train].instance_types[0]: a type that EC2 does not sell as Spot, got "
        "'trn2.48xlarge'; "
        "use capacity-block or odcr",
    ),
    "bad reservation id": (
        with_pool(purchase={"option": "odcr", "reservation": "cr-XYZ"}),
        "pools[train].purchase.reservation: not the id of a capacity reservation, got "
        "'cr-XYZ'; copy "
        "it from `aws ec2 describe-capacity-reservations`, such as cr-0123456789abcdef0",
    ),
    "tags on a node group": (
        with_pool(purchase={"option": "odcr", "reservation_tags": {"team": "a"}}),
        "pools[train].purchase.reservation_tags: managed-node-group pools cannot find their "
        "odcr by "
        "reservation_tags, got {team: a}; use reservation or resource_group",
    ),
    "no tag": (
        with_pool(provisioner="auto-mode", purchase={"option": "odcr", "reservation_tags": {}}),
        "pools[train].purchase.reservation_tags: empty, got {}; write at least one",
    ),
    "resource group of another Region": (
        with_pool(
            purchase={
                "option": "odcr",
                "resource_group": "arn:aws:resource-groups:us-east-1:111122223333:group/g",
            }
        ),
        "pools[train].purchase.resource_group: an ARN outside us-west-2 of partition aws, got "
        "'arn:aws:resource-groups:us-east-1:111122223333:group/g'; "
        "name one of the cluster's Region",
    ),
    "reservation in two zones": (
        with_pool(purchase=ODCR, zones=TWO_ZONES),
        "pools[train].zones: a capacity reservation is in one zone, got [us-west-2a, us-west-2b]; "
        "keep the zone that it was bought in",
    ),
    "block in all zones": (
        with_pool(purchase=CAPACITY_BLOCK, zones=None),
        "pools[train].zones: a Capacity Block is in one zone, "
        "got [us-west-2a, us-west-2b, us-west-2c]; keep the zone that it was bought in",
    ),
    "block of two types": (
        with_pool(purchase=CAPACITY_BLOCK, instance_types=["p5.48xlarge", "p5en.48xlarge"]),
        "pools[train].instance_types: a Capacity Block is of one instance type, "
        "got [p5.48xlarge, p5en.48xlarge]; keep the type that was bought",
    ),
    "block of a type that has none": (
        with_pool(purchase=CAPACITY_BLOCK, instance_types=["g6e.48xlarge"]),
        "pools[train].instance_types[0]: a type that no Capacity Block is sold for, "
        "got 'g6e.48xlarge'; use odcr or on-demand",
    ),
    "block in a placement group": (
        with_pool(purchase=CAPACITY_BLOCK, placement_group=True),
        "pools[train].placement_group: a Capacity Block cannot be in a placement group, got true; "
        "leave it out; a block is in one UltraCluster anyway",
    ),
    "block in shards": (
        with_pool(purchase=CAPACITY_BLOCK, shards=2),
        "pools[train].shards: a Capacity Block serves one pool, got 2; "
        "leave it out, and add a pool for each block",
    ),
    "block without its end": (
        with_pool(purchase={k: v for k, v in CAPACITY_BLOCK.items() if k != "ends"}),
        "pools[train].purchase.ends: missing; add it",
    ),
    "window that ends first": (
        with_pool(purchase=CAPACITY_BLOCK | {"ends": "2026-12-01T11:30:00Z"}),
        "pools[train].purchase.ends: not after starts, got '2026-12-01T11:30:00Z'; "
        "copy both from the purchase",
    ),
    "time without a zone": (
        with_pool(purchase=CAPACITY_BLOCK | {"starts": "2026-12-01T11:30:00"}),
        "pools[train].purchase.starts: a time without its zone, got '2026-12-01T11:30:00'; "
        "add Z for UTC, as 2026-12-01T11:30:00Z",
    ),
    "time in words": (
        with_pool(purchase=CAPACITY_BLOCK | {"starts": "Monday"}),
        "pools[train].purchase.starts: not an ISO 8601 time, got 'Monday'; "
        "write it as 2026-12-01T11:30:00Z",
    ),
    "training plan in two zones": (
        make_document(pools=[SYSTEM_POOL, HYPERPOD_POOL | {"zones": TWO_ZONES}]),
        "pools[hp].zones: a training plan is in one zone, got [us-west-2a, us-west-2b]; "
        "keep the zone that it was bought in",
    ),
    "bad plan ARN": (
        with_pool(provisioner="hyperpod", purchase=TRAINING_PLAN | {"plan": "baseline"}),
        "pools[train].purchase.plan: not the ARN of a training plan, got 'baseline'; "
        "write arn:aws:sagemaker:REGION:ACCOUNT:training-plan/NAME",
    ),
}


@pytest.mark.parametrize(("document", "line"), BAD.values(), ids=list(BAD))
def test_a_mistake_is_named_with_its_key_its_value_and_a_way_out(
    document: dict[str, Any], line: str
) -> None:
    assert line in mistakes_in(document)
