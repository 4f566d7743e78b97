"""Regions and zones of other owners' subnets, as far as their program knows them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ultrascale import catalog, config
from ultrascale.catalog import regions
from ultrascale.config.network import (
    network_has_two_zones,
    zones_are_named_one_way,
    zones_are_of_the_region,
)
from ultrascale.frozen import Frozen

_ANY_REGION = "us-east-1"


class ZoneNames(Frozen, kw_only=False):
    """Zones of a Region, for subnets whose zones CloudFormation alone knows."""

    region: str  # The Region by which the arguments are judged
    by_zone: Mapping[str, str]  # Zone in the plan, by the zone of the caller's subnet


def name_zones(
    zones: Sequence[str], *, region: str | None, instance_types: Iterable[str] = ()
) -> ZoneNames:
    """Return names of zones for a plan, and their Region.

    A stack may leave its Region open, and a zone may be a token of CloudFormation or the CDK's
    dummy before it has looked a VPC up. Such a Region becomes one that surely sells the types, and
    such zones become as many others of the Region.

    Args:
        zones: Zones of the caller's subnets, or other texts that tell them apart.
        region: The Region, None where the stack leaves it open.
        instance_types: Instance types that the arguments name.
    """
    stated = [zone for zone in dict.fromkeys(zones) if _is_stated(zone)]
    chosen = region or next(filter(None, map(_region_of, stated)), None)
    chosen = chosen or _selling(instance_types)
    letters = regions.REGIONS[chosen].zone_letters if chosen in regions.REGIONS else ""
    free = [f"{chosen}{letter}" for letter in letters or "abcdef"]
    by_zone = {zone: zone for zone in stated}
    left = [zone for zone in free if zone not in by_zone] or free
    for number, zone in enumerate(zone for zone in dict.fromkeys(zones) if zone not in by_zone):
        by_zone[zone] = left[number % len(left)]
    return ZoneNames(chosen, by_zone)


def zone_mistakes(
    network: config.Network, identity: config.Identity, *, own: bool
) -> Iterator[config.Mistake]:
    """Yield the mistakes in the zones of another owner's network.

    Args:
        network: The network.
        identity: The cluster's Region.
        own: Whether they are all zones of the control plane.
    """
    if own:
        yield from network_has_two_zones(network)
    yield from zones_are_of_the_region(network, identity)
    yield from zones_are_named_one_way(network)


def partition_of(region: str | None) -> str:
    """Return the partition of a Region; ``aws`` where it is open or unknown."""
    known = None if region is None else regions.REGIONS.get(region)
    return "aws" if known is None else known.partition


def _is_stated(zone: str) -> bool:
    """Return whether a zone is real: no token, and no dummy of the CDK's first synthesis."""
    return "${" not in zone and not zone.startswith("dummy")


def _region_of(zone: str) -> str | None:
    """Return the Region of a zone by its name or its id; None where neither says."""
    for region in regions.REGIONS.values():
        if zone.startswith(region.name) and len(zone) == len(region.name) + 1:
            return region.name
        if region.zone_id_prefix and zone.startswith(f"{region.zone_id_prefix}-az"):
            return region.name
    return None


def _selling(instance_types: Iterable[str]) -> str:
    known = [name for name in instance_types if name in catalog.INSTANCE_TYPES]
    sold = (
        region
        for region in (_ANY_REGION, *regions.REGIONS)
        if regions.REGIONS[region].partition == "aws"
        and all(regions.offered(name, region) is not False for name in known)
    )
    return next(sold, _ANY_REGION)
