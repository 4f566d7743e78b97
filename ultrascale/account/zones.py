"""Availability Zones of an account, by name and by id.

Each account has its own names, such as ``us-east-2b``; ids are the same in all accounts.

Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeAvailabilityZones.html
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ultrascale.account.account import Account

ACTION = "ec2:DescribeAvailabilityZones"
"""The IAM action that `zones_of` needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """A zone of a Region.

    Attributes:
        name: Its name in this account.
        id: Its id in all accounts.
        kind: ``availability-zone``, ``local-zone`` or ``wavelength-zone``.
        opted_in: Whether the account may launch instances in it.
        state: ``available``, or a problem.
        group: Group of zones that an account opts in to together.
    """

    name: str
    id: str
    kind: str
    opted_in: bool
    state: str
    group: str

    def __str__(self) -> str:
        return f"{self.name} ({self.id})"


Zones = Mapping[str, Zone]
"""Zones by their names and by their ids."""


def zones_of(account: "Account", region: str | None = None) -> Zones:
    """Return the zones of a Region, those included that the account has not opted in to.

    Args:
        account: The account.
        region: The Region; None for the account's.

    Raises:
        UnansweredError: EC2 did not answer.
    """
    zones = account.ask_all(
        account.client("ec2", region).describe_availability_zones,
        lambda page: page["AvailabilityZones"],
        AllAvailabilityZones=True,
    )
    described = [
        Zone(
            name=zone["ZoneName"],
            id=zone["ZoneId"],
            kind=zone["ZoneType"],
            opted_in=zone.get("OptInStatus") != "not-opted-in",
            state=zone["State"],
            group=zone.get("GroupName", zone["ZoneName"]),
        )
        for zone in zones
    ]
    return {key: zone for zone in described for key in (zone.name, zone.id)}
