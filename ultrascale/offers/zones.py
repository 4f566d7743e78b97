"""Places of offers: AWS names their zones by name, by id or by both."""

from msgspec.structs import replace

from ultrascale.account.zones import Zones
from ultrascale.catalog.regions import is_zone_id
from ultrascale.offers.model import Offer, Part


def placed(offer: Offer, zones: Zones) -> Offer:
    """Return ``offer`` with name and id of each of its zones, where ``zones`` has them."""
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
    """Return whether all parts of ``offer`` are, or may be, in ``wanted`` zones."""
    places = [(part.zone, part.zone_id) for part in offer.parts] or [(offer.zone, offer.zone_id)]
    return not wanted or all(_may_be(name, zone_id, wanted) for name, zone_id in places)


def _may_be(name: str | None, zone_id: str | None, wanted: tuple[str, ...]) -> bool:
    if {name, zone_id} & set(wanted):
        return True
    # The user may have named this zone by the name or id that AWS left out.
    by_id = any(is_zone_id(zone) for zone in wanted)
    by_name = not all(is_zone_id(zone) for zone in wanted)
    return (zone_id is None and by_id) or (name is None and by_name)


def _placed_part(part: Part, zones: Zones) -> Part:
    name, zone_id = _both(part.zone, part.zone_id, zones)
    return replace(part, zone=name, zone_id=zone_id)


def _both(name: str | None, zone_id: str | None, zones: Zones) -> tuple[str | None, str | None]:
    zone = zones.get(name or zone_id or "")
    return (name, zone_id) if zone is None else (zone.name, zone.id)
