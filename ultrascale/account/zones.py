"""Availability Zones of an account, by name and by id.

Each account has its own names, such as ``us-east-2b``; ids are the same in all accounts.

Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeAvailabilityZones.html
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ultrascale.frozen import Frozen

if TYPE_CHECKING:
    from ultrascale.account.account import Account

ACTION = "ec2:DescribeAvailabilityZones"
"""The IAM action that `zones_of` needs."""


class Zone(Frozen):
    """A zone of a Region."""

    name: str  # Its name in this account
    id: str  # Its id in all accounts
    kind: str  # ``availability-zone``, ``local-zone`` or ``wavelength-zone``
    opted_in: bool  # Whether the account may launch instances in it
    state: str  # ``available``, or a problem
    group: str  # Group of zones that an account opts in to together

    def __str__(self) -> str:
        return f"{self.name} ({self.id})"


Zones = Mapping[str, Zone]
"""Zones, both by name and by id."""


def zones_of(account: "Account", region: str | None = None) -> Zones:
    """Return all zones of a Region, even zones that the account has not opted in to.

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
