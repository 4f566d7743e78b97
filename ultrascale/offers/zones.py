"""Names and ids of a Region's zones, which AWS's answers mix."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ultrascale.account import Account
from ultrascale.catalog.regions import is_zone_id
from ultrascale.offers.model import Offer, Part

ACTION = "ec2:DescribeAvailabilityZones"
_OPT_IN = "not-opted-in"


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """A zone, by both of its names.

    Attributes:
        name: Its name in this account.
        id: Its id, the same in every account.
        group: The group of zones that an account opts in to with it.
        opted_in: Whether the account may use it: a Local Zone has to be opted in to.
    """

    name: str
    id: str
    group: str
    opted_in: bool


# By names and ids.
Zones = Mapping[str, Zone]


def zones_of(account: Account, region: str) -> Zones:
    """Return the zones of ``region``, Local Zones too, by name and by id.

    Raises:
        UnansweredError: AWS does not say.
    """
    told = account.ask(
        account.client("ec2", region).describe_availability_zones, AllAvailabilityZones=True
    )["AvailabilityZones"]
    zones = [
        Zone(
            name=each["ZoneName"],
            id=each["ZoneId"],
            group=each.get("GroupName", each["ZoneName"]),
            opted_in=each["OptInStatus"] != _OPT_IN,
        )
        for each in told
    ]
    return {key: zone for zone in zones for key in (zone.name, zone.id)}


def placed(offer: Offer, zones: Zones) -> Offer:
    """Return ``offer`` with both names of its zones, as far as ``zones`` tell them."""
    zone = zones.get(offer.zone or offer.zone_id or "")
    name, zone_id = _both(offer.zone, offer.zone_id, zones)
    notes = offer.notes
    if zone is not None and not zone.opted_in:
        notes += (
            f"opt in to {zone.name} first: `aws ec2 modify-availability-zone-group --region "
            f"{offer.region} --group-name {zone.group} --opt-in-status opted-in`",
        )
    parts = tuple(_placed_part(part, zones) for part in offer.parts)
    return replace(offer, zone=name, zone_id=zone_id, parts=parts, notes=notes)


def is_in(offer: Offer, wanted: tuple[str, ...]) -> bool:
    """Return whether all of ``offer`` is in ``wanted`` zones, or may be."""
    places = [(part.zone, part.zone_id) for part in offer.parts] or [(offer.zone, offer.zone_id)]
    return not wanted or all(_may_be(name, zone_id, wanted) for name, zone_id in places)


def _may_be(name: str | None, zone_id: str | None, wanted: tuple[str, ...]) -> bool:
    if {name, zone_id} & set(wanted):
        return True
    # What is wanted by the name that AWS left out may be this zone.
    by_id = any(is_zone_id(each) for each in wanted)
    by_name = not all(is_zone_id(each) for each in wanted)
    return (zone_id is None and by_id) or (name is None and by_name)


def _placed_part(part: Part, zones: Zones) -> Part:
    name, zone_id = _both(part.zone, part.zone_id, zones)
    return replace(part, zone=name, zone_id=zone_id)


def _both(name: str | None, zone_id: str | None, zones: Zones) -> tuple[str | None, str | None]:
    zone = zones.get(name or zone_id or "")
    return (name, zone_id) if zone is None else (zone.name, zone.id)
