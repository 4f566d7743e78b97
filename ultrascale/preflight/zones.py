"""The zones of the file, as the account has them.

Which zone a name such as ``us-east-2b`` stands for is the account's own; zone ids are the same in
all accounts.

Sources:
    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeAvailabilityZones.html
    https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html (where EKS has no control
    plane)
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ultrascale.catalog import eks
from ultrascale.preflight.model import Check, Context, Finding, State

ACTION = "ec2:DescribeAvailabilityZones"
_NAME = "zones"
_ZONE = "availability-zone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """A zone of the account.

    Attributes:
        name: Its name in this account.
        id: Its id in all accounts.
        kind: ``availability-zone``, ``local-zone`` or ``wavelength-zone``.
        opted_in: Whether instances may be launched in it.
        state: ``available``, or what is wrong with it.
        group: What is opted in to.
    """

    name: str
    id: str
    kind: str
    opted_in: bool
    state: str
    group: str

    def __str__(self) -> str:
        return f"{self.name} ({self.id})"


def account_zones(context: Context) -> Mapping[str, Zone]:
    """Return the zones of the Region, by name and by id, those not opted in to among them.

    Raises:
        UnansweredError: EC2 does not say.
    """
    # Without it EC2 leaves out the zones that the account has not opted in to.
    found = context.account.ask_all(
        context.account.client("ec2").describe_availability_zones,
        lambda page: page["AvailabilityZones"],
        AllAvailabilityZones=True,
    )
    zones = [_zone(each) for each in found]
    return {key: zone for zone in zones for key in (zone.name, zone.id)}


def _zone(answer: Mapping[str, Any]) -> Zone:
    return Zone(
        name=answer["ZoneName"],
        id=answer["ZoneId"],
        kind=answer["ZoneType"],
        opted_in=answer.get("OptInStatus") != "not-opted-in",
        state=answer["State"],
        group=answer.get("GroupName", ""),
    )


def _run(context: Context) -> Iterator[Finding]:
    zones = account_zones(context)
    for name in context.plan.network.zones:
        yield zone_finding(name, zones, context.plan.region)


def zone_finding(name: str, zones: Mapping[str, Zone], region: str) -> Finding:
    """Return whether subnets can be made in a zone, the control plane's among them.

    Args:
        name: Name or id of the zone, of the cluster file.
        zones: Zones of the account, by name and by id.
        region: The Region.
    """
    zone = zones.get(name)
    if zone is None:
        there = sorted({str(each) for each in zones.values() if each.kind == _ZONE})
        fix = f"name a zone of this account: {', '.join(there)}"
        return _finding(name, "fail", f"the account has no zone {name} in {region}", fix)
    if zone.id in eks.ZONES_WITHOUT_CONTROL_PLANE or zone.kind != _ZONE:
        why = "EKS takes no subnet of it for a control plane"
        fix = "leave it out of network.zones: every zone there gets a control-plane subnet"
        return _finding(name, "fail", f"{zone}, of kind {zone.kind}: {why}", fix)
    if not zone.opted_in:
        command = (
            f"aws ec2 modify-availability-zone-group --group-name {zone.group} "
            f"--opt-in-status opted-in --region {region}"
        )
        return _finding(name, "fail", f"the account has not opted in to {zone}", f"`{command}`")
    if zone.state != "available":
        fix = "read the AWS Health dashboard before you deploy there"
        return _finding(name, "warn", f"{zone} is {zone.state}", fix)
    return _finding(name, "pass", str(zone))


def _finding(name: str, state: State, evidence: str, fix: str | None = None) -> Finding:
    return Finding(check=_NAME, subject=name, state=state, evidence=evidence, fix=fix)


ZONES = Check(name=_NAME, title="the account has the file's zones", actions=(ACTION,), run=_run)
