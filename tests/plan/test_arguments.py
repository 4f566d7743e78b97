"""Arguments of programs are judged by the rules of the cluster file, in the program's own words."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.cases import for_each
from ultrascale.errors import ArgumentError
from ultrascale.plan.arguments import (
    NAME,
    Part,
    Surroundings,
    beside_others,
    moment,
    name_zones,
    plan_arguments,
    substituted,
)
from ultrascale.plan.model import ClusterPlan, PoolPlan

BLOCK = {
    "option": "capacity-block",
    "reservation": "cr-0123456789abcdef0",
    "starts": "2026-12-01T11:30:00Z",
    "ends": "2026-12-02T11:30:00Z",
}


def plan(
    keys: Mapping[str, Any],
    *,
    zones: Sequence[str] = ("us-west-2a",),
    region: str | None = "us-west-2",
    at: tuple[str | int, ...] = ("pools", 0),
    mistakes: Sequence[str] = (),
    vpc_cidr: str | None = None,
) -> ClusterPlan:
    """Return the plan of a cluster with one part, of which the test states some keys."""
    pool: dict[str, Any] = {
        "name": "p5",
        "provisioner": "managed-node-group",
        "instance_types": ["p5.48xlarge"],
        "nodes": {"max": 4},
    }
    stated = {**pool, **keys} if at[0] == "pools" else {**keys}
    names = name_zones(zones, region=region, instance_types=stated.get("instance_types", ()))
    if at[0] == "pools":
        stated["zones"] = [*names.by_zone.values()]
    part = Part(
        at=at,
        keys=stated,
        names={
            ("instance_types", 0): "instance_type",
            ("purchase",): "block",
            ("zones",): "subnets",
        },
    )
    return plan_arguments(
        [part],
        surroundings=Surroundings(source="App/P5", region=region, vpc_cidr=vpc_cidr),
        zones=names,
        mistakes=mistakes,
    )


def refused(keys: Mapping[str, Any], **others: Any) -> tuple[str, ...]:
    with pytest.raises(ArgumentError) as caught:
        plan(keys, **others)
    return caught.value.mistakes


def the_pool(keys: Mapping[str, Any], **others: Any) -> PoolPlan:
    (pool,) = plan(keys, **others).pools
    return pool


def test_a_pool_is_planned_as_from_a_cluster_file() -> None:
    pool = the_pool({"purchase": BLOCK})

    assert pool.efa_interfaces == 32
    assert pool.window is not None
    assert pool.window.usable_until == datetime(2026, 12, 2, 10, 50, tzinfo=UTC)


def test_every_mistake_is_told_at_once_by_the_name_of_its_argument() -> None:
    mistakes = refused(
        {"instance_types": ["p5.48xlrge"], "efa": "al", "purchase": {**BLOCK, "reservation": "cr"}},
        mistakes=["cluster.vpc: not known; add it"],
    )

    assert {line.removeprefix("App/P5: ").partition(":")[0] for line in mistakes} == {
        "cluster.vpc",
        "instance_type",
        "block.reservation",
        "efa",
    }
    assert mistakes[1].endswith("unknown instance type 'p5.48xlrge'; did you mean p5.48xlarge?")


REFUSED: Mapping[str, tuple[Mapping[str, Any], Sequence[str], str]] = {
    "EFA over two zones": (
        {},
        ("us-west-2a", "us-west-2b"),
        "App/P5: subnets: a type with EFA in a pool of several zones, whose nodes get none, "
        "got [us-west-2a, us-west-2b]; keep one zone, or write efa: none",
    ),
    "a zone of another Region": (
        {},
        ("eu-west-1a",),
        "App/P5: subnets: not a zone of us-west-2, got 'eu-west-1a'; write its name, such as "
        "us-west-2a, or its zone id",
    ),
    "more nodes than a group has": (
        {"nodes": {"max": 900}, "instance_types": ["m7g.large"]},
        ("us-west-2a",),
        "App/P5: nodes.max: more nodes than the 450 that EKS lets a managed node group have, "
        "got 900; make 2 node pools of 450 nodes each",
    ),
    "a block of a type without blocks": (
        {"purchase": BLOCK, "instance_types": ["m7g.large"]},
        ("us-west-2a",),
        "App/P5: instance_type: a type that no Capacity Block is sold for, got 'm7g.large'; use "
        "odcr or on-demand",
    ),
}


@for_each(REFUSED)
def test_rules_of_the_file_judge_arguments(
    keys: Mapping[str, Any], zones: Sequence[str], line: str
) -> None:
    assert refused(keys, zones=zones) == (line,)


def test_nothing_is_said_of_what_is_not_an_argument() -> None:
    """The ranges of the caller's VPC, and the nodes of the system pods, are not known."""
    assert the_pool({"nodes": {"static": 450}, "instance_types": ["m7g.large"]}).max_nodes == 450


