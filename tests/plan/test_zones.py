"""Regions and zones of subnets that others make."""

from collections.abc import Mapping

from tests.support.cases import for_each
from ultrascale import config
from ultrascale.plan.zones import name_zones, partition_of, zone_mistakes

IDENTITY = config.Identity(name="own", region="us-west-2")


def test_zones_that_nobody_knows_stay_apart() -> None:
    zones = name_zones(["${Token[A]}", "dummy1b", "${Token[A]}"], region="us-west-2")

    assert len(set(zones.by_zone.values())) == 2


def test_a_stack_without_region_is_judged_where_its_zone_is() -> None:
    assert name_zones(["eu-north-1b"], region=None).region == "eu-north-1"


def test_a_zone_id_tells_the_region() -> None:
    assert name_zones(["usw2-az4"], region=None).region == "us-west-2"


def test_a_stack_without_region_is_judged_where_its_type_is_sold() -> None:
    zones = name_zones(["${Token[A]}"], region=None, instance_types=["trn2.48xlarge"])

    assert zones.region != "us-east-1"


@for_each({"known": ("us-gov-west-1", "aws-us-gov"), "open": (None, "aws")})
def test_a_region_has_its_partition(region: str | None, partition: str) -> None:
    assert partition_of(region) == partition


ZONES: Mapping[str, tuple[tuple[str, ...], list[config.KeyPath]]] = {
    "one of several": (("us-west-2a",), []),
    "one by its id": (("usw2-az4",), []),
    "of another Region": (("us-west-2a", "eu-west-1a"), [("zones", 1)]),
    "by name and by id": (("us-west-2a", "usw2-az4"), [("zones",)]),
}


@for_each(ZONES)
def test_zones_of_a_part_of_a_network_are_judged(
    zones: tuple[str, ...], places: list[config.KeyPath]
) -> None:
    found = zone_mistakes(config.Network(zones=zones), IDENTITY, own=False)

    assert [each.at for each in found] == places


def test_a_control_plane_lies_in_two_zones() -> None:
    (mistake,) = zone_mistakes(config.Network(zones=("us-west-2a",)), IDENTITY, own=True)

    assert mistake.wrong == "EKS needs subnets in two zones"