def test_a_large_pool_asks_no_cache_of_names_that_nobody_runs() -> None:
    pool = the_pool({"nodes": {"static": 5000}, "provisioner": "self-managed"})

    assert pool.name_servers == ()


def test_the_range_of_the_vpc_is_kept_clear_of_services() -> None:
    at = ("kubernetes",)
    mistakes = refused(
        {"service_cidr": "10.1.0.0/16"},
        at=at,
        vpc_cidr="10.1.0.0/16",
        zones=("us-west-2a", "us-west-2b"),
    )

    assert mistakes == (
        "App/P5: service_cidr: overlaps the VPC's range 10.1.0.0/16, got '10.1.0.0/16'; choose a "
        "free range",
    )


class TestZones:
    def test_zones_that_nobody_knows_stay_apart(self) -> None:
        zones = name_zones(["${Token[A]}", "dummy1b", "${Token[A]}"], region="us-west-2")

        assert len(set(zones.by_zone.values())) == 2

    def test_a_stack_without_region_is_judged_where_its_zone_is(self) -> None:
        assert name_zones(["eu-north-1b"], region=None).region == "eu-north-1"

    def test_a_zone_id_tells_the_region(self) -> None:
        assert name_zones(["usw2-az4"], region=None).region == "us-west-2"

    def test_a_stack_without_region_is_judged_where_its_type_is_sold(self) -> None:
        pool = the_pool({"instance_types": ["trn2.48xlarge"]}, region=None, zones=["${Token[A]}"])

        assert pool.efa_interfaces == 16


def test_names_that_cloudformation_makes_up_take_the_place_of_their_stand_in() -> None:
    at = ("observability",)
    slo = {"write_latency_slo": {"threshold_ms": 500, "goal_percent": 99}}
    found = plan(slo, at=at, zones=("us-west-2a", "us-west-2b")).observability
    assert found is not None
    assert found.write_latency is not None

    canary = substituted(found.write_latency, {NAME: "${Token[Name]}"})

    assert NAME not in repr(canary)
    assert canary.objective.name == "${Token[Name]}-writes-500ms"


def test_the_cni_stays_off_subnets_of_neighbours() -> None:
    """In a VPC of others it would take addresses of every subnet with a certain tag."""
    zones = ("us-west-2a", "us-west-2b")
    addons = plan({}, at=("kubernetes",), zones=zones).control_plane.node_addons

    (cni,) = (beside_others(addon) for addon in addons if addon.name == "vpc-cni")
    (before,) = (addon for addon in addons if addon.name == "vpc-cni")

    env: Any = cni.configuration["env"]
    known: Any = before.configuration["env"]
    assert env == {**known, "ENABLE_SUBNET_DISCOVERY": "false"}


@for_each(
    {
        "with a zone": (datetime(2026, 12, 1, 11, 30, tzinfo=UTC), "2026-12-01T11:30:00Z"),
        "text": ("2026-12-01T11:30:00Z", "2026-12-01T11:30:00Z"),
    }
)
def test_moments_are_written_as_in_a_file(value: datetime | str, text: str) -> None:
    assert moment(value) == text


def test_a_datetime_without_a_zone_is_refused() -> None:
    """It would be taken for UTC, hours off the block that was bought."""
    naive = moment(datetime(2026, 12, 1, 11, 30))
    (line,) = refused({"purchase": {**BLOCK, "starts": naive}})

    assert line.startswith("App/P5: block.starts: ")
